package conformance

import (
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// longAgo is before any store's clock.
var longAgo = time.Date(2001, 2, 3, 4, 5, 6, 789_000, time.UTC)

var appends = topic{"appends", []testCase{
	{
		"sequences count from 1 without gaps",
		0,
		func(f *fixture) {
			first := f.appendN("e", 0, 1)
			equal(f, "the first sequence", first.FirstSeq, 1)
			next := f.appendN("e", 1, 3)
			equal(f, "the next append's first sequence", next.FirstSeq, 2)
			equal(f, "the head", next.Head, 4)
			f.wantLog("e", 1, 2, 3, 4)
			equal(f, "the head that Head tells", f.head("e").Head, 4)
		},
	},
	{
		"an append at another head is a conflict that tells the head and stores nothing",
		0,
		func(f *fixture) {
			f.appendN("e", 0, 3)
			for _, head := range []int64{0, 1, 2, 4, 1 << 40} {
				_, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: "e", ExpectedHead: head, Events: events(2)})
				equal(f, "the conflict", *wantError[*spi.ConflictError](f, err), spi.ConflictError{Execution: "e", Head: 3})
			}
			f.wantLog("e", 1, 2, 3)
		},
	},
	{
		"an append at any head goes to the end",
		0,
		func(f *fixture) {
			for n := range int64(3) {
				res := f.appendN("e", spi.AnyHead, 2)
				equal(f, "the first sequence", res.FirstSeq, 2*n+1)
			}
			f.wantLog("e", upTo(6)...)
		},
	},
	{
		"an append at a head succeeds only at that head (invariant 3)",
		0,
		func(f *fixture) {
			const writers, rounds = 8, 10
			var landed [writers][]int64
			together(writers, func(w int) {
				for head := int64(0); head < rounds; {
					res, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: "e", ExpectedHead: head, Events: events(1)})
					if err == nil {
						if res.FirstSeq != head+1 {
							f.Errorf("an append at head %d is at %d", head, res.FirstSeq)
							return
						}
						landed[w] = append(landed[w], res.FirstSeq)
						head = res.Head
						continue
					}
					conflict, ok := errors.AsType[*spi.ConflictError](err)
					if !ok || conflict.Head == head {
						f.Errorf("at head %d: %v", head, err)
						return
					}
					head = conflict.Head
				}
			})
			all := slices.Sorted(slices.Values(slices.Concat(landed[:]...)))
			if !slices.Equal(all, upTo(int64(len(all)))) {
				f.Errorf("the writers were told the sequences %v", all)
			}
			f.wantLog("e", upTo(int64(len(all)))...)
		},
	},
	{
		"the events of an append stand together, all or none (invariant 2)",
		0,
		func(f *fixture) {
			const writers, size = 8, 3
			requests := make([]spi.AppendRequest, writers)
			for w := range requests {
				requests[w] = spi.AppendRequest{Execution: "e", ExpectedHead: spi.AnyHead, Events: events(size)}
			}
			together(writers, func(w int) {
				if _, err := spi.Append(f.ctx, f.store, requests[w]); err != nil {
					f.Error(err)
				}
			})
			log := f.read("e")
			f.wantLog("e", upTo(writers*size)...)
			for len(log) >= size {
				if !slices.ContainsFunc(requests, func(r spi.AppendRequest) bool { return sameIDs(r.Events, log[:size]) }) {
					f.Errorf("the events at %d are of no one append", log[0].Sequence)
				}
				log = log[size:]
			}
		},
	},
	{
		"ten thousand events are one append",
		0,
		func(f *fixture) {
			all := events(spi.MaxEvents)
			res := f.mustAppend(spi.AppendRequest{Execution: "e", Events: all})
			equal(f, "the head", res.Head, spi.MaxEvents)
			_, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: "e", ExpectedHead: 1, Events: events(spi.MaxEvents)})
			wantError[*spi.ConflictError](f, err)
			log := f.read("e")
			if !sameIDs(log, all) {
				f.Errorf("the log holds %d events, and they are not what was appended", len(log))
			}
		},
	},
	{
		"a refused first append leaves nothing to list",
		0,
		func(f *fixture) {
			_, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: "e", ExpectedHead: 1, Events: events(1)})
			equal(f, "the conflict", *wantError[*spi.ConflictError](f, err), spi.ConflictError{Execution: "e"})
			_, err = spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: "e", Incarnation: 7, Events: events(1)})
			equal(f, "the incarnation", wantError[*spi.IncarnationError](f, err).Current, 1)
			_, err = spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: "e", ExpectedHead: spi.AnyHead, SinceSeq: 5, Events: events(1)})
			wantError[*spi.ConflictError](f, err)
			f.wantNothing("e")
		},
	},
	{
		"a first append that the fence refuses leaves nothing to list",
		spi.CapAcquireFence,
		func(f *fixture) {
			f.acquire("e")
			_, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: "e", Events: []spi.Event{event(spi.KindExecutionCompleted)}})
			wantError[*spi.StaleFenceError](f, err)
			f.wantNothing("e")
		},
	},
	{
		"an event comes back as it went in, whichever way it was appended",
		0,
		func(f *fixture) {
			in := spi.Event{
				ID: spi.NewEventID(), Kind: "Ärger/注文 𝄞%_\\", Kernel: true,
				RecordedAt: time.Date(1969, 7, 20, 22, 17, 39, 999_999_000, time.FixedZone("", 2*60*60)),
				Metadata:   map[string]string{"": "empty key", "empty value": "", "'\"\\": "\t\n\u2028", "𝄞": "\U0010FFFF"},
				Payload:    []byte("payload"),
			}
			for _, way := range f.ways() {
				if _, err := way.append(spi.AppendRequest{Execution: spi.ExecutionID(way.name), Events: []spi.Event{in, event("Noted")}}); err != nil {
					f.Fatal(err)
				}
				out := f.first(spi.ExecutionID(way.name))
				equal(f, "the id", out.ID, in.ID)
				equal(f, "the kind", out.Kind, in.Kind)
				equal(f, "the kernel stamp", out.Kernel, in.Kernel)
				equal(f, "the time", out.RecordedAt, in.RecordedAt.UTC())
				equal(f, "the payload", string(out.Payload), string(in.Payload))
				if !maps.Equal(out.Metadata, in.Metadata) {
					f.Errorf("the metadata is %q, not %q", out.Metadata, in.Metadata)
				}
			}
		},
	},
	{
		"whichever way it was appended, the answer says where the events are and in which incarnation",
		spi.CapDeleteExecution,
		func(f *fixture) {
			for _, way := range f.ways() {
				e := spi.ExecutionID(way.name)
				f.appendN(e, 0, 1)
				f.delete(e)
				for n := range int64(2) {
					res, err := way.append(spi.AppendRequest{Execution: e, ExpectedHead: 3 * n, Incarnation: 2, Events: events(3)})
					if want := (spi.AppendResponse{FirstSeq: 3*n + 1, Head: 3*n + 3, Incarnation: 2, Floor: 1}); err != nil || res != want {
						f.Errorf("%s answers %+v (%v), not %+v", way.name, res, err, want)
					}
				}
			}
		},
	},
	{
		"times keep their microseconds from the year 1 to the year 9999",
		0,
		func(f *fixture) {
			for i, at := range []time.Time{
				time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC),
				time.Date(1883, 11, 18, 12, 3, 58, 123_456_000, time.UTC),
				time.Date(2038, 1, 19, 3, 14, 8, 1000, time.UTC),
				time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
			} {
				e := event("Noted")
				e.RecordedAt = at
				f.mustAppend(spi.AppendRequest{Execution: id("e%d", i), Events: []spi.Event{e}})
				equal(f, "the time", f.first(id("e%d", i)).RecordedAt, at)
			}
		},
	},
	{
		"a time that the writer leaves out is the store's own",
		0,
		func(f *fixture) {
			f.appendN("e", 0, 1)
			at := f.first("e").RecordedAt
			if at.IsZero() || at.Location() != time.UTC || at.Nanosecond()%1000 != 0 || time.Since(at).Abs() > 24*time.Hour {
				f.Errorf("the time is %v", at)
			}
			equal(f, "the time read again", f.first("e").RecordedAt, at)
		},
	},
	{
		"what becomes of a request or a response changes nothing that is stored",
		0,
		func(f *fixture) {
			e := event("Noted")
			e.Payload, e.Metadata = []byte("as it was"), map[string]string{"k": "as it was"}
			req := spi.AppendRequest{Execution: "e", Events: []spi.Event{e}}
			f.mustAppend(req)
			spoil := func(e spi.Event) {
				copy(e.Payload, "SPOILT")
				for k := range e.Metadata {
					e.Metadata[k] = "SPOILT"
				}
			}
			spoil(req.Events[0])
			req.Events[0].Kind = "SPOILT"
			spoil(f.first("e"))
			got := f.first("e")
			equal(f, "the kind", got.Kind, "Noted")
			equal(f, "the payload", string(got.Payload), "as it was")
			equal(f, "the metadata", got.Metadata["k"], "as it was")
		},
	},
	{
		"an acknowledged event is there when the store is opened again",
		0,
		func(f *fixture) {
			f.appendN("e", 0, 3)
			f.reopen()
			f.wantLog("e", 1, 2, 3)
			f.appendN("e", 3, 1)
			if got := f.list("", 10); !slices.Equal(got, []string{"e"}) {
				f.Errorf("the executions are %q", got)
			}
		},
	},
	{
		"an expected head or a token at the edge of 64 bits stays what it is",
		0,
		func(f *fixture) {
			for i, n := range edges {
				e := id("e%d", i)
				f.mustAppend(spi.AppendRequest{Execution: e, Fence: n, Events: events(1)})
				equal(f, "the token of the event", f.first(e).Fence, n)
				_, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: e, ExpectedHead: n, Events: events(1)})
				equal(f, "the conflict's head", wantError[*spi.ConflictError](f, err).Head, 1)
				_, err = spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: e, ExpectedHead: spi.AnyHead, SinceSeq: n, Events: events(1)})
				equal(f, "the conflict's head", wantError[*spi.ConflictError](f, err).Head, 1)
				_, err = spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: e, ExpectedHead: 1, Incarnation: n, Events: events(1)})
				equal(f, "the incarnation", wantError[*spi.IncarnationError](f, err).Current, 1)
			}
			res, err := spi.Read(f.ctx, f.store, spi.ReadRequest{Execution: "e0", After: math.MaxInt64, Limit: 1})
			if err != nil || len(res.Events) > 0 {
				f.Errorf("past the largest sequence are %d events (%v)", len(res.Events), err)
			}
		},
	},
	{
		"a refused append says what it found in the order of the rules",
		spi.CapAcquireFence | spi.CapDeleteExecution,
		func(f *fixture) {
			f.appendN("e", 0, 1)
			f.delete("e")
			f.mustAppend(spi.AppendRequest{Execution: "e", Incarnation: 2, Events: events(2)})
			f.acquire("e")
			f.acquire("e")
			wrong := spi.AppendRequest{Execution: "e", Incarnation: 1, ExpectedHead: 5, Fence: 1, Events: events(1)}
			_, err := spi.Append(f.ctx, f.store, wrong)
			wantError[*spi.IncarnationError](f, err)
			wrong.Incarnation = 2
			_, err = spi.Append(f.ctx, f.store, wrong)
			equal(f, "the token", wantError[*spi.StaleFenceError](f, err).Current, 2)
			wrong.Fence = 2
			_, err = spi.Append(f.ctx, f.store, wrong)
			equal(f, "the head", wantError[*spi.ConflictError](f, err).Head, 2)
			wrong.ExpectedHead = 2
			f.mustAppend(wrong)
		},
	},
}}

// A way is one of the methods that append.
type way struct {
	name   string
	append func(spi.AppendRequest) (spi.AppendResponse, error)
}

// ways returns the methods that append, of those that the store offers.
func (f *fixture) ways() []way {
	all := []way{{"append", func(req spi.AppendRequest) (spi.AppendResponse, error) { return spi.Append(f.ctx, f.store, req) }}}
	if f.store.Offered().Has(spi.CapAppendBatch) {
		all = append(all, way{"batch", func(req spi.AppendRequest) (spi.AppendResponse, error) {
			res := f.batch(req)[0]
			return res.AppendResponse, res.Err
		}})
	}
	if f.store.Offered().Has(spi.CapAppendIfUnchanged) {
		all = append(all, way{"unchanged", func(req spi.AppendRequest) (spi.AppendResponse, error) {
			res, err := spi.AppendIfUnchanged(f.ctx, f.store, spi.AppendIfUnchangedRequest{
				Route: req.Route, Execution: req.Execution, Head: req.ExpectedHead, Fence: req.Fence,
				Incarnation: req.Incarnation, SinceSeq: req.SinceSeq, KeyID: req.KeyID, Events: req.Events,
			})
			return res.AppendResponse, err
		}})
	}
	return all
}

// wantNothing checks that an execution has no events and is not listed.
func (f *fixture) wantNothing(id spi.ExecutionID) {
	f.Helper()
	equal(f, "the head", f.head(id).Head, 0)
	f.wantLog(id)
	if got := f.list(string(id), 10); slices.Contains(got, string(id)) {
		f.Errorf("%q is listed", id)
	}
}

// sameIDs reports whether two logs hold the same events in the same order.
func sameIDs(a, b []spi.Event) bool {
	return slices.EqualFunc(a, b, func(a, b spi.Event) bool { return a.ID == b.ID })
}
