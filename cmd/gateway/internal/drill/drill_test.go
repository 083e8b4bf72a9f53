package main

import (
	"errors"
	"testing"
	"time"

	"github.com/loomgate/loomgate/spi"
)

func TestADrillLosesNothing(t *testing.T) {
	r, err := run(t.Context(), t.Output(), 10*time.Second, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if r.lost > 0 || r.duplicated > 0 || r.acknowledged == 0 || r.retries == 0 || r.calls == 0 {
		t.Errorf("%s", r)
	}
}

func TestWhatIsLostAndWhatIsStoredTwiceIsCounted(t *testing.T) {
	a, b, c, d := spi.NewEventID(), spi.NewEventID(), spi.NewEventID(), spi.NewEventID()
	w := &worker{
		acknowledged: map[spi.ExecutionID][]spi.EventID{"x": {a, b}, "y": {c}},
		open:         map[spi.EventID]bool{d: true},
	}
	for name, test := range map[string]struct {
		stored map[spi.ExecutionID][]spi.EventID
		want   report
	}{
		"all of it":                       {map[spi.ExecutionID][]spi.EventID{"x": {a, b}, "y": {c}}, report{acknowledged: 3, stored: 3}},
		"one that was never acknowledged": {map[spi.ExecutionID][]spi.EventID{"x": {a, b}, "y": {c, d}}, report{acknowledged: 3, stored: 4, unanswered: 1}},
		"one is missing":                  {map[spi.ExecutionID][]spi.EventID{"x": {a}, "y": {c}}, report{acknowledged: 3, stored: 2, lost: 1}},
		"one is elsewhere":                {map[spi.ExecutionID][]spi.EventID{"x": {a, b, c}}, report{acknowledged: 3, stored: 3, lost: 1}},
		"one is there twice":              {map[spi.ExecutionID][]spi.EventID{"x": {a, b, b}, "y": {c}}, report{acknowledged: 3, stored: 4, duplicated: 1}},
	} {
		var got report
		if err := got.add(w, test.stored); err != nil || got != test.want {
			t.Errorf("%s: %+v (%v), not %+v", name, got, err, test.want)
		}
	}
	var r report
	if err := r.add(w, map[spi.ExecutionID][]spi.EventID{"x": {a, b, spi.NewEventID(), spi.NewEventID()}, "y": {c}}); !errors.Is(err, errForeign) {
		t.Error(err)
	}
}

func TestTheP99OfAHundredCallsIsTheSlowest(t *testing.T) {
	var all []time.Duration
	for i := range 100 {
		all = append(all, time.Duration(100-i))
	}
	if got := p99(all); got != 100 {
		t.Error(got)
	}
}
