package limits

import "time"

// A bucket holds what may be used up at once, one second's worth of a rate, and is filled
// at that rate. It lets in what begins while there is anything in it, and can go below
// zero: so nothing is too large to ever be done, and what a call has used can be taken
// when it is known. ([golang.org/x/time/rate] can do neither.)
type bucket struct {
	rate  int64
	level float64
	at    time.Time // when the level was that
}

func newBucket(rate int64, now time.Time) bucket { return bucket{rate, float64(rate), now} }

// unlimited and closed buckets need no level.
func (b *bucket) unlimited() bool { return b.rate == Unlimited }

// wait returns how long it takes until something may be used, 0 for now.
func (b *bucket) wait(now time.Time) time.Duration {
	switch {
	case b.unlimited():
		return 0
	case b.rate <= 0:
		return closed
	}
	b.fill(now)
	if b.level >= 1 {
		return 0
	}
	return seconds((1 - b.level) / float64(b.rate))
}

// take uses up n, after wait has said that it may be, or after the fact.
func (b *bucket) take(n int64, now time.Time) {
	if b.unlimited() || b.rate <= 0 {
		return
	}
	b.fill(now)
	b.level -= float64(n)
}

func (b *bucket) fill(now time.Time) {
	if passed := now.Sub(b.at); passed > 0 {
		b.level = min(float64(b.rate), b.level+passed.Seconds()*float64(b.rate))
		b.at = now
	}
}

// seconds rounds up, so that nobody comes a moment too early, and knows no more than some
// 285 years.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, 9e9)*float64(time.Second)) + time.Nanosecond
}
