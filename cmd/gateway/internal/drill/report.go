package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// A report is what a drill comes to.
type report struct {
	acknowledged, stored, unanswered int
	lost, duplicated                 int
	retries                          int
	calm, unaffected                 time.Duration // p99 of a call
	calls                            int           // of unaffected
}

// count compares what was acknowledged with what is stored.
func count(ctx context.Context, workers []*worker) (r report, err error) {
	var calm, unaffected []time.Duration
	for _, w := range workers {
		stored, err := w.stored(ctx)
		if err != nil {
			return r, err
		}
		if err := r.add(w, stored); err != nil {
			return r, err
		}
		r.retries += w.retries
		calm, unaffected = append(calm, w.calm...), append(unaffected, w.unaffected...)
	}
	r.calm, r.unaffected, r.calls = p99(calm), p99(unaffected), len(unaffected)
	return r, nil
}

// add counts what one tenant has.
func (r *report) add(w *worker, stored map[spi.ExecutionID][]spi.EventID) error {
	times := map[spi.EventID]int{}
	for _, ids := range stored {
		r.stored += len(ids)
		for _, id := range ids {
			if times[id]++; times[id] > 1 {
				r.duplicated++
			}
		}
	}
	sent := len(w.open)
	for execution, ids := range w.acknowledged {
		r.acknowledged += len(ids)
		sent += len(ids)
		for _, id := range ids {
			if !slices.Contains(stored[execution], id) {
				r.lost++
			}
		}
	}
	for id := range w.open {
		r.unanswered += times[id]
	}
	if len(times) > sent {
		return fmt.Errorf("tenant %s: %w", w.tenant, errForeign)
	}
	return nil
}

func p99(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)*99/100]
}

func (r report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "acknowledged %d, stored %d (%d of them without an answer), sent again %d times\n", r.acknowledged, r.stored, r.unanswered, r.retries)
	fmt.Fprintf(&b, "lost %d, duplicated %d\n", r.lost, r.duplicated)
	fmt.Fprintf(&b, "p99 of an append: %v while all shards were up, %v of other tenants while a shard was down (%d calls)\n",
		r.calm.Round(100*time.Microsecond), r.unaffected.Round(100*time.Microsecond), r.calls)
	return b.String()
}
