package tenant_test

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// A call is one of a method, with its request.
type call func(context.Context, *spi.Store) (res any, err error)

func calling[Q, R any](method func(context.Context, *spi.Store, Q) (R, error), req Q) call {
	return func(ctx context.Context, s *spi.Store) (any, error) { return method(ctx, s, req) }
}

// A chooser chooses what is in a request.
type chooser struct {
	name   func() string
	prefix func() string
	cursor func() string
	below  func(n int) int // 0 to n-1

	versions map[reflect.Type][]int64 // and tokens, that stores have told, by what told them
}

// remember notes the versions in a response.
func (c *chooser) remember(res reflect.Value) {
	switch res.Kind() {
	case reflect.Slice:
		for i := range res.Len() {
			c.remember(res.Index(i))
		}
	case reflect.Struct:
		for i := range res.NumField() {
			if name := res.Type().Field(i).Name; name == "Version" || name == "Token" {
				c.versions[res.Type()] = append(c.versions[res.Type()], res.Field(i).Int())
			} else {
				c.remember(res.Field(i))
			}
		}
	}
}

// version is one of the last that a T told.
func version[T any](c chooser) int64 {
	all := c.versions[reflect.TypeFor[T]()]
	if last := all[max(0, len(all)-8):]; len(last) > 0 {
		return max(1, last[c.below(len(last))])
	}
	return 1
}

func (c chooser) execution() spi.ExecutionID { return spi.ExecutionID(c.name()) }
func (c chooser) ref() spi.RefName           { return spi.RefName(c.name()) }
func (c chooser) lease() spi.LeaseName       { return spi.LeaseName(c.name()) }
func (c chooser) few() int64                 { return int64(c.below(4)) }
func (c chooser) limit() int                 { return 1 + c.below(4) }

// wake is one of a few times, most of which have come.
func (c chooser) wake() time.Time {
	return time.Date(2020, 1, 1, 0, 2, 0, 0, time.UTC).Add(time.Duration(c.below(3)) * time.Minute)
}

// owner is not a bare scope: in a store without views that owns a tenant's key.
func (c chooser) owner() spi.KeyOwner {
	owner := spi.KeyOwner(c.name())
	if _, execution := owner.Execution(); !execution {
		owner += "x"
	}
	return owner
}

func (c chooser) keyID() spi.KeyID { return spi.KeyID{15: byte(c.below(8) / 6)} } // mostly none

func (c chooser) events() []spi.Event {
	kinds := []string{"Noted", spi.KindExecutionSuspended, spi.KindExecutionResumed}
	events := []spi.Event{{ID: spi.EventID{1: byte(c.below(8)), 2: 1}, Kind: kinds[c.below(3)]}}
	for range c.below(3) {
		events = append(events, spi.Event{ID: spi.EventID{1: byte(c.below(8)), 2: byte(2 + len(events))}, Kind: "Noted"})
	}
	return events
}

func (c chooser) append() spi.AppendRequest {
	return spi.AppendRequest{
		Execution: c.execution(), ExpectedHead: c.few() - 1, Fence: c.few() / 2, Incarnation: c.few() / 3, KeyID: c.keyID(), Events: c.events(),
	}
}

// calls has a way to choose a call of every method that a view offers.
var calls = map[string]func(chooser) call{
	"Append": func(c chooser) call { return calling(spi.Append, c.append()) },
	"Read": func(c chooser) call {
		return calling(spi.Read, spi.ReadRequest{Execution: c.execution(), After: c.few(), Backward: c.below(2) == 0, Limit: c.limit()})
	},
	"Head": func(c chooser) call { return calling(spi.Head, spi.HeadRequest{Execution: c.execution()}) },
	"ListExecutions": func(c chooser) call {
		return calling(spi.ListExecutions, spi.ListExecutionsRequest{Prefix: c.prefix(), After: c.cursor(), Limit: c.limit()})
	},
	"AppendBatch": func(c chooser) call {
		return calling(spi.AppendBatch, spi.AppendBatchRequest{Appends: []spi.AppendRequest{c.append(), c.append()}})
	},
	"AcquireFence": func(c chooser) call {
		return calling(spi.AcquireFence, spi.AcquireFenceRequest{Execution: c.execution(), Incarnation: c.few() / 3})
	},
	"AcquireFenceIf": func(c chooser) call {
		return calling(spi.AcquireFenceIf, spi.AcquireFenceIfRequest{Execution: c.execution(), Fence: c.few() / 2, ParkSeq: c.few()})
	},
	"AppendIfUnchanged": func(c chooser) call {
		return calling(spi.AppendIfUnchanged, spi.AppendIfUnchangedRequest{Execution: c.execution(), Fence: c.few() / 2, Head: c.few(), KeyID: c.keyID(), Events: c.events()})
	},
	"CopyPrefix": func(c chooser) call {
		return calling(spi.CopyPrefix, spi.CopyPrefixRequest{From: c.execution(), To: c.execution(), N: 1 + c.few()/2})
	},
	"TruncatePrefixKeeping": func(c chooser) call {
		return calling(spi.TruncatePrefixKeeping, spi.TruncatePrefixKeepingRequest{Execution: c.execution(), Incarnation: 1 + c.few()/2, Before: 1 + c.few(), Keep: []int64{1}})
	},
	"DeleteExecution": func(c chooser) call {
		return calling(spi.DeleteExecution, spi.DeleteExecutionRequest{Execution: c.execution(), Incarnation: 1 + c.few()/2})
	},
	"SweepTombstones": func(c chooser) call {
		return calling(spi.SweepTombstones, spi.SweepTombstonesRequest{Prefix: c.prefix(), OlderThan: time.Duration(c.few()) * time.Minute, Limit: c.limit()})
	},
	"ScheduleTimer": func(c chooser) call {
		return calling(spi.ScheduleTimer, spi.ScheduleTimerRequest{Timer: spi.Timer{Execution: c.execution(), WakeAt: c.wake(), Redrive: c.below(2) == 0}})
	},
	"DueTimers": func(c chooser) call {
		return calling(spi.DueTimers, spi.DueTimersRequest{Prefix: c.prefix(), Limit: c.limit(), ExcludeRedrive: c.below(2) == 0})
	},
	"CompleteTimer": func(c chooser) call {
		return calling(spi.CompleteTimer, spi.CompleteTimerRequest{Execution: c.execution(), WakeAt: c.wake(), Version: version[spi.Timer](c)})
	},
	"PutRef": func(c chooser) call {
		return calling(spi.PutRef, spi.PutRefRequest{Name: c.ref(), Execution: c.execution(), Sequence: c.few(), ExpectedVersion: -int64(c.below(2))})
	},
	"GetRef": func(c chooser) call { return calling(spi.GetRef, spi.GetRefRequest{Name: c.ref()}) },
	"DeleteRef": func(c chooser) call {
		return calling(spi.DeleteRef, spi.DeleteRefRequest{Name: c.ref(), ExpectedVersion: spi.AnyVersion})
	},
	"ListRefs": func(c chooser) call {
		return calling(spi.ListRefs, spi.ListRefsRequest{Prefix: c.prefix(), After: c.cursor(), Limit: c.limit()})
	},
	"PromoteRef": func(c chooser) call {
		return calling(spi.PromoteRef, spi.PromoteRefRequest{Name: c.ref(), Execution: c.execution(), ExpectedVersion: version[spi.Ref](c)})
	},
	"RefLineage": func(c chooser) call {
		return calling(spi.RefLineage, spi.RefLineageRequest{Name: c.ref(), Limit: c.limit()})
	},
	"AcquireLease": func(c chooser) call {
		return calling(spi.AcquireLease, spi.AcquireLeaseRequest{Name: c.lease(), Holder: []string{"h", "g"}[c.below(2)], TTL: time.Duration(1+c.few()) * time.Minute})
	},
	"RenewLease": func(c chooser) call {
		return calling(spi.RenewLease, spi.RenewLeaseRequest{Name: c.lease(), Token: version[spi.AcquireLeaseResponse](c), TTL: time.Second})
	},
	"ReleaseLease": func(c chooser) call {
		return calling(spi.ReleaseLease, spi.ReleaseLeaseRequest{Name: c.lease(), Token: version[spi.AcquireLeaseResponse](c)})
	},
	"CreateDataKey": func(c chooser) call {
		key := spi.DataKey{Owner: c.owner(), Version: 1 + c.few()/2, ID: spi.KeyID{15: 1}, WrappedBy: "kms", Wrapped: []byte{1}}
		return calling(spi.CreateDataKey, spi.CreateDataKeyRequest{Key: key})
	},
	"GetDataKey": func(c chooser) call {
		return calling(spi.GetDataKey, spi.GetDataKeyRequest{Owner: c.owner(), Version: c.few()})
	},
	"DestroyDataKey": func(c chooser) call {
		return calling(spi.DestroyDataKey, spi.DestroyDataKeyRequest{Owner: c.owner(), Version: 1 + c.few()})
	},
	"ListDataKeys": func(c chooser) call {
		return calling(spi.ListDataKeys, spi.ListDataKeysRequest{Prefix: c.prefix(), After: c.cursor(), Limit: c.limit()})
	},
	"RewrapDataKey": func(c chooser) call {
		return calling(spi.RewrapDataKey, spi.RewrapDataKeyRequest{Owner: c.owner(), Version: 1 + c.few(), OldWrappedBy: "kms", WrappedBy: "kms", Wrapped: []byte{2}})
	},
	"GetOwnership": func(chooser) call { return calling(spi.GetOwnership, spi.GetOwnershipRequest{}) },
}

// plain chooses names that anything valid can be done with, each another.
func plain() chooser {
	n := byte(0)
	return chooser{
		name:   func() string { n++; return string('e' + rune(n)) },
		prefix: func() string { return "" },
		cursor: func() string { return "" },
		below:  func(n int) int { return n - 1 },
	}
}

func TestTheCallsAreOfEveryMethodThatAViewOffers(t *testing.T) {
	var want []string
	for m := range reflect.TypeFor[spi.Decorator]().Methods() {
		if m.Name != "Caps" && m.Name != "Layer" && m.Name != "ChangeOwnership" {
			want = append(want, m.Name)
		}
	}
	if got := slices.Sorted(maps.Keys(calls)); !slices.Equal(got, want) {
		t.Errorf("they are %q, not %q", got, want)
	}
}
