package transfer_test

import (
	"bytes"
	"compress/gzip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/cmd/gateway/internal/transfer"
	"github.com/loomgate/loomgate/spi"
)

func TestALogComesBackAsItWas(t *testing.T) {
	onEach(t, func(t *testing.T, store *spi.Store) {
		log := sample(1, 300, 4_000)
		opts := options()
		opts.Window = 700
		report := must(transfer.Import(ctx, store, bytes.NewReader(log), opts))
		if want := (transfer.ImportReport{Lines: 4_000, New: 4_000, Executions: 300, Bytes: int64(len(log))}); report != want {
			t.Errorf("%+v, not %+v", report, want)
		}
		out := export(t, store, transfer.ExportOptions{})
		wantSame(t, strings.NewReader(out), bytes.NewReader(log))
		if again := importAll(t, store, bytes.NewReader(log)); again.New != 0 || again.Present != 4_000 {
			t.Errorf("again: %+v", again)
		}
		if after := export(t, store, transfer.ExportOptions{}); after != out {
			t.Error("a second import changed something")
		}
		if back := importAll(t, store, strings.NewReader(out)); back.New != 0 || back.Present != 4_000 {
			t.Errorf("its own export: %+v", back)
		}
	})
}

func TestAFullExportComesBackInAsItWas(t *testing.T) {
	onEach(t, func(t *testing.T, store *spi.Store) {
		from := inMemory()
		fill(t, from)
		out := export(t, from, transfer.ExportOptions{Format: transfer.Full})
		report := importAll(t, store, strings.NewReader(out))
		if report.New != int64(strings.Count(out, "\n")) {
			t.Errorf("%+v", report)
		}
		for id, err := range transfer.Executions(ctx, from, "", "") {
			if err != nil {
				t.Fatal(err)
			}
			got, want := events(t, store, id), events(t, from, id)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("execution %q holds\n%+v, not\n%+v", id, got, want)
			}
			if got, want := head(t, store, id), head(t, from, id); got != want {
				t.Errorf("execution %q is at %+v, not %+v", id, got, want)
			}
		}
		if again := export(t, store, transfer.ExportOptions{Format: transfer.Full}); again != out {
			t.Errorf("exported again it is\n%s, not\n%s", again, out)
		}
		if again := importAll(t, store, strings.NewReader(out)); again.New != 0 {
			t.Errorf("again: %+v", again)
		}
	})
}

// fill writes executions with everything that an event can have.
func fill(t fatal, store *spi.Store) {
	t.Helper()
	at := time.Date(2024, 5, 1, 9, 30, 0, 123_456_000, time.UTC)
	step := func(id spi.ExecutionID, after, token int64, events ...spi.Event) {
		for i := range events {
			events[i].ID, events[i].RecordedAt = spi.NewEventID(), at.Add(time.Duration(i)*time.Microsecond)
		}
		must(spi.Append(ctx, store, spi.AppendRequest{Execution: id, ExpectedHead: after, Fence: token, Events: events}))
	}
	kernel := func(kind string) spi.Event { return spi.Event{Kind: kind, Kernel: true} }
	step("order 𝄞\n\"7\"", 0, 0, kernel(spi.KindExecutionStarted), spi.Event{Kind: "Paid", Payload: []byte(`{"total": 12.30}`)}, kernel(spi.KindExecutionSuspended))
	for token := range int64(3) {
		must(spi.AcquireFence(ctx, store, spi.AcquireFenceRequest{Execution: "order 𝄞\n\"7\""}))
		step("order 𝄞\n\"7\"", 3+2*token, token+1, kernel(spi.KindExecutionResumed), kernel(spi.KindExecutionSuspended))
	}
	step("order 𝄞\n\"7\"", 9, 0, spi.Event{Kind: "Noted", Metadata: map[string]string{"": "empty", "b": "\t\x1f<&>\u2028", "a": `"\`}})
	step("bytes", 0, 0,
		spi.Event{Kind: "K"},
		spi.Event{Kind: "K", Payload: []byte{0, 0xff, '\n'}},
		spi.Event{Kind: "K", Payload: []byte(" {}")},
		spi.Event{Kind: "K", Payload: []byte("{}\t")},
		spi.Event{Kind: "K", Payload: []byte("{\n}")},
		spi.Event{Kind: "K", Payload: []byte("{\r}")},
		spi.Event{Kind: "K", Payload: []byte(`1,"id":"x"`)},
		spi.Event{Kind: "K", Payload: []byte("\"\xff\"")},
		spi.Event{Kind: "K", Payload: []byte(`"\ud800"`)},
		spi.Event{Kind: "K", Payload: []byte(strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000))},
		spi.Event{Kind: "K", Payload: bytes.Repeat([]byte{0xee}, spi.MaxPayload)},
	)
}

func events(t fatal, store *spi.Store, id spi.ExecutionID) (all []spi.Event) {
	t.Helper()
	for e, err := range transfer.Events(ctx, store, id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func head(t fatal, store *spi.Store, id spi.ExecutionID) spi.HeadResponse {
	t.Helper()
	return must(spi.Head(ctx, store, spi.HeadRequest{Execution: id}))
}

func TestTheSimpleFormatKeepsEveryPayload(t *testing.T) {
	from, to := inMemory(), inMemory()
	fill(t, from)
	importAll(t, to, strings.NewReader(export(t, from, transfer.ExportOptions{})))
	if got, want := payloads(t, to, "bytes"), payloads(t, from, "bytes"); !reflect.DeepEqual(got, want) {
		t.Errorf("%.60q, not %.60q", got, want)
	}
}

func TestPayloadsKeepTheirSpelling(t *testing.T) {
	spelled := []string{
		`{"b" : 1.10, "a":[ 1e3,1E+3, -0, 9007199254740993 ]}`, `{"a":1,"a":2}`, `null`, `true`, `"𝄞 \ud834\udd1e \/"`, `-1.5e-7`, `[]`, `""`, `{}`, "{\t}",
	}
	var lines []string
	for _, payload := range spelled {
		lines = append(lines, " { \"\\u006bind\" : \"K\",\t\"payload\" : "+payload+" , \"recordedAt\":\"2024-05-01T11:30:00.5+02:00\",\"executionId\":\"e\" } \r")
	}
	store := inMemory()
	importAll(t, store, file(lines...))
	wantPayloads(t, store, "e", spelled...)
	if got := events(t, store, "e")[0]; got.Kind != "K" || got.RecordedAt.Format(time.RFC3339Nano) != "2024-05-01T09:30:00.5Z" {
		t.Errorf("%+v", got)
	}
}

func TestALineThatRepeatsCountsEachTime(t *testing.T) {
	store, same := inMemory(), line("e", `"payload":1`)
	report := importAll(t, store, file(same, same, line("f", `"payload":1`), same))
	if report.New != 4 || report.Executions != 2 {
		t.Errorf("%+v", report)
	}
	wantPayloads(t, store, "e", "1", "1", "1")
	importAll(t, store, file(same, same, line("f", `"payload":1`), same))
	wantPayloads(t, store, "e", "1", "1", "1")
}

func TestEachTenantHasItsOwn(t *testing.T) {
	shared := must(memory.New())
	acme, other := view(tenant, shared), view("other", shared)
	importAll(t, acme, file(line("a", `"payload":1`), line("b", `"payload":1`)))
	if _, err := transfer.Import(ctx, other, file(line("b", `"payload":1`)), transfer.ImportOptions{Tenant: "other"}); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, acme, "a", "b")
	wantIDs(t, other, "b")
	if events(t, acme, "b")[0].ID == events(t, other, "b")[0].ID {
		t.Error("two tenants' events have one id")
	}
	if id := events(t, acme, "b")[0].ID.String(); id[14] != '8' || !strings.Contains("89ab", id[19:20]) {
		t.Errorf("%s is no UUID of version 8", id)
	}
}

func TestGzipIsRead(t *testing.T) {
	var packed bytes.Buffer
	for _, text := range []string{line("a", `"payload":1`) + "\n", line("b", `"payload":2`)} { // members follow one another
		z := gzip.NewWriter(&packed)
		must(z.Write([]byte(text)))
		z.Close()
	}
	store := inMemory()
	importAll(t, store, &packed)
	wantIDs(t, store, "a", "b")
	if got := importAll(t, inMemory(), strings.NewReader(export(t, store, transfer.ExportOptions{Gzip: true}))); got.New != 2 {
		t.Errorf("%+v", got)
	}
}

func TestAFileWithoutEventsIsNoError(t *testing.T) {
	for _, text := range []string{"", "\n", " \r\n\t\n"} {
		if report := importAll(t, inMemory(), strings.NewReader(text)); report != (transfer.ImportReport{}) {
			t.Errorf("%q: %+v", text, report)
		}
	}
}
