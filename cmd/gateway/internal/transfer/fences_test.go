package transfer_test

import (
	"testing"
	"testing/synctest"

	"github.com/loomgate/loomgate/cmd/gateway/internal/transfer"
	"github.com/loomgate/loomgate/spi"
)

// fenced are lines of two executions that were acquired.
var fenced = []string{
	line("a", `"fence":3,"payload":1`), line("b", `"payload":1`), line("a", `"payload":2`), line("a", `"fence":2,"payload":3`),
	line("c", `"fence":1,"payload":1`),
}

func TestWhoeverAcquiresAnImportedExecutionGetsAHigherToken(t *testing.T) {
	onEach(t, func(t *testing.T, store *spi.Store) {
		for range 2 {
			importAll(t, store, file(fenced...))
			for id, token := range map[spi.ExecutionID]int64{"a": 3, "b": 0, "c": 1} {
				if got := head(t, store, id).Fence; got != token {
					t.Errorf("%q is fenced at %d, not %d", id, got, token)
				}
			}
		}
	})
}

func TestTokensAreRaisedOnceEverythingIsStored(t *testing.T) {
	store := inMemory()
	_, err := transfer.Import(ctx, store, file(append(fenced, "{")...), options())
	want[*transfer.LineError](t, err)
	if got := head(t, store, "a").Fence; got != 0 {
		t.Errorf("it is fenced at %d", got)
	}
	importAll(t, store, file(fenced...))
	if got := head(t, store, "a").Fence; got != 3 {
		t.Errorf("it is fenced at %d", got)
	}
}

func TestALostAcquireRaisesTheTokenAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := inMemory()
		store := withPlan(inner, func(c call) fault {
			if c.method == "AcquireFence" && c.n%2 == 1 {
				return fault{lose: errLost}
			}
			return fault{}
		})
		must(transfer.Import(ctx, store, file(fenced...), patient()))
		if got := head(t, inner, "a").Fence; got != 3 {
			t.Errorf("it is fenced at %d", got)
		}
	})
}

func TestATokenThatCannotBeRaisedIsTold(t *testing.T) {
	store := withPlan(inMemory(), func(c call) fault {
		if c.method == "AcquireFence" {
			return fault{refuse: errAway}
		}
		return fault{}
	})
	report, err := transfer.Import(ctx, store, file(fenced...), options())
	if want[*spi.UnavailableError](t, err); report.New != 5 {
		t.Errorf("%+v", report)
	}
}

func TestAStoreWithoutFencesKeepsTheTokensOfEvents(t *testing.T) {
	store := spi.Only(inMemory(), spi.CapEvents)
	importAll(t, store, file(fenced...))
	for i, token := range []int64{3, 0, 2} {
		if got := events(t, store, "a")[i].Fence; got != token {
			t.Errorf("event %d has the token %d, not %d", i+1, got, token)
		}
	}
}

func TestAnExecutionThatSomebodyHoldsRefusesOlderTokens(t *testing.T) {
	store := inMemory()
	for range 4 {
		must(spi.AcquireFence(ctx, store, spi.AcquireFenceRequest{Execution: "a"}))
	}
	_, err := transfer.Import(ctx, store, file(fenced...), options())
	if stale := want[*spi.StaleFenceError](t, err); stale.Current != 4 {
		t.Error(err)
	}
}
