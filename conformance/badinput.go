package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// badNames are no names of anything, each for another reason.
var badNames = map[string]string{
	"an empty name":              "",
	"a name with a stray byte":   "a\xff",
	"a name with a cut rune":     "a\xc3",
	"an overlong encoding":       "\xc0\xaf",
	"a lone surrogate":           "a\xed\xa0\x80",
	"a rune past U+10FFFF":       "\xf4\x90\x80\x80",
	"a name with U+0000":         "a\x00b",
	"a name of 1,025 bytes":      strings.Repeat("a", spi.MaxID+1),
	"a name of 300 astral runes": strings.Repeat("𝄞", 300),
}

var badInput = topic{"bad input", []testCase{
	{
		"a name that cannot be stored is refused, whatever it names",
		0,
		func(f *fixture) {
			for what, name := range badNames {
				e := spi.ExecutionID(name)
				refuse(f, what, "execution id", spi.CapEvents, spi.Append, spi.AppendRequest{Execution: e, Events: events(1)})
				refuse(f, what, "execution id", spi.CapEvents, spi.Read, spi.ReadRequest{Execution: e, Limit: 1})
				refuse(f, what, "execution id", spi.CapEvents, spi.Head, spi.HeadRequest{Execution: e})
				refuse(f, what, "appends[1].execution id", spi.CapAppendBatch, spi.AppendBatch, spi.AppendBatchRequest{Appends: []spi.AppendRequest{
					{Execution: "e", Events: events(1)}, {Execution: e, Events: events(1)},
				}})
				refuse(f, what, "execution id", spi.CapAcquireFence, spi.AcquireFence, spi.AcquireFenceRequest{Execution: e})
				refuse(f, what, "execution id", spi.CapAcquireFenceIf, spi.AcquireFenceIf, spi.AcquireFenceIfRequest{Execution: e, ParkSeq: 1})
				refuse(f, what, "execution id", spi.CapAppendIfUnchanged, spi.AppendIfUnchanged, spi.AppendIfUnchangedRequest{Execution: e, Events: events(1)})
				refuse(f, what, "execution id", spi.CapCopyPrefix, spi.CopyPrefix, spi.CopyPrefixRequest{From: e, To: "e", N: 1})
				refuse(f, what, "execution id", spi.CapCopyPrefix, spi.CopyPrefix, spi.CopyPrefixRequest{From: "e", To: e, N: 1})
				refuse(f, what, "execution id", spi.CapTruncatePrefixKeeping, spi.TruncatePrefixKeeping, spi.TruncatePrefixKeepingRequest{Execution: e, Incarnation: 1, Before: 1})
				refuse(f, what, "execution id", spi.CapDeleteExecution, spi.DeleteExecution, spi.DeleteExecutionRequest{Execution: e, Incarnation: 1})
				refuse(f, what, "execution id", spi.CapTimers, spi.ScheduleTimer, spi.ScheduleTimerRequest{Timer: spi.Timer{Execution: e, WakeAt: longAgo}})
				refuse(f, what, "execution id", spi.CapTimers, spi.CompleteTimer, spi.CompleteTimerRequest{Execution: e, WakeAt: longAgo, Version: 1})
				refuse(f, what, "ref name", spi.CapRefs, spi.PutRef, spi.PutRefRequest{Name: spi.RefName(name), Execution: "e"})
				refuse(f, what, "execution id", spi.CapRefs, spi.PutRef, spi.PutRefRequest{Name: "r", Execution: e})
				refuse(f, what, "ref name", spi.CapRefs, spi.GetRef, spi.GetRefRequest{Name: spi.RefName(name)})
				refuse(f, what, "ref name", spi.CapRefs, spi.DeleteRef, spi.DeleteRefRequest{Name: spi.RefName(name), ExpectedVersion: 1})
				refuse(f, what, "ref name", spi.CapPromoteRef, spi.PromoteRef, spi.PromoteRefRequest{Name: spi.RefName(name), Execution: "e", ExpectedVersion: 1})
				refuse(f, what, "ref name", spi.CapRefLineage, spi.RefLineage, spi.RefLineageRequest{Name: spi.RefName(name), Limit: 1})
				refuse(f, what, "lease name", spi.CapLeases, spi.AcquireLease, spi.AcquireLeaseRequest{Name: spi.LeaseName(name), Holder: "h", TTL: time.Second})
				refuse(f, what, "lease name", spi.CapLeases, spi.RenewLease, spi.RenewLeaseRequest{Name: spi.LeaseName(name), Token: 1, TTL: time.Second})
				refuse(f, what, "lease name", spi.CapLeases, spi.ReleaseLease, spi.ReleaseLeaseRequest{Name: spi.LeaseName(name), Token: 1})
				refuse(f, what, "key owner", spi.CapDataKeys, spi.GetDataKey, spi.GetDataKeyRequest{Owner: spi.KeyOwner(name)})
				refuse(f, what, "key owner", spi.CapDataKeys, spi.DestroyDataKey, spi.DestroyDataKeyRequest{Owner: spi.KeyOwner(name), Version: 1})
			}
			f.wantNames("the executions", f.list("", 10), nil)
		},
	},
	{
		"a cursor or a prefix that is no text is refused",
		0,
		func(f *fixture) {
			for _, bad := range []string{"a\xff", "\xed\xa0\x80"} {
				refuse(f, bad, "cursor", spi.CapEvents, spi.ListExecutions, spi.ListExecutionsRequest{After: bad, Limit: 1})
				refuse(f, bad, "prefix", spi.CapEvents, spi.ListExecutions, spi.ListExecutionsRequest{Prefix: bad, Limit: 1})
				refuse(f, bad, "cursor", spi.CapRefs, spi.ListRefs, spi.ListRefsRequest{After: bad, Limit: 1})
				refuse(f, bad, "prefix", spi.CapRefs, spi.ListRefs, spi.ListRefsRequest{Prefix: bad, Limit: 1})
				refuse(f, bad, "cursor", spi.CapDataKeys, spi.ListDataKeys, spi.ListDataKeysRequest{After: bad, Limit: 1})
				refuse(f, bad, "prefix", spi.CapDataKeys, spi.ListDataKeys, spi.ListDataKeysRequest{Prefix: bad, Limit: 1})
				refuse(f, bad, "prefix", spi.CapTimers, spi.DueTimers, spi.DueTimersRequest{Prefix: bad, Limit: 1})
				refuse(f, bad, "prefix", spi.CapSweepTombstones, spi.SweepTombstones, spi.SweepTombstonesRequest{Prefix: bad, Limit: 1})
			}
			refuse(f, "a prefix with U+0000", "prefix", spi.CapEvents, spi.ListExecutions, spi.ListExecutionsRequest{Prefix: "a\x00", Limit: 1})
			refuse(f, "a long prefix", "prefix", spi.CapEvents, spi.ListExecutions, spi.ListExecutionsRequest{Prefix: strings.Repeat("a", spi.MaxID+1), Limit: 1})
		},
	},
	{
		"a limit that is not 1 to 10,000 is refused",
		0,
		func(f *fixture) {
			for _, limit := range []int{math.MinInt, -1, 0, spi.MaxLimit + 1, math.MaxInt} {
				what := fmt.Sprint(limit)
				refuse(f, what, "limit", spi.CapEvents, spi.Read, spi.ReadRequest{Execution: "e", Limit: limit})
				refuse(f, what, "limit", spi.CapEvents, spi.ListExecutions, spi.ListExecutionsRequest{Limit: limit})
				refuse(f, what, "limit", spi.CapRefs, spi.ListRefs, spi.ListRefsRequest{Limit: limit})
				refuse(f, what, "limit", spi.CapRefLineage, spi.RefLineage, spi.RefLineageRequest{Name: "r", Limit: limit})
				refuse(f, what, "limit", spi.CapTimers, spi.DueTimers, spi.DueTimersRequest{Limit: limit})
				refuse(f, what, "limit", spi.CapDataKeys, spi.ListDataKeys, spi.ListDataKeysRequest{Limit: limit})
				refuse(f, what, "limit", spi.CapSweepTombstones, spi.SweepTombstones, spi.SweepTombstonesRequest{Limit: limit})
			}
			for _, bytes := range []int{-1, spi.MaxReadBytes + 1} {
				refuse(f, fmt.Sprint(bytes), "max bytes", spi.CapEvents, spi.Read, spi.ReadRequest{Execution: "e", Limit: 1, MaxBytes: bytes})
			}
		},
	},
	{
		"a number that counts nothing is refused",
		0,
		func(f *fixture) {
			for _, n := range []int64{-1, math.MinInt64} {
				what := fmt.Sprint(n)
				refuse(f, what, "fence", spi.CapEvents, spi.Append, spi.AppendRequest{Execution: "e", Fence: n, Events: events(1)})
				refuse(f, what, "incarnation", spi.CapEvents, spi.Append, spi.AppendRequest{Execution: "e", Incarnation: n, Events: events(1)})
				refuse(f, what, "since sequence", spi.CapEvents, spi.Append, spi.AppendRequest{Execution: "e", SinceSeq: n, Events: events(1)})
				refuse(f, what, "expected head", spi.CapEvents, spi.Append, spi.AppendRequest{Execution: "e", ExpectedHead: min(n, spi.AnyHead-1), Events: events(1)})
				refuse(f, what, "after", spi.CapEvents, spi.Read, spi.ReadRequest{Execution: "e", After: n, Limit: 1})
				refuse(f, what, "until", spi.CapEvents, spi.Read, spi.ReadRequest{Execution: "e", Until: n, Limit: 1})
				refuse(f, what, "incarnation", spi.CapAcquireFence, spi.AcquireFence, spi.AcquireFenceRequest{Execution: "e", Incarnation: n})
				refuse(f, what, "fence", spi.CapAcquireFenceIf, spi.AcquireFenceIf, spi.AcquireFenceIfRequest{Execution: "e", Fence: n})
				refuse(f, what, "park sequence", spi.CapAcquireFenceIf, spi.AcquireFenceIf, spi.AcquireFenceIfRequest{Execution: "e", ParkSeq: n})
				refuse(f, what, "head", spi.CapAppendIfUnchanged, spi.AppendIfUnchanged, spi.AppendIfUnchangedRequest{Execution: "e", Head: n, Events: events(1)})
				refuse(f, what, "n", spi.CapCopyPrefix, spi.CopyPrefix, spi.CopyPrefixRequest{From: "e", To: "f", N: n})
				refuse(f, what, "keep[1]", spi.CapTruncatePrefixKeeping, spi.TruncatePrefixKeeping, spi.TruncatePrefixKeepingRequest{Execution: "e", Incarnation: 1, Before: 1, Keep: []int64{1, n}})
				refuse(f, what, "older than", spi.CapSweepTombstones, spi.SweepTombstones, spi.SweepTombstonesRequest{OlderThan: time.Duration(n), Limit: 1})
				refuse(f, what, "sequence", spi.CapRefs, spi.PutRef, spi.PutRefRequest{Name: "r", Execution: "e", Sequence: n})
				refuse(f, what, "token", spi.CapLeases, spi.ReleaseLease, spi.ReleaseLeaseRequest{Name: "l", Token: n})
				refuse(f, what, "ttl", spi.CapLeases, spi.AcquireLease, spi.AcquireLeaseRequest{Name: "l", Holder: "h", TTL: time.Duration(n)})
				refuse(f, what, "route", spi.CapEvents, spi.Head, spi.HeadRequest{Execution: "e", Route: spi.Route{Epoch: n}})
			}
			refuse(f, "no incarnation", "incarnation", spi.CapDeleteExecution, spi.DeleteExecution, spi.DeleteExecutionRequest{Execution: "e"})
			refuse(f, "no incarnation", "incarnation", spi.CapTruncatePrefixKeeping, spi.TruncatePrefixKeeping, spi.TruncatePrefixKeepingRequest{Execution: "e", Before: 1})
			refuse(f, "since past the head", "since sequence", spi.CapEvents, spi.Append, spi.AppendRequest{Execution: "e", ExpectedHead: 3, SinceSeq: 5, Events: events(1)})
			refuse(f, "a copy onto itself", "to", spi.CapCopyPrefix, spi.CopyPrefix, spi.CopyPrefixRequest{From: "e", To: "e", N: 1})
			refuse(f, "a slot without an epoch", "route", spi.CapEvents, spi.Head, spi.HeadRequest{Execution: "e", Route: spi.Route{Slot: 1}})
		},
	},
	{
		"a malformed event is refused, and its whole append with it",
		0,
		func(f *fixture) {
			for _, c := range []struct {
				what, field string
				spoil       func(*spi.Event)
			}{
				{"no id", "id", func(e *spi.Event) { e.ID = spi.EventID{} }},
				{"a sequence", "sequence", func(e *spi.Event) { e.Sequence = 2 }},
				{"a fence", "fence", func(e *spi.Event) { e.Fence = 1 }},
				{"no kind", "kind", func(e *spi.Event) { e.Kind = "" }},
				{"a kind of 129 bytes", "kind", func(e *spi.Event) { e.Kind = strings.Repeat("k", spi.MaxKind+1) }},
				{"a kind that is no text", "kind", func(e *spi.Event) { e.Kind = "\xed\xb0\x80" }},
				{"a kind with U+0000", "kind", func(e *spi.Event) { e.Kind = "k\x00" }},
				{"a time finer than a microsecond", "recordedAt", func(e *spi.Event) { e.RecordedAt = longAgo.Add(time.Nanosecond) }},
				{"a time in the year 10000", "recordedAt", func(e *spi.Event) { e.RecordedAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }},
				{"a time before the year 1", "recordedAt", func(e *spi.Event) { e.RecordedAt = time.Date(0, 12, 31, 0, 0, 0, 0, time.UTC) }},
				{"a payload past 8 MiB", "payload", func(e *spi.Event) { e.Payload = make([]byte, spi.MaxPayload+1) }},
				{"metadata that is no text", "metadata", func(e *spi.Event) { e.Metadata = map[string]string{"k": "\xff"} }},
				{"metadata with U+0000", "metadata", func(e *spi.Event) { e.Metadata = map[string]string{"\x00": "v"} }},
				{"too much metadata", "metadata", func(e *spi.Event) { e.Metadata = map[string]string{"k": strings.Repeat("v", spi.MaxMetadata)} }},
				{"too many pairs of metadata", "metadata", func(e *spi.Event) { e.Metadata = manyPairs(spi.MaxMetadataPairs + 1) }},
			} {
				bad := events(3)
				c.spoil(&bad[1])
				refuse(f, c.what, "events[1]."+c.field, spi.CapEvents, spi.Append, spi.AppendRequest{Execution: "e", Events: bad})
				refuse(f, c.what, "events[1]."+c.field, spi.CapAppendIfUnchanged, spi.AppendIfUnchanged, spi.AppendIfUnchangedRequest{Execution: "e", Events: bad})
				refuse(f, c.what, "appends[0].events[1]."+c.field, spi.CapAppendBatch, spi.AppendBatch, spi.AppendBatchRequest{Appends: []spi.AppendRequest{{Execution: "e", Events: bad}}})
			}
			for _, n := range []int{3, 100} { // few are compared otherwise than many
				twice := events(n)
				twice[n-1].ID = twice[1].ID
				refuse(f, "an event id twice", fmt.Sprintf("events[%d].id", n-1), spi.CapEvents, spi.Append, spi.AppendRequest{Execution: "e", Events: twice})
			}
			refuse(f, "no events", "events", spi.CapEvents, spi.Append, spi.AppendRequest{Execution: "e"})
			refuse(f, "too many events", "events", spi.CapEvents, spi.Append, spi.AppendRequest{Execution: "e", Events: events(spi.MaxEvents + 1)})
			f.wantNothing("e")
		},
	},
	{
		"an append past 64 MiB is refused",
		0,
		func(f *fixture) {
			large := events(9)
			shared := make([]byte, spi.MaxPayload)
			for i := range large {
				large[i].Payload = shared
			}
			refuse(f, "72 MiB", "events", spi.CapEvents, spi.Append, spi.AppendRequest{Execution: "e", Events: large})
			refuse(f, "72 MiB in a batch", "appends", spi.CapAppendBatch, spi.AppendBatch, spi.AppendBatchRequest{Appends: []spi.AppendRequest{
				{Execution: "e", Events: large[:4]}, {Execution: "f", Events: large[4:]},
			}})
			f.wantNothing("e")
		},
	},
	{
		"a malformed timer, ref, lease or key is refused",
		0,
		func(f *fixture) {
			timer := func(what, field string, t spi.Timer) {
				refuse(f, what, field, spi.CapTimers, spi.ScheduleTimer, spi.ScheduleTimerRequest{Timer: t})
			}
			timer("no time", "wake time", spi.Timer{Execution: "e"})
			timer("a time finer than a microsecond", "wake time", spi.Timer{Execution: "e", WakeAt: longAgo.Add(1)})
			timer("a negative attempt", "attempt", spi.Timer{Execution: "e", WakeAt: longAgo, Redrive: true, Attempt: -1})
			timer("a huge attempt", "attempt", spi.Timer{Execution: "e", WakeAt: longAgo, Redrive: true, Attempt: math.MaxInt32 + 1})
			timer("an attempt without redrive", "attempt", spi.Timer{Execution: "e", WakeAt: longAgo, Attempt: 1})
			timer("a version", "version", spi.Timer{Execution: "e", WakeAt: longAgo, Version: 1})
			refuse(f, "no version", "version", spi.CapTimers, spi.CompleteTimer, spi.CompleteTimerRequest{Execution: "e", WakeAt: longAgo})
			refuse(f, "a version below any", "expected version", spi.CapRefs, spi.PutRef, spi.PutRefRequest{Name: "r", Execution: "e", ExpectedVersion: -2})
			refuse(f, "version 0", "expected version", spi.CapRefs, spi.DeleteRef, spi.DeleteRefRequest{Name: "r"})
			refuse(f, "any version", "expected version", spi.CapPromoteRef, spi.PromoteRef, spi.PromoteRefRequest{Name: "r", Execution: "e", ExpectedVersion: spi.AnyVersion})
			lease := func(what, field, holder string, ttl time.Duration) {
				refuse(f, what, field, spi.CapLeases, spi.AcquireLease, spi.AcquireLeaseRequest{Name: "l", Holder: holder, TTL: ttl})
			}
			lease("no holder", "holder", "", time.Second)
			lease("a long holder", "holder", strings.Repeat("h", spi.MaxDescription+1), time.Second)
			lease("too short", "ttl", "h", spi.MinLeaseTTL-1)
			lease("too long", "ttl", "h", spi.MaxLeaseTTL+1)
			lease("too fine", "ttl", "h", time.Second+1)
			key := func(what, field string, k spi.DataKey) {
				refuse(f, what, field, spi.CapDataKeys, spi.CreateDataKey, spi.CreateDataKeyRequest{Key: k})
			}
			some := spi.KeyID{1}
			key("no id", "key id", spi.DataKey{Owner: "e", Version: 1, WrappedBy: "kms", Wrapped: []byte{1}})
			key("no version", "version", spi.DataKey{Owner: "e", ID: some, WrappedBy: "kms", Wrapped: []byte{1}})
			key("no key", "wrapped key", spi.DataKey{Owner: "e", Version: 1, ID: some, WrappedBy: "kms"})
			key("a huge key", "wrapped key", spi.DataKey{Owner: "e", Version: 1, ID: some, WrappedBy: "kms", Wrapped: make([]byte, spi.MaxWrappedKey+1)})
			key("no wrapping key", "wrapping key", spi.DataKey{Owner: "e", Version: 1, ID: some, Wrapped: []byte{1}})
		},
	},
	{
		"a malformed change of ownership is refused",
		spi.CapChangeOwnership,
		func(f *fixture) {
			identity := spi.Identity{Cluster: "c", Shard: "s", Fingerprint: "f"}
			change := func(what, field string, id spi.Identity, slots ...spi.SlotRecord) {
				refuse(f, what, field, spi.CapChangeOwnership, spi.ChangeOwnership, spi.ChangeOwnershipRequest{Identity: id, Slots: slots})
			}
			change("no cluster", "cluster", spi.Identity{Shard: "s", Fingerprint: "f"})
			change("no shard", "shard", spi.Identity{Cluster: "c", Fingerprint: "f"})
			change("no fingerprint", "fingerprint", spi.Identity{Cluster: "c", Shard: "s"})
			owned := spi.SlotRecord{Slot: 1, State: spi.SlotOwned, Epoch: 1}
			change("a slot twice", "slots[1]", identity, owned, owned)
			change("no state", "slots[0]", identity, spi.SlotRecord{Slot: 1, Epoch: 1})
			change("no epoch", "slots[0]", identity, spi.SlotRecord{Slot: 1, State: spi.SlotOwned})
			change("a hash slot with a tenant", "slots[0]", identity, spi.SlotRecord{Slot: 1, State: spi.SlotOwned, Epoch: 1, Tenant: "t"})
			change("a pin without a tenant", "slots[0]", identity, spi.SlotRecord{Slot: spi.FirstPin, State: spi.SlotOwned, Epoch: 1})
			res, err := spi.GetOwnership(f.ctx, f.store, spi.GetOwnershipRequest{})
			if err != nil || len(res.Shards) > 0 {
				f.Errorf("the ownership is %+v (%v)", res, err)
			}
		},
	},
}}

// refuse checks that a request is refused for a field before anything happens, if
// the store offers the method.
func refuse[Q, R any](f *fixture, what, field string, need spi.Caps, call func(context.Context, *spi.Store, Q) (R, error), req Q) {
	f.Helper()
	if !f.store.Offered().Has(need) {
		return
	}
	_, err := call(f.ctx, f.store, req)
	invalid, ok := errors.AsType[*spi.InvalidArgumentError](err)
	if !ok || invalid.Field != field || invalid.Rule == "" {
		f.Errorf("%.40q for the %s answers %v", what, field, err)
	}
}

func manyPairs(n int) map[string]string {
	pairs := map[string]string{}
	for i := range n {
		pairs[fmt.Sprint(i)] = ""
	}
	return pairs
}
