package faults_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/loomgate/loomgate/decorators/faults"
	"github.com/loomgate/loomgate/spi"
)

func TestAScriptHitsTheCallsThatItNames(t *testing.T) {
	s := over(t, faults.Script(
		faults.Step{Method: "Append", N: 2, Fault: faults.Fault{Refuse: errPlanned}},
		faults.Step{Method: "Head", N: 1, Fault: faults.Fault{Refuse: errPlanned}},
	))
	for n, failed := range []bool{false, true, false} {
		if _, err := spi.Append(t.Context(), s, first(spi.ExecutionID([]string{"a", "b", "c"}[n]))); (err != nil) != failed {
			t.Errorf("append %d: %v", n+1, err)
		}
	}
	for n, failed := range []bool{true, false} {
		if _, err := spi.Head(t.Context(), s, spi.HeadRequest{Execution: "a"}); (err != nil) != failed {
			t.Errorf("head %d: %v", n+1, err)
		}
	}
}

func TestAPlanIsConfinedToSomeCalls(t *testing.T) {
	plan := always(faults.Fault{Refuse: errPlanned}).Only(func(c faults.Call) bool { return c.Name == "e" })
	s := over(t, plan)
	if _, err := spi.Append(t.Context(), s, first("e")); err == nil {
		t.Error("the fault hits nothing")
	}
	if _, err := spi.Append(t.Context(), s, first("f")); err != nil {
		t.Error(err)
	}
}

func TestRandomFaultsDependOnTheSeedTheMethodAndTheNumberOfTheCall(t *testing.T) {
	rates := faults.Rates{Refuse: 0.3, Lose: 0.3, Delay: 0.5, MaxDelay: time.Hour}
	draw := func(seed uint64, method string) []faults.Fault {
		plan := faults.Random(seed, rates)
		all := make([]faults.Fault, 100)
		for i := range all {
			n := (i*37)%100 + 1 // in any order
			all[n-1] = plan(faults.Call{Method: method, N: n, Name: t.Name()})
		}
		return all
	}
	one := draw(1, "Append")
	plan := faults.Random(1, rates)
	for i := range one {
		if again := plan(faults.Call{Method: "Append", N: i + 1}); !reflect.DeepEqual(again, one[i]) {
			t.Fatalf("call %d has %+v and then %+v", i+1, one[i], again)
		}
	}
	if reflect.DeepEqual(one, draw(2, "Append")) || reflect.DeepEqual(one, draw(1, "Read")) {
		t.Error("another seed or another method has the same faults")
	}
}

func TestRandomFaultsKeepToTheirRates(t *testing.T) {
	const calls = 10_000
	plan := faults.Random(7, faults.Rates{Refuse: 0.2, Lose: 0.1, Delay: 0.3, MaxDelay: time.Second})
	var refused, lost, delayed int
	for n := range calls {
		f := plan(faults.Call{Method: "Append", N: n + 1})
		if f.Refuse != nil {
			refused++
		}
		if f.Lose != nil {
			lost++
		}
		if f.Delay > 0 {
			delayed++
		}
		if f.Refuse != nil && f.Lose != nil || f.Delay > time.Second {
			t.Fatalf("%+v", f)
		}
	}
	for _, c := range []struct {
		what      string
		got, want int
	}{{"refused", refused, 2000}, {"lost", lost, 1000}, {"delayed", delayed, 3000}} {
		if c.got < c.want*9/10 || c.got > c.want*11/10 {
			t.Errorf("%d of %d calls are %s, not about %d", c.got, calls, c.what, c.want)
		}
	}
	none := faults.Random(7, faults.Rates{})
	for n := range 100 {
		if f := none(faults.Call{Method: "Append", N: n + 1}); !reflect.DeepEqual(f, faults.Fault{}) {
			t.Errorf("without rates there is %+v", f)
		}
	}
}
