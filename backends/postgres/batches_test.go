package postgres_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

// A logs makes executions whose names begin alike.
type logs struct {
	*testing.T
	store *spi.Store
	begin string
}

var (
	seven    = spi.Route{Slot: 7, Epoch: 1}
	eight    = spi.Route{Slot: 8, Epoch: 1}
	nine     = spi.Route{Slot: 9, Epoch: 1} // frozen in the end
	ownKey   = spi.KeyID{1}
	otherKey = spi.KeyID{2}
)

func (l *logs) id(name string) spi.ExecutionID { return spi.ExecutionID(l.begin + name) }

// event is the nth of a log. Its id is the same wherever it is.
func (l *logs) event(n int64) spi.Event { return spi.Event{ID: spi.EventID{1, byte(n)}, Kind: "Noted"} }

// append makes a log of n events, which it appends one by one.
func (l *logs) append(name string, route spi.Route, incarnation, n int64) {
	l.Helper()
	for head := range n {
		l.must(spi.Append(l.Context(), l.store, spi.AppendRequest{
			Route: route, Execution: l.id(name), ExpectedHead: head, Incarnation: incarnation, Events: []spi.Event{l.event(head + 1)},
		}))
	}
}

func (l *logs) must(_ any, err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *logs) remove(name string) {
	l.Helper()
	l.must(spi.DeleteExecution(l.Context(), l.store, spi.DeleteExecutionRequest{Route: seven, Execution: l.id(name), Incarnation: 1}))
}

func (l *logs) acquire(name string, times int) {
	l.Helper()
	for range times {
		l.must(spi.AcquireFence(l.Context(), l.store, spi.AcquireFenceRequest{Route: seven, Execution: l.id(name)}))
	}
}

func (l *logs) key(name string) {
	l.Helper()
	key := spi.DataKey{Owner: spi.KeyOwner(l.id(name)), Version: 1, ID: ownKey, WrappedBy: "w", Wrapped: []byte{1}}
	l.must(spi.CreateDataKey(l.Context(), l.store, spi.CreateDataKeyRequest{Route: seven, Key: key}))
}

// requests makes every log that an append can find, and returns an append to each.
func (l *logs) requests() (reqs []spi.AppendRequest) {
	l.Helper()
	add := func(name string, req spi.AppendRequest, events ...spi.Event) {
		req.Execution, req.Events = l.id(name), events
		if req.Route == (spi.Route{}) {
			req.Route = seven
		}
		if events == nil {
			req.Events = []spi.Event{l.event(req.ExpectedHead + 1)}
		}
		reqs = append(reqs, req)
	}
	answer := spi.Event{ID: spi.EventID{9}, Kind: spi.KindExecutionCompleted}

	add("first", spi.AppendRequest{})
	for head := range int64(4) {
		name := fmt.Sprint("next-", head+1)
		l.append(name, seven, 0, head+1)
		add(name, spi.AppendRequest{ExpectedHead: head + 1})
	}
	l.append("several", seven, 0, 1)
	add("several", spi.AppendRequest{ExpectedHead: 1, SinceSeq: 2}, l.event(2), l.event(3))
	l.append("above the head", seven, 0, 2)
	add("above the head", spi.AppendRequest{ExpectedHead: 4})
	add("above nothing", spi.AppendRequest{ExpectedHead: 1})
	l.append("below the head", seven, 0, 3)
	add("below the head", spi.AppendRequest{ExpectedHead: 1}, spi.Event{ID: spi.EventID{9}, Kind: "Noted"})
	l.append("there already", seven, 0, 3)
	add("there already", spi.AppendRequest{ExpectedHead: 2})
	for name, head := range map[string]int64{"after a kept event": 3, "below the floor": 5, "above the floor": 10} {
		l.append(name, seven, 0, 10)
		l.must(spi.TruncatePrefixKeeping(l.Context(), l.store, spi.TruncatePrefixKeepingRequest{Route: seven, Execution: l.id(name), Incarnation: 1, Before: 8, Keep: []int64{3}}))
		add(name, spi.AppendRequest{ExpectedHead: head}, spi.Event{ID: spi.EventID{9}, Kind: "Noted"})
	}
	for token := range int64(3) {
		name := fmt.Sprint("plain under ", token)
		l.append(name, seven, 0, 1)
		l.acquire(name, 2)
		add(name, spi.AppendRequest{ExpectedHead: 1, Fence: token})
		name = fmt.Sprint("answer under ", token)
		l.append(name, seven, 0, 1)
		l.acquire(name, 2)
		add(name, spi.AppendRequest{ExpectedHead: 1, Fence: token}, answer)
	}
	for incarnation := range int64(4) {
		name := fmt.Sprint("deleted ", incarnation)
		l.append(name, seven, 0, 1)
		l.remove(name)
		add(name, spi.AppendRequest{Incarnation: incarnation})
		name = fmt.Sprint("made again ", incarnation)
		l.append(name, seven, 0, 3)
		l.remove(name)
		l.append(name, seven, 2, 1)
		add(name, spi.AppendRequest{ExpectedHead: 1, Incarnation: incarnation})
	}
	for i, key := range []spi.KeyID{{}, ownKey, otherKey} {
		for head := range int64(2) {
			name := fmt.Sprint("keyed ", i, head)
			l.key(name)
			for h := range head {
				l.must(spi.Append(l.Context(), l.store, spi.AppendRequest{Route: seven, Execution: l.id(name), ExpectedHead: h, KeyID: ownKey, Events: []spi.Event{l.event(1)}}))
			}
			add(name, spi.AppendRequest{ExpectedHead: head, KeyID: key})
		}
	}
	l.append("keyless", seven, 0, 1)
	add("keyless", spi.AppendRequest{ExpectedHead: 1, KeyID: ownKey})
	for i, key := range []spi.KeyID{{}, ownKey} {
		name := fmt.Sprint("shredded ", i)
		l.key(name)
		l.must(spi.Append(l.Context(), l.store, spi.AppendRequest{Route: seven, Execution: l.id(name), KeyID: ownKey, Events: []spi.Event{l.event(1)}}))
		l.must(spi.DestroyDataKey(l.Context(), l.store, spi.DestroyDataKeyRequest{Route: seven, Owner: spi.KeyOwner(l.id(name)), Version: 1}))
		add(name, spi.AppendRequest{ExpectedHead: 1, KeyID: key})
	}
	for name, route := range map[string]spi.Route{"another's slot": eight, "another epoch": {Slot: 7, Epoch: 2}, "no slot of ours": {Slot: 10, Epoch: 1}} {
		l.append(name, seven, 0, 1)
		add(name, spi.AppendRequest{Route: route, ExpectedHead: 1})
	}
	l.append("frozen", nine, 0, 1)
	add("frozen", spi.AppendRequest{Route: nine, ExpectedHead: 1})
	return reqs
}

// answers says what became of appends, without the beginnings of names.
func (l *logs) answers(reqs []spi.AppendRequest, do func(i int) (spi.AppendResponse, error)) []string {
	l.Helper()
	answers := make([]string, len(reqs))
	for i, req := range reqs {
		res, err := do(i)
		if op, ok := errors.AsType[*spi.OpError](err); ok {
			err = op.Err
		}
		log, readErr := spi.Read(l.Context(), l.store, spi.ReadRequest{Route: req.Route, Execution: req.Execution, Limit: 100})
		var sequences []int64
		for _, e := range log.Events {
			sequences = append(sequences, e.Sequence, int64(e.ID[1]))
		}
		answers[i] = strings.ReplaceAll(fmt.Sprintf("%s: %+v %T %v; the log is %v %v", req.Execution, res, err, err, sequences, readErr), l.begin, "")
	}
	return answers
}

// TestABatchAnswersEachAppendAsItIsAnsweredAlone compares appends to like logs, alone and
// in one batch. Whatever of the batch can land, lands before the rest is judged.
func TestABatchAnswersEachAppendAsItIsAnsweredAlone(t *testing.T) {
	s := open(t, migrated.Fresh(t, pgtest.ICU)).Store()
	own := func(version int64, slots ...spi.SlotRecord) {
		t.Helper()
		_, err := spi.ChangeOwnership(t.Context(), s, spi.ChangeOwnershipRequest{
			ExpectedVersion: version, Identity: spi.Identity{Cluster: "c", Shard: "s", Fingerprint: "f"}, Slots: slots,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var owned []spi.SlotRecord
	for _, r := range []spi.Route{seven, eight, nine} {
		owned = append(owned, spi.SlotRecord{Slot: r.Slot, State: spi.SlotOwned, Epoch: r.Epoch})
	}
	own(0, owned...)
	alone, batch := &logs{t, s, "alone "}, &logs{t, s, "batch "}
	single, batched := alone.requests(), batch.requests()
	for _, reqs := range [][]spi.AppendRequest{single, batched} { // in an order that is not that of ids
		slices.SortFunc(reqs, func(a, b spi.AppendRequest) int { return -strings.Compare(string(a.Execution), string(b.Execution)) })
	}
	own(1, spi.SlotRecord{Slot: nine.Slot, State: spi.SlotFrozen, Epoch: nine.Epoch})

	want := alone.answers(single, func(i int) (spi.AppendResponse, error) { return spi.Append(t.Context(), s, single[i]) })
	res, err := spi.AppendBatch(t.Context(), s, spi.AppendBatchRequest{Appends: batched})
	if err != nil {
		t.Fatal(err)
	}
	got := batch.answers(batched, func(i int) (spi.AppendResponse, error) { return res.Results[i].AppendResponse, res.Results[i].Err })
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("in a batch %s\nalone      %s", got[i], want[i])
		}
	}
}
