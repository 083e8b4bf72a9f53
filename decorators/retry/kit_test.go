package retry_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/decorators/coalescing"
	"github.com/loomgate/loomgate/decorators/faults"
	"github.com/loomgate/loomgate/decorators/retry"
	"github.com/loomgate/loomgate/spi"
)

// open gives each test a store in memory of its own.
var open = conformance.PerTest(func(t *testing.T) *spi.Store { return must(t)(memory.New()) })

func must(t *testing.T) func(*spi.Store, error) *spi.Store {
	return func(s *spi.Store, err error) *spi.Store {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

func TestConformance(t *testing.T) {
	conformance.Decorator(t, open, func(inner ...*spi.Store) (*spi.Store, error) {
		return retry.New(inner[0], quick)
	})
}

// quick tries often and does not wait: whatever a plan does ends within its tries.
var quick = retry.Options{Tries: 50, Jitter: noWait}

func TestTheKitRunsOverAStoreWithFaults(t *testing.T) {
	met := troubles{lost: map[string]int{}, refused: map[string]int{}}
	conformance.Store(t, func(t *testing.T) *spi.Store {
		return must(t)(retry.New(must(t)(faults.New(open(t), met.plan(t))), quick))
	})
	met.wantAll(t)
}

func TestTheKitRunsOverACoalescedStoreWithFaults(t *testing.T) {
	met := troubles{lost: map[string]int{}, refused: map[string]int{}}
	conformance.Store(t, func(t *testing.T) *spi.Store {
		coalescer, err := coalescing.New(open(t), coalescing.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return must(t)(retry.New(must(t)(faults.New(coalescer.Store(), met.plan(t))), quick))
	})
	met.wantAll(t)
}

// spares reports whether a case expects another answer of a method than a lost one comes
// to: an append before a deletion stays ambiguous, two tries of one append that is lost
// both count as the one that stored it, and a lease that is acquired again ends later.
func spares(t *testing.T, method string) bool {
	switch method {
	case "Append":
		return strings.Contains(t.Name(), "an_append_and_a_deletion") || strings.Contains(t.Name(), "of_many_tries_of_one_append")
	case "AcquireLease":
		return strings.Contains(t.Name(), "of_eight_who_acquire_a_lease")
	}
	return false
}

// troubles counts the faults that the plans of a run have made, by method.
type troubles struct {
	plans         uint64 // each has a seed of its own
	mu            sync.Mutex
	lost, refused map[string]int
}

// plan plans faults for every call: refusals and delays for all of them, lost answers
// where the layer may send the request again and the answer is then the same.
func (m *troubles) plan(t *testing.T) faults.Plan {
	m.plans++
	random := faults.Random(m.plans, faults.Rates{Refuse: 0.4, Lose: 0.3, Delay: 0.02, MaxDelay: 200 * time.Microsecond})
	done := map[any]bool{} // what may have been done already: its answer is not lost
	first := func(what any) bool {
		again := done[what]
		done[what] = true
		return !again
	}
	appends := func(a spi.AppendRequest) bool {
		return first(a.Events[0].ID) && (a.ExpectedHead != spi.AnyHead || a.SinceSeq > 0)
	}
	return func(c faults.Call) faults.Fault {
		f := random(c)
		if routed(c.Request) {
			return faults.Fault{Delay: f.Delay}
		}
		if f.Refuse != nil {
			m.count(m.refused, c)
			return f
		}
		var lose bool
		switch req := c.Request.(type) {
		case spi.AppendRequest:
			lose = appends(req)
		case spi.AppendBatchRequest:
			lost := map[spi.ExecutionID]bool{}
			for _, a := range req.Appends {
				lost[a.Execution] = appends(a)
			}
			lose, f.Only = slices.Contains(slices.Collect(maps.Values(lost)), true), func(id spi.ExecutionID) bool { return lost[id] }
		case spi.AppendIfUnchangedRequest:
			lose = first(req.Events[0].ID)
		case spi.CopyPrefixRequest:
			lose = first(req)
		case spi.CreateDataKeyRequest:
			lose = first(req.Key.ID)
		case spi.ScheduleTimerRequest, spi.AcquireLeaseRequest, spi.RenewLeaseRequest:
			lose = true
		case spi.ReadRequest, spi.HeadRequest, spi.ListExecutionsRequest, spi.DueTimersRequest, spi.GetRefRequest, spi.ListRefsRequest,
			spi.RefLineageRequest, spi.GetDataKeyRequest, spi.ListDataKeysRequest, spi.GetOwnershipRequest:
			lose = true
		}
		if !lose || spares(t, c.Method) {
			f.Lose = nil
		} else if f.Lose != nil {
			m.count(m.lost, c)
		}
		return f
	}
}

// routed reports whether a request states a route. In the kit those are about slots on
// the move, which stay there: tries are spent on them, and what came last is told.
func routed(req any) bool {
	if batch, ok := req.(spi.AppendBatchRequest); ok {
		return batch.Appends[0].Route != spi.Route{}
	}
	route := reflect.ValueOf(req).FieldByName("Route")
	return route.IsValid() && !route.IsZero()
}

func (m *troubles) count(what map[string]int, c faults.Call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	what[c.Method]++
}

// wantAll checks that every method has met every fault that it can.
func (m *troubles) wantAll(t *testing.T) {
	t.Helper()
	for _, method := range []string{
		"Append", "AppendBatch", "AppendIfUnchanged", "CopyPrefix", "ScheduleTimer", "AcquireLease", "RenewLease", "CreateDataKey",
		"Read", "Head", "ListExecutions", "DueTimers", "GetRef", "ListRefs", "RefLineage", "GetDataKey", "ListDataKeys", "GetOwnership",
	} {
		if m.lost[method] == 0 {
			t.Errorf("no %s is lost", method)
		}
	}
	for method := range reflect.TypeFor[spi.Decorator]().Methods() {
		if method.Name != "Caps" && method.Name != "Layer" && m.refused[method.Name] == 0 {
			t.Errorf("no %s is refused", method.Name)
		}
	}
}
