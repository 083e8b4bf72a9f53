package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/cmd/gateway/internal/transfer"
	"github.com/loomgate/loomgate/spi"
)

var (
	errAway = &spi.UnavailableError{Cause: errors.New("the shard is being restarted")}
	errLost = &spi.AmbiguousError{Cause: errors.New("the connection broke")}
)

// patient returns options that wait a minute.
func patient() transfer.ImportOptions {
	opts := options()
	opts.Retry.For = time.Minute
	return opts
}

func TestAStoreThatComesBackIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		inner := inMemory()
		store := withPlan(inner, func(call) fault {
			if time.Since(begin) < 50*time.Second {
				return fault{refuse: errAway}
			}
			return fault{}
		})
		opts, told := patient(), 0
		opts.Retry.Notify = func(err error) {
			if told++; !errors.Is(err, errAway) {
				t.Error(err)
			}
		}
		log := sample(7, 20, 300)
		report := must(transfer.Import(ctx, store, bytes.NewReader(log), opts))
		if report.New != 300 || told < 10 {
			t.Errorf("%+v, told %d times", report, told)
		}
		wantSame(t, strings.NewReader(export(t, inner, transfer.ExportOptions{})), bytes.NewReader(log))
	})
}

func TestAStoreThatStaysAwayEndsTheImportAtALine(t *testing.T) {
	log := sample(8, 20, 300)
	synctest.Test(t, func(t *testing.T) {
		inner := inMemory()
		store := withPlan(inner, func(c call) fault {
			if c.method == "AppendBatch" && c.n > 2 {
				return fault{refuse: errAway}
			}
			return fault{}
		})
		opts, begin := patient(), time.Now()
		opts.Window = 100
		report, err := transfer.Import(ctx, store, bytes.NewReader(log), opts)
		stop := want[*transfer.StoreError](t, err)
		if !errors.Is(err, errAway) || stop.From != 201 || stop.Line != 201 || report.Lines != 200 {
			t.Errorf("%v, after %+v", err, report)
		}
		if waited := time.Since(begin); waited != time.Minute {
			t.Errorf("it took %v", waited)
		}
		if again := importAll(t, inner, bytes.NewReader(log)); again.Present != 200 || again.New != 100 {
			t.Errorf("again: %+v", again)
		}
	})
}

func TestALostAnswerStoresNothingTwice(t *testing.T) {
	log := sample(9, 30, 800)
	for name, lost := range map[string]fault{"done": {lose: errLost}, "not done": {refuse: errLost}, "done later": {late: errLost}} {
		synctest.Test(t, func(t *testing.T) {
			f := &faulty{plan: func(c call) fault {
				if strings.HasPrefix(c.method, "Append") && c.n%3 != 0 {
					return lost
				}
				return fault{}
			}}
			inner := inMemory()
			opts := patient()
			opts.Window = 50
			report := must(transfer.Import(ctx, f.open(inner), bytes.NewReader(log), opts))
			if f.finish(); report.Lines != 800 || report.New+report.Present != 800 {
				t.Errorf("%s: %+v", name, report)
			}
			wantSame(t, strings.NewReader(export(t, inner, transfer.ExportOptions{})), bytes.NewReader(log))
		})
	}
}

func TestOneOfABatchWhoseAnswerIsLostIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := inMemory()
		half := &halfLost{lost: map[spi.ExecutionID]bool{}}
		report := must(transfer.Import(ctx, half.open(inner), file(line("a", `"payload":1`), line("b", `"payload":1`), line("c", `"payload":1`), line("d", `"payload":1`)), patient()))
		if report.New != 2 || report.Present != 2 {
			t.Errorf("%+v", report)
		}
		wantPayloads(t, inner, "b", "1")
	})
}

// halfLost loses the first answer for every other append of a batch.
type halfLost struct {
	faulty
	lost map[spi.ExecutionID]bool
}

func (h *halfLost) open(inner *spi.Store) *spi.Store {
	h.faulty.open(inner)
	return must(spi.Open(spi.Backend{Events: h}))
}

func (h *halfLost) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	res, err := h.faulty.AppendBatch(ctx, req)
	for i, a := range req.Appends {
		if i%2 == 1 && !h.lost[a.Execution] {
			h.lost[a.Execution] = true
			res.Results[i] = spi.AppendResult{Err: &spi.AmbiguousError{Execution: a.Execution, Cause: errLost}}
		}
	}
	return res, err
}

func TestACancelledWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(ctx)
		store := withPlan(inMemory(), func(call) fault { return fault{refuse: errAway} })
		opts := patient()
		opts.Retry.Notify = func(error) { cancel() }
		_, err := transfer.Import(ctx, store, file(line("a", `"payload":1`)), opts)
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestWithoutPatienceNothingIsSentAgain(t *testing.T) {
	calls := 0
	store := withPlan(inMemory(), func(call) fault { calls++; return fault{refuse: errAway} })
	_, err := transfer.Import(ctx, store, file(line("a", `"payload":1`)), options())
	if !errors.Is(err, errAway) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

func TestReadsAreSentAgainToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := must(filled(t))
		store := withPlan(inner, func(c call) fault {
			if c.n%2 == 1 {
				return fault{refuse: errAway}
			}
			return fault{}
		})
		retry := transfer.Retry{For: time.Minute}
		var out bytes.Buffer
		if report := must(transfer.Export(ctx, store, &out, transfer.ExportOptions{Retry: retry})); report.Executions != 2 {
			t.Errorf("%+v", report)
		}
		if report := must(transfer.Verify(ctx, store, transfer.VerifyOptions{Retry: retry})); report.Executions != 2 || report.Problems != 0 {
			t.Errorf("%+v", report)
		}
	})
}
