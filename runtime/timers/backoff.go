package timers

import (
	"time"

	"github.com/loomgate/loomgate/spi"
)

// A Backoff says how long to wait before what was contended is tried again: a random
// part, from none to all, of Base doubled with each attempt, up to Cap.
type Backoff struct {
	Base        time.Duration  // 200 ms
	Cap         time.Duration  // 30 s
	MaxAttempts int            // 8
	Random      func() float64 // in [0, 1)
}

// delay returns how long to wait after an attempt, counted from 0.
func (b Backoff) delay(attempt int) time.Duration {
	most := b.Cap
	if attempt < 32 && b.Base<<attempt < b.Cap {
		most = b.Base << attempt
	}
	return time.Duration(b.Random() * float64(most)).Truncate(time.Microsecond)
}

// waiting are the plain wakes that have been put off, in this process alone: a node
// that begins anew tries them at once.
type waiting map[key]delayed

type key struct {
	execution spi.ExecutionID
	wakeAt    time.Time
}

type delayed struct {
	attempts  int // that looked
	contended int // of those
	next      time.Time
}

func keyOf(row spi.Timer) key { return key{row.Execution, row.WakeAt.UTC()} }

// mostWaiting bounds how many wakes are put off at once.
const mostWaiting = 1024

// before reports whether a wake's next try is still to come.
func (w waiting) before(k key, now time.Time) bool { return now.Before(w[k].next) }

// later puts a wake off and returns how often it has been contended. Of too many the
// one whose next try is closest is forgotten.
func (s *Service) later(row spi.Timer, contended bool) int {
	k := keyOf(row)
	d, known := s.waiting[k]
	if !known && len(s.waiting) >= mostWaiting {
		s.waiting.forgetOne()
	}
	d.next = s.config.Now().Add(s.config.Backoff.delay(d.attempts))
	d.attempts++
	if contended {
		d.contended++
	}
	s.waiting[k] = d
	return d.contended
}

func (w waiting) forgetOne() {
	var soonest key
	var next time.Time
	for k, d := range w {
		if next.IsZero() || d.next.Before(next) || d.next.Equal(next) && less(k, soonest) {
			soonest, next = k, d.next
		}
	}
	delete(w, soonest)
}

func less(a, b key) bool {
	return a.execution < b.execution || a.execution == b.execution && a.wakeAt.Before(b.wakeAt)
}
