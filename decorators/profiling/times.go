package profiling

import (
	"context"
	"sync"
	"time"
)

// Times adds up how long one call spends in each layer, whether or not anybody takes
// spans or metrics. A layer's time holds that of the layers within it; calls of a layer
// that go on side by side add up.
type Times struct {
	mu  sync.Mutex
	all []Spent
}

// Spent is the time that a call has spent in a layer.
type Spent struct {
	Layer string
	Took  time.Duration
}

type timesKey struct{}

// CollectTimes returns a context under which layers add to the times that are returned.
func CollectTimes(ctx context.Context) (context.Context, *Times) {
	t := &Times{}
	return context.WithValue(ctx, timesKey{}, t), t
}

// AddTime adds to what the call of ctx has spent in a layer, if its times are collected.
func AddTime(ctx context.Context, layer string, took time.Duration) { timesOf(ctx).add(layer, took) }

func timesOf(ctx context.Context) *Times {
	t, _ := ctx.Value(timesKey{}).(*Times)
	return t
}

func (t *Times) add(layer string, took time.Duration) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.all {
		if t.all[i].Layer == layer {
			t.all[i].Took += took
			return
		}
	}
	t.all = append(t.all, Spent{layer, took})
}

// Spent returns the layers' times, in the order in which their first calls ended: a
// layer comes after those within it.
func (t *Times) Spent() []Spent {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Spent(nil), t.all...)
}
