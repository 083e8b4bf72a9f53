package conformance

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// volatile is what an error's text holds of versions and times.
var volatile = regexp.MustCompile(`at version \d+|until \S+`)

// script makes some hundred random calls over few names, so that they meet one
// another, and returns what each answered. Event ids, versions, tokens and times
// are the store's or random, and left out. The names begin with prefix; between is
// called now and then.
func (f *fixture) script(seed uint64, prefix string, between func(step int)) []string {
	const steps = 150
	random := rand.New(rand.NewPCG(seed, 8))
	pick := func(n int) spi.ExecutionID { return spi.ExecutionID(prefix) + id("e%d", random.IntN(n)) }
	small := func() int64 { return int64(random.IntN(4)) }
	kinds := []string{"Noted", spi.KindExecutionSuspended, spi.KindExecutionResumed}
	var answers []string
	answer := func(op string, err error, values ...any) {
		text := fmt.Sprint(op, " ", values)
		if err != nil {
			text = fmt.Sprint(op, " ", volatile.ReplaceAllString(err.Error(), "…"))
		}
		answers = append(answers, text)
	}
	calls := []func(){
		func() {
			res, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: pick(4), ExpectedHead: small() - 1, Fence: small(), Incarnation: small() / 2, Events: []spi.Event{event(kinds[random.IntN(3)])}})
			answer("append", err, res)
		},
		func() {
			res, err := spi.Read(f.ctx, f.store, spi.ReadRequest{Execution: pick(4), After: small(), Limit: 2, Backward: random.IntN(2) == 0})
			answer("read", err, len(res.Events), res.More, res.Incarnation, res.Floor)
		},
		func() {
			res, err := spi.Head(f.ctx, f.store, spi.HeadRequest{Execution: pick(4)})
			answer("head", err, res.Head, res.Fence, res.Incarnation, res.Floor)
		},
		func() {
			res, err := spi.ListExecutions(f.ctx, f.store, spi.ListExecutionsRequest{Prefix: []string{"", "e"}[random.IntN(2)], After: string(pick(4)), Limit: 2})
			answer("list", err, res.Executions, res.Next)
		},
		func() {
			res, err := spi.AcquireFenceIf(f.ctx, f.store, spi.AcquireFenceIfRequest{Execution: pick(4), Fence: small(), ParkSeq: small()})
			answer("acquire if", err, res)
		},
		func() {
			res, err := spi.AcquireFence(f.ctx, f.store, spi.AcquireFenceRequest{Execution: pick(4), Incarnation: small() / 2})
			answer("acquire", err, res)
		},
		func() {
			res, err := spi.AppendBatch(f.ctx, f.store, spi.AppendBatchRequest{Appends: []spi.AppendRequest{
				{Execution: pick(1), ExpectedHead: small() - 1, Fence: small(), Events: events(1)}, {Execution: pick(3) + "x", ExpectedHead: small() - 1, Events: events(1)},
			}})
			answer("batch", err, res.Results)
		},
		func() {
			res, err := spi.AppendIfUnchanged(f.ctx, f.store, spi.AppendIfUnchangedRequest{Execution: pick(4), Head: small(), Fence: small(), Events: events(1)})
			answer("append if unchanged", err, res)
		},
		func() {
			res, err := spi.CopyPrefix(f.ctx, f.store, spi.CopyPrefixRequest{From: pick(4), To: pick(3) + "y", N: small() + 1})
			answer("copy", err, res)
		},
		func() {
			res, err := spi.TruncatePrefixKeeping(f.ctx, f.store, spi.TruncatePrefixKeepingRequest{Execution: pick(4), Incarnation: small() + 1, Before: small() + 1})
			answer("truncate", err, res)
		},
		func() {
			res, err := spi.DeleteExecution(f.ctx, f.store, spi.DeleteExecutionRequest{Execution: pick(4), Incarnation: small() + 1})
			answer("delete", err, res)
		},
		func() {
			res, err := spi.SweepTombstones(f.ctx, f.store, spi.SweepTombstonesRequest{Limit: 1})
			answer("sweep", err, res)
		},
		func() {
			res, err := spi.ScheduleTimer(f.ctx, f.store, spi.ScheduleTimerRequest{Timer: spi.Timer{Execution: pick(4), WakeAt: longAgo.Add(time.Duration(small()) * time.Hour), Redrive: random.IntN(2) == 0}})
			answer("schedule", err, res.Timer.Execution, res.Timer.WakeAt, res.Timer.Redrive)
		},
		func() {
			res, err := spi.DueTimers(f.ctx, f.store, spi.DueTimersRequest{Limit: 3})
			values := []any{res.Missing}
			for _, t := range res.Timers {
				values = append(values, t.Execution, t.WakeAt, t.Redrive)
			}
			answer("due", err, values...)
			if len(res.Timers) > 0 {
				t := res.Timers[0]
				done, err := spi.CompleteTimer(f.ctx, f.store, spi.CompleteTimerRequest{Execution: t.Execution, WakeAt: t.WakeAt, Version: t.Version})
				answer("complete", err, done)
			}
		},
		func() {
			res, err := spi.PutRef(f.ctx, f.store, spi.PutRefRequest{Name: spi.RefName(pick(3)), Execution: pick(4), Sequence: small(), ExpectedVersion: -small() / 3})
			answer("put ref", err, res.Ref.Name, res.Ref.Execution, res.Ref.Sequence)
		},
		func() {
			got, err := spi.GetRef(f.ctx, f.store, spi.GetRefRequest{Name: spi.RefName(pick(3))})
			answer("get ref", err, got.Ref.Name, got.Ref.Execution, got.Ref.Sequence)
			if err == nil {
				res, err := spi.PromoteRef(f.ctx, f.store, spi.PromoteRefRequest{Name: got.Ref.Name, Execution: pick(4), ExpectedVersion: got.Ref.Version})
				answer("promote ref", err, res.Ref.Name, res.Ref.Execution)
			}
		},
		func() {
			res, err := spi.RefLineage(f.ctx, f.store, spi.RefLineageRequest{Name: spi.RefName(pick(3)), Limit: 2})
			values := []any{res.More}
			for _, r := range res.Refs {
				values = append(values, r.Name, r.Execution, r.Sequence)
			}
			answer("lineage", err, values...)
		},
		func() {
			res, err := spi.DeleteRef(f.ctx, f.store, spi.DeleteRefRequest{Name: spi.RefName(pick(3)), ExpectedVersion: []int64{1, spi.AnyVersion}[random.IntN(2)]})
			answer("delete ref", err, res)
		},
		func() {
			res, err := spi.ListRefs(f.ctx, f.store, spi.ListRefsRequest{Limit: 2})
			values := []any{res.Next}
			for _, r := range res.Refs {
				values = append(values, r.Name, r.Execution)
			}
			answer("list refs", err, values...)
		},
		func() {
			holder := []string{"h", "g"}[random.IntN(2)]
			res, err := spi.AcquireLease(f.ctx, f.store, spi.AcquireLeaseRequest{Name: spi.LeaseName(pick(2)), Holder: holder, TTL: time.Hour})
			answer("lease", err, res.Token > 0)
			if err == nil && random.IntN(2) == 0 {
				res, err := spi.ReleaseLease(f.ctx, f.store, spi.ReleaseLeaseRequest{Name: spi.LeaseName(pick(2)), Token: res.Token})
				answer("release", err, res)
			}
		},
		func() {
			res, err := spi.CreateDataKey(f.ctx, f.store, spi.CreateDataKeyRequest{Key: spi.DataKey{Owner: spi.KeyOwner(pick(6)), Version: 1 + small()/3, ID: spi.KeyID(spi.NewEventID()), WrappedBy: "kms", Wrapped: []byte{1}}})
			answer("create key", err, res.Key.Owner, res.Created)
		},
		func() {
			res, err := spi.GetDataKey(f.ctx, f.store, spi.GetDataKeyRequest{Owner: spi.KeyOwner(pick(6))})
			answer("get key", err, res.Key.Owner, res.Key.Version)
		},
		func() {
			res, err := spi.RewrapDataKey(f.ctx, f.store, spi.RewrapDataKeyRequest{Owner: spi.KeyOwner(pick(6)), Version: 1, OldWrappedBy: "kms", WrappedBy: "other", Wrapped: []byte{2}})
			answer("rewrap key", err, res)
		},
		func() {
			res, err := spi.DestroyDataKey(f.ctx, f.store, spi.DestroyDataKeyRequest{Owner: spi.KeyOwner(pick(6)), Version: 1})
			answer("destroy key", err, res)
		},
		func() {
			res, err := spi.ListDataKeys(f.ctx, f.store, spi.ListDataKeysRequest{Limit: 2})
			values := []any{res.Next}
			for _, k := range res.Keys {
				values = append(values, k.Owner, k.Version)
			}
			answer("list keys", err, values...)
		},
	}
	for step := range steps {
		if between != nil && step%10 == 0 {
			between(step)
		}
		calls[random.IntN(len(calls))]()
	}
	return answers
}
