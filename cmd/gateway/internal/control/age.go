package control

import "time"

// Age returns how old the copy is; false if there is none yet.
func (r *Records) Age() (age time.Duration, read bool) {
	c := r.copy.Load()
	if c == nil {
		return 0, false
	}
	return time.Since(c.asOf), true
}
