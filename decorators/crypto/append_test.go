package crypto_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/decorators/crypto"
	"github.com/loomgate/loomgate/spi"
)

// TestOfManyFirstAppendsAtOnceAllUseOneKey starts them on two nodes.
func TestOfManyFirstAppendsAtOnceAllUseOneKey(t *testing.T) {
	for round := range 50 {
		r := newRig(t)
		nodes := []*spi.Store{r.node(), r.node()}
		var work sync.WaitGroup
		for i := range 8 {
			work.Go(func() {
				_, err := spi.Append(t.Context(), nodes[i%2], spi.AppendRequest{Execution: "4:acme/e", ExpectedHead: spi.AnyHead, Events: []spi.Event{noted(fmt.Sprint(i))}})
				if err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
		for _, node := range append(nodes, r.node()) {
			if events, err := r.read(node, "4:acme/e"); err != nil || len(events) != 8 {
				t.Fatalf("in round %d %d events are read (%v)", round, len(events), err)
			}
		}
	}
}

// TestWhatAnExecutionCostsBelow counts the calls of the store below.
func TestWhatAnExecutionCostsBelow(t *testing.T) {
	r := newRig(t)
	r.append(r.node(), "warm", 0, noted("one"))
	var calls []string
	b := &below{before: func(op string, _ any) error {
		calls = append(calls, op)
		return nil
	}}
	s := r.nodeOver(b)
	check := func(what string, want ...string) {
		t.Helper()
		if !slices.Equal(calls, want) {
			t.Errorf("%s costs %q, not %q", what, calls, want)
		}
		calls = nil
	}
	r.append(s, "other", 0, noted("one"))
	calls = nil
	r.append(s, "e", 0, noted("one"))
	check("the first append", "Head", "CreateDataKey", "Append")
	r.append(s, "e", 1, noted("two"))
	check("the next", "Append")
	must[spi.AppendResponse](t)(spi.Append(t.Context(), s, spi.AppendRequest{Execution: "e", Events: []spi.Event{r.sealedEvent("e", 1)}}))
	check("the first append again", "Append")
	must[spi.AppendBatchResponse](t)(spi.AppendBatch(t.Context(), s, spi.AppendBatchRequest{Appends: []spi.AppendRequest{{Execution: "e", ExpectedHead: 2, Events: []spi.Event{noted("three")}}}}))
	check("a batch", "AppendBatch")
	r.wantRead(s, "e", "one", "two", "three")
	check("a read", "Read")
	faster := r.node()
	b.after = func(op string) {
		if op == "Head" {
			r.append(faster, "raced", 0, noted("one"))
		}
	}
	must[spi.AppendResponse](t)(spi.Append(t.Context(), s, spi.AppendRequest{Execution: "raced", ExpectedHead: spi.AnyHead, Events: []spi.Event{noted("two")}}))
	check("a first append that another has overtaken", "GetDataKey", "Head", "CreateDataKey", "Append")
	b.after = nil
	s = r.nodeOver(b)
	r.append(s, "e", 3, noted("four"))
	check("an append by a node that starts", "GetDataKey", "GetDataKey", "Append") // the second is the tenant's
	r.wantRead(s, "e", "one", "two", "three", "four")
	check("then a read", "Read")
}

// TestARefusedFirstAppendLeavesAKeyForTheNext and no execution.
func TestARefusedFirstAppendLeavesAKeyForTheNext(t *testing.T) {
	r := newRig(t)
	s := r.node()
	must[spi.AcquireFenceResponse](t)(spi.AcquireFence(t.Context(), s, spi.AcquireFenceRequest{Execution: "e"}))
	answer := spi.Event{ID: spi.NewEventID(), Kind: spi.KindExecutionResumed, Kernel: true}
	_, err := spi.Append(t.Context(), s, spi.AppendRequest{Execution: "e", Events: []spi.Event{answer}})
	want[*spi.StaleFenceError](t, err)
	left := r.dataKey("e", 1).ID
	if page := must[spi.ListExecutionsResponse](t)(spi.ListExecutions(t.Context(), s, spi.ListExecutionsRequest{Limit: 10})); len(page.Executions) != 0 {
		t.Errorf("listed are %q", page.Executions)
	}
	r.append(r.node(), "e", 0, noted("first"))
	if r.dataKey("e", 1).ID != left {
		t.Error("the next has another key")
	}
	r.wantRead(s, "e", "first")
}

// TestATombstoneGetsNoKeyFromWhoeverDoesNotMeanIt or it would never be swept.
func TestATombstoneGetsNoKeyFromWhoeverDoesNotMeanIt(t *testing.T) {
	r := newRig(t)
	s := r.node()
	r.append(s, "e", 0, noted("old"))
	must[spi.DeleteExecutionResponse](t)(spi.DeleteExecution(t.Context(), s, spi.DeleteExecutionRequest{Execution: "e", Incarnation: 1}))
	for _, node := range []*spi.Store{s, r.node()} {
		for _, head := range []int64{0, 1, spi.AnyHead} {
			for _, incarnation := range []int64{0, 1, 3} {
				_, err := spi.Append(t.Context(), node, spi.AppendRequest{Execution: "e", ExpectedHead: head, Incarnation: incarnation, Events: []spi.Event{noted("new")}})
				if got := *want[*spi.IncarnationError](t, err); got != (spi.IncarnationError{Execution: "e", Current: 2}) {
					t.Errorf("it answers %+v", got)
				}
			}
		}
	}
	if got := must[spi.SweepTombstonesResponse](t)(spi.SweepTombstones(t.Context(), s, spi.SweepTombstonesRequest{Limit: 10})); got.Swept != 1 {
		t.Errorf("%d tombstones are swept", got.Swept)
	}
	r.append(s, "e", 0, noted("anew"))
	r.wantRead(s, "e", "anew")
}

// TestAnExecutionThatOthersDeletedAndWroteAnewIsWrittenUnderItsNewKey by nodes that have
// the old one in memory, whichever way they append.
func TestAnExecutionThatOthersDeletedAndWroteAnewIsWrittenUnderItsNewKey(t *testing.T) {
	for name, way := range map[string]func(context.Context, *spi.Store, ...spi.Event) error{
		"Append": func(ctx context.Context, s *spi.Store, e ...spi.Event) error {
			_, err := spi.Append(ctx, s, spi.AppendRequest{Execution: "e", ExpectedHead: 1, Events: e})
			return err
		},
		"AppendIfUnchanged": func(ctx context.Context, s *spi.Store, e ...spi.Event) error {
			_, err := spi.AppendIfUnchanged(ctx, s, spi.AppendIfUnchangedRequest{Execution: "e", Head: 1, Events: e})
			return err
		},
		"AppendBatch": func(ctx context.Context, s *spi.Store, e ...spi.Event) error {
			res, err := spi.AppendBatch(ctx, s, spi.AppendBatchRequest{Appends: []spi.AppendRequest{
				{Execution: "other", ExpectedHead: spi.AnyHead, Events: []spi.Event{noted("other")}},
				{Execution: "e", ExpectedHead: 1, Events: e},
			}})
			return errors.Join(err, res.Results[0].Err, res.Results[1].Err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			behind, other := r.node(), r.node()
			r.append(behind, "e", 0, noted("old"))
			must[spi.DeleteExecutionResponse](t)(spi.DeleteExecution(t.Context(), other, spi.DeleteExecutionRequest{Execution: "e", Incarnation: 1}))
			must[spi.AppendResponse](t)(spi.Append(t.Context(), other, spi.AppendRequest{Execution: "e", Incarnation: 2, Events: []spi.Event{noted("one")}}))
			if err := way(t.Context(), behind, noted("two")); err != nil {
				t.Fatal(err)
			}
			r.wantRead(other, "e", "one", "two")
		})
	}
}

// TestABatchAnswersForEachAppendByItself with executions that are new, known, shredded,
// conflicting and of a tenant whose key cannot be had.
func TestABatchAnswersForEachAppendByItself(t *testing.T) {
	r := newRig(t)
	s := r.node()
	stored := noted("one")
	r.append(s, "4:acme/known", 0, stored)
	r.append(s, "4:acme/shredded", 0, noted("one"))
	r.append(s, "4:lost/known", 0, noted("one"))
	must[spi.DestroyDataKeyResponse](t)(spi.DestroyDataKey(t.Context(), r.inner, spi.DestroyDataKeyRequest{Owner: "4:acme/shredded", Version: 1}))
	must[spi.RewrapDataKeyResponse](t)(spi.RewrapDataKey(t.Context(), r.inner, spi.RewrapDataKeyRequest{
		Owner: "4:lost/", Version: 2, OldWrappedBy: "kms/1", WrappedBy: "kms/1", Wrapped: []byte("damaged"),
	}))
	for _, node := range []*spi.Store{s, r.node()} {
		at := must[spi.HeadResponse](t)(spi.Head(t.Context(), r.inner, spi.HeadRequest{Execution: "4:acme/known"})).Head
		item := func(id spi.ExecutionID, head int64) spi.AppendRequest {
			return spi.AppendRequest{Execution: id, ExpectedHead: head, Events: []spi.Event{noted("more")}}
		}
		fresh := spi.ExecutionID(fmt.Sprintf("4:acme/new-%d", at))
		foreign := item("4:acme/foreign", 0)
		foreign.KeyID = spi.KeyID{1}
		res := must[spi.AppendBatchResponse](t)(spi.AppendBatch(t.Context(), node, spi.AppendBatchRequest{Appends: []spi.AppendRequest{
			item("4:acme/known", at), item(fresh, 0), item("4:acme/shredded", 1), item("4:acme/conflict", 7), item("4:lost/new", 0), foreign,
		}}))
		for i, result := range res.Results[:2] {
			if result.Err != nil {
				t.Errorf("append %d answers %v", i, result.Err)
			}
		}
		want[*spi.ShreddedError](t, res.Results[2].Err)
		want[*spi.ConflictError](t, res.Results[3].Err)
		if node != s { // which has the tenant's key in memory
			if lost := want[*crypto.KeyLostError](t, res.Results[4].Err); lost.Owner != "4:lost/new" {
				t.Errorf("it answers %+v", lost)
			}
		}
		want[*spi.KeyMismatchError](t, res.Results[5].Err)
		for i, result := range res.Results {
			if errors.As(result.Err, new(*spi.OpError)) {
				t.Errorf("append %d names a method: %v", i, result.Err)
			}
		}
		r.wantRead(node, fresh, "more")
	}
}

// TestAKeyThatIsUnavailableFailsItsOwnAppendOnly of a batch.
func TestAKeyThatIsUnavailableFailsItsOwnAppendOnly(t *testing.T) {
	r := newRig(t)
	r.append(r.node(), "a", 0, noted("one"))
	r.append(r.node(), "b", 0, noted("one"))
	s := r.nodeOver(&below{before: func(_ string, req any) error {
		if get, ok := req.(spi.GetDataKeyRequest); ok && get.Owner == "a" {
			return &spi.UnavailableError{Cause: errors.New("gone")}
		}
		return nil
	}})
	res := must[spi.AppendBatchResponse](t)(spi.AppendBatch(t.Context(), s, spi.AppendBatchRequest{Appends: []spi.AppendRequest{
		{Execution: "a", ExpectedHead: 1, Events: []spi.Event{noted("two")}}, {Execution: "b", ExpectedHead: 1, Events: []spi.Event{noted("two")}},
	}}))
	want[*spi.UnavailableError](t, res.Results[0].Err)
	if errors.As(res.Results[0].Err, new(*spi.OpError)) {
		t.Errorf("it names a method: %v", res.Results[0].Err)
	}
	if res.Results[1].Err != nil || res.Results[1].Head != 2 {
		t.Errorf("the other answers %+v", res.Results[1])
	}
}

// TestABatchOfNewExecutionsGetsItsKeysSeveralAtATime lets the store take a second for a key.
func TestABatchOfNewExecutionsGetsItsKeysSeveralAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.append(r.node(), "warm", 0, noted("one"))
		s := r.nodeOver(&below{before: func(op string, _ any) error {
			if op == "CreateDataKey" {
				time.Sleep(time.Second)
			}
			return nil
		}})
		var batch spi.AppendBatchRequest
		for i := range 64 {
			batch.Appends = append(batch.Appends, spi.AppendRequest{Execution: spi.ExecutionID(fmt.Sprintf("e%d", i)), Events: []spi.Event{noted("one")}})
		}
		begun := time.Now()
		res := must[spi.AppendBatchResponse](t)(spi.AppendBatch(t.Context(), s, batch))
		for _, result := range res.Results {
			if result.Err != nil {
				t.Error(result.Err)
			}
		}
		if took := time.Since(begun); took > 8*time.Second {
			t.Errorf("64 keys take %v", took)
		}
	})
}

// TestABatchThatIsTriedAgainKeepsWhatHasLanded fails the second try: the first has
// answers already.
func TestABatchThatIsTriedAgainKeepsWhatHasLanded(t *testing.T) {
	r := newRig(t)
	calls := 0
	s := r.nodeOver(&below{before: func(op string, _ any) error {
		if op == "AppendBatch" {
			if calls++; calls == 2 {
				return &spi.UnavailableError{Cause: errors.New("gone")}
			}
		}
		return nil
	}})
	r.append(s, "e", 0, noted("old"))
	other := r.node()
	must[spi.DeleteExecutionResponse](t)(spi.DeleteExecution(t.Context(), other, spi.DeleteExecutionRequest{Execution: "e", Incarnation: 1}))
	must[spi.AppendResponse](t)(spi.Append(t.Context(), other, spi.AppendRequest{Execution: "e", Incarnation: 2, Events: []spi.Event{noted("one")}}))
	res := must[spi.AppendBatchResponse](t)(spi.AppendBatch(t.Context(), s, spi.AppendBatchRequest{Appends: []spi.AppendRequest{
		{Execution: "f", Events: []spi.Event{noted("one")}}, {Execution: "e", ExpectedHead: 1, Events: []spi.Event{noted("two")}},
	}}))
	if res.Results[0].Err != nil || res.Results[0].Head != 1 {
		t.Errorf("what has landed answers %+v", res.Results[0])
	}
	want[*spi.UnavailableError](t, res.Results[1].Err)
}

// TestALostAnswerAboutAKeyLeavesNothingOpen for whoever appends: that has not happened.
func TestALostAnswerAboutAKeyLeavesNothingOpen(t *testing.T) {
	for _, owner := range []string{"the execution's", "the tenant's"} {
		t.Run(owner, func(t *testing.T) {
			r := newRig(t)
			if owner == "the execution's" {
				r.append(r.node(), "4:acme/first", 0, noted("one")) // and so the tenant has a key
			}
			lost := false
			var b below
			s := r.nodeOver(&b)
			b.before = func(op string, _ any) error {
				if op != "CreateDataKey" || lost {
					return nil
				}
				lost = true
				return &spi.AmbiguousError{Cause: errors.New("the connection broke")}
			}
			req := spi.AppendRequest{Execution: "4:acme/e", Events: []spi.Event{noted("one")}}
			_, err := spi.Append(t.Context(), s, req)
			want[*spi.UnavailableError](t, err)
			if errors.As(err, new(*spi.AmbiguousError)) {
				t.Errorf("it answers %v", err)
			}
			if res := must[spi.AppendResponse](t)(spi.Append(t.Context(), s, req)); res.Duplicate {
				t.Error("it had happened")
			}
		})
	}
}

func TestACallersEventsStayAsTheyAre(t *testing.T) {
	r := newRig(t)
	e := noted("one")
	events := []spi.Event{e}
	r.append(r.node(), "e", 0, events...)
	if string(events[0].Payload) != "one" || events[0].Metadata["about"] != "one" {
		t.Errorf("they are %+v", events[0])
	}
}

// TestAReadOfManyPartsIsOfOneIncarnation reads events so small that what is encrypted
// takes several reads below, and deletes the log in between.
func TestAReadOfManyPartsIsOfOneIncarnation(t *testing.T) {
	r := newRig(t)
	reads := 0
	s := r.nodeOver(&below{after: func(op string) {
		if op != "Read" {
			return
		}
		if reads++; reads == 1 {
			must[spi.DeleteExecutionResponse](r)(spi.DeleteExecution(r.Context(), r.inner, spi.DeleteExecutionRequest{Execution: "e", Incarnation: 1}))
			must[spi.AppendResponse](r)(spi.Append(r.Context(), r.node(), spi.AppendRequest{Execution: "e", Incarnation: 2, Events: []spi.Event{noted("anew")}}))
		}
	}})
	var many []spi.Event
	for range 2000 {
		many = append(many, spi.Event{ID: spi.NewEventID(), Kind: "K"})
	}
	r.append(s, "e", 0, many...)
	res := must[spi.ReadResponse](t)(spi.Read(t.Context(), s, spi.ReadRequest{Execution: "e", Limit: 3000, MaxBytes: 100_000}))
	if reads < 3 {
		t.Fatalf("it was read in %d parts", reads)
	}
	if len(res.Events) != 1 || res.Incarnation != 2 || res.More {
		t.Errorf("%d events of incarnation %d are read, and more: %v", len(res.Events), res.Incarnation, res.More)
	}
}

// TestByteLimitsAreOfWhatTheCallerSees whatever encryption adds.
func TestByteLimitsAreOfWhatTheCallerSees(t *testing.T) {
	r := newRig(t)
	s := r.node()
	var many []spi.Event
	for i := range 1000 {
		many = append(many, spi.Event{ID: spi.NewEventID(), Kind: "K", Payload: make([]byte, i%40)})
	}
	r.append(s, "e", 0, many...)
	plain := newRig(t)
	plain.append(plain.inner, "e", 0, many...)
	for _, backward := range []bool{false, true} {
		for _, most := range []int{1, 40, 999, 5000, 15_000, 30_000, spi.MaxReadBytes} {
			for _, limit := range []int{1, 10, 500, 1000, 2000} {
				req := spi.ReadRequest{Execution: "e", Limit: limit, MaxBytes: most, Backward: backward}
				got := must[spi.ReadResponse](t)(spi.Read(t.Context(), s, req))
				wanted := must[spi.ReadResponse](t)(spi.Read(t.Context(), plain.inner, req))
				if len(got.Events) != len(wanted.Events) || got.More != wanted.More || got.Events[0].Sequence != wanted.Events[0].Sequence {
					t.Errorf("%+v reads %d events and more %v, not %d and %v", req, len(got.Events), got.More, len(wanted.Events), wanted.More)
				}
			}
		}
	}
}
