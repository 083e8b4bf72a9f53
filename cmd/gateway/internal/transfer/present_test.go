package transfer_test

import (
	"errors"
	"testing"

	"github.com/loomgate/loomgate/cmd/gateway/internal/transfer"
	"github.com/loomgate/loomgate/spi"
)

func TestEventsOfAnotherOriginAreLeftAlone(t *testing.T) {
	log := []string{
		line("a", `"payload":1`), line("e", `"payload":1`), line("a", `"payload":2`),
		line("e", `"payload":2`), line("e", `"payload":3`), line("a", `"payload":3`),
	}
	foreign := func(n int64) spi.AppendRequest {
		return spi.AppendRequest{Execution: "e", ExpectedHead: n, Events: []spi.Event{{ID: spi.NewEventID(), Kind: "Foreign"}}}
	}
	for name, c := range map[string]struct {
		there []string // of the file's lines
		line  int64    // the first whose event is not there
	}{
		"from the beginning":    {nil, 2},
		"after the first event": {log[:2], 4},
		"after the second":      {log[:4], 5},
	} {
		onEach(t, func(t *testing.T, store *spi.Store) {
			importAll(t, store, file(c.there...))
			sequence := head(t, store, "e").Head
			must(spi.Append(ctx, store, foreign(sequence)))
			before := events(t, store, "e")
			report, err := transfer.Import(ctx, store, file(log...), options())
			stop, other := want[*transfer.StoreError](t, err), want[*transfer.ForeignError](t, err)
			if stop.Execution != "e" || stop.Line != c.line || other.Execution != "e" || other.Sequence != sequence+1 {
				t.Errorf("%s: %v", name, err)
			}
			if after := events(t, store, "e"); len(after) != len(before) {
				t.Errorf("%s: there are %d events, not %d", name, len(after), len(before))
			}
			if executions := int64(1 + min(1, len(c.there))); report.Executions != executions {
				t.Errorf("%s: %+v", name, report)
			}
		})
	}
}

func TestEventsInFrontOfTheFilesAreForeign(t *testing.T) {
	store, log := inMemory(), line("e", `"payload":1`)
	importAll(t, store, file(log))
	moved := events(t, store, "e")[0]
	moved.Sequence = 0
	store = inMemory()
	must(spi.Append(ctx, store, spi.AppendRequest{Execution: "e", Events: []spi.Event{{ID: spi.NewEventID(), Kind: "Foreign"}, moved}}))
	_, err := transfer.Import(ctx, store, file(log), options())
	if other := want[*transfer.ForeignError](t, err); other.Sequence != 1 {
		t.Error(err)
	}
}

func TestTheErrorNamesTheEarliestLine(t *testing.T) {
	foreign := func(store *spi.Store, id spi.ExecutionID) {
		must(spi.Append(ctx, store, spi.AppendRequest{Execution: id, ExpectedHead: spi.AnyHead, Events: []spi.Event{{ID: spi.NewEventID(), Kind: "Foreign"}}}))
	}
	store, log := inMemory(), []string{line("a", `"payload":1`), line("b", `"payload":1`), line("a", `"payload":2`)}
	importAll(t, store, file(log[0]))
	foreign(store, "a")
	foreign(store, "b")
	_, err := transfer.Import(ctx, store, file(log...), options())
	if stop := want[*transfer.StoreError](t, err); stop.Execution != "b" || stop.Line != 2 || stop.From != 2 {
		t.Errorf("of two that cannot go on: %v", err)
	}

	store = inMemory()
	foreign(store, "b")
	_, err = transfer.Import(ctx, store, file(line("a", `"payload":1`), line("a", `"fence":1,"payload":2`), line("b", `"payload":1`)), options())
	if stop := want[*transfer.StoreError](t, err); stop.Execution != "b" || stop.Line != 3 || stop.From != 2 {
		t.Errorf("with one that was not tried: %v", err)
	}
}

func TestALineThatSaysSomethingElseIsAnotherEvent(t *testing.T) {
	store := inMemory()
	importAll(t, store, file(with(`"payload":1`), with(`"executionId":"m","metadata":{"a":"b"}`)))
	importAll(t, store, file(with(`"payload" : 1, "kernel":false, "fence":0, "metadata":{}, "recordedAt":"2024-05-01T11:30:00.0+02:00"`))) // the same
	for _, other := range []string{`"payload":1.0`, `"kind":"L"`, `"recordedAt":"2024-05-01T09:30:01Z"`, `"kernel":true`, `"fence":1`, `"metadata":{"a":"b"}`, `"executionId":"m","metadata":{"a":"c"}`} {
		_, err := transfer.Import(ctx, store, file(with(other)), options())
		if _, ok := errors.AsType[*transfer.ForeignError](err); !ok {
			t.Errorf("%s: %v", other, err)
		}
	}
}

func TestWhatIsAddedAfterTheWholeFileStays(t *testing.T) {
	store, log := inMemory(), line("e", `"payload":1`)
	importAll(t, store, file(log))
	must(spi.Append(ctx, store, spi.AppendRequest{Execution: "e", ExpectedHead: 1, Events: []spi.Event{{ID: spi.NewEventID(), Kind: "K", Payload: []byte("2")}}}))
	if report := importAll(t, store, file(log)); report.Present != 1 {
		t.Errorf("%+v", report)
	}
	wantPayloads(t, store, "e", "1", "2")
}

func TestADeletedExecutionIsWrittenAnew(t *testing.T) {
	onEach(t, func(t *testing.T, store *spi.Store) {
		log := []string{line("e", `"payload":1`), line("e", `"payload":2`)}
		importAll(t, store, file(log...))
		must(spi.DeleteExecution(ctx, store, spi.DeleteExecutionRequest{Execution: "e", Incarnation: 1}))
		if report := importAll(t, store, file(log...)); report.New != 2 {
			t.Errorf("%+v", report)
		}
		wantPayloads(t, store, "e", "1", "2")
	})
}

func TestAnExecutionThatIsDeletedMeanwhileEndsTheImport(t *testing.T) {
	inner := inMemory()
	store := withPlan(inner, func(c call) fault {
		if c.method == "Append" && c.n == 2 {
			must(spi.DeleteExecution(ctx, inner, spi.DeleteExecutionRequest{Execution: "e", Incarnation: 1}))
		}
		return fault{}
	})
	opts := options()
	opts.Window = 1
	_, err := transfer.Import(ctx, store, file(line("e", `"payload":1`), line("e", `"payload":2`)), opts)
	want[*spi.IncarnationError](t, err)
	wantIDs(t, inner)
}

func TestALogThatIsShorterThanItWasEndsTheImport(t *testing.T) {
	inner := inMemory()
	store := withPlan(inner, func(c call) fault {
		if c.method == "Append" && c.n == 3 {
			must(spi.DeleteExecution(ctx, inner, spi.DeleteExecutionRequest{Execution: "e", Incarnation: 1}))
			must(spi.Append(ctx, inner, spi.AppendRequest{Execution: "e", Incarnation: 2, Events: []spi.Event{{ID: spi.NewEventID(), Kind: "K"}}}))
		}
		return fault{}
	})
	opts := options()
	opts.Window = 1
	_, err := transfer.Import(ctx, store, file(line("e", `"payload":1`), line("e", `"payload":2`), line("e", `"payload":3`)), opts)
	if conflict := want[*spi.ConflictError](t, err); conflict.Head != 1 {
		t.Error(err)
	}
}

func TestALogThatWasTruncatedMeanwhileIsLeftAlone(t *testing.T) {
	log := []string{line("e", `"payload":1`), line("e", `"payload":2`), line("e", `"payload":3`), line("e", `"payload":4`)}
	onEach(t, func(t *testing.T, store *spi.Store) {
		importAll(t, store, file(log[:3]...))
		must(spi.TruncatePrefixKeeping(ctx, store, spi.TruncatePrefixKeepingRequest{Execution: "e", Incarnation: 1, Before: 3}))
		_, err := transfer.Import(ctx, store, file(log...), options())
		if cut := want[*spi.TruncatedError](t, err); cut.Floor != 3 {
			t.Error(err)
		}
		wantPayloads(t, store, "e", "3")
	})
	inner := inMemory()
	importAll(t, inner, file(log[:3]...))
	store := withPlan(inner, func(c call) fault {
		if c.method == "Read" { // when the append has met a part of its events
			must(spi.TruncatePrefixKeeping(ctx, inner, spi.TruncatePrefixKeepingRequest{Execution: "e", Incarnation: 1, Before: 2}))
		}
		return fault{}
	})
	_, err := transfer.Import(ctx, store, file(log...), options())
	if cut := want[*spi.TruncatedError](t, err); cut.Floor != 2 {
		t.Error(err)
	}
}
