package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loomgate/loomgate/cmd/gateway/internal/transfer"
	"github.com/loomgate/loomgate/spi"
	"pgregory.net/rapid"
)

// TestAnImportThatIsKilledAndRunAgainStoresEachEventOnce kills imports of random logs at
// random calls, loses answers, does some of the lost calls later, beside the import that is
// run next, and changes the window each time.
func TestAnImportThatIsKilledAndRunAgainStoresEachEventOnce(t *testing.T) {
	onEach(t, func(t *testing.T, shared *spi.Store) {
		logs := 0
		rapid.Check(t, func(rt *rapid.T) {
			logs++
			store := view(spi.TenantName(fmt.Sprint("log ", logs)), shared)
			log := drawLog(rt)
			kills := 0
			for !killed(rt, store, log, &kills) {
			}
			report := importAll(rt, store, bytes.NewReader(log))
			if report.New != 0 || report.Present != int64(bytes.Count(log, []byte("\n"))) {
				rt.Errorf("after %d kills: %+v", kills, report)
			}
			wantSame(rt, strings.NewReader(export(rt, store, transfer.ExportOptions{})), bytes.NewReader(log))
			wantSound(rt, store)
		})
	})
}

// drawLog returns lines of few executions, many of them equal.
func drawLog(t *rapid.T) []byte {
	var log []byte
	for range rapid.IntRange(1, 60).Draw(t, "lines") {
		id := rapid.SampledFrom([]string{"a", "b", "c 𝄞"}).Draw(t, "execution")
		log = append(log, line(id, fmt.Sprintf(`"fence":%d,"payload":%d`, rapid.IntRange(0, 1).Draw(t, "fence"), rapid.IntRange(0, 2).Draw(t, "payload")))...)
		log = append(log, '\n')
	}
	return log
}

// killed imports a log, is killed maybe, and reports whether it was not.
func killed(t *rapid.T, store *spi.Store, log []byte, kills *int) bool {
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	f := &faulty{}
	f.plan = func(c call) fault {
		if *kills > 10 {
			return fault{}
		}
		switch rapid.IntRange(0, 9).Draw(t, "fault") {
		case 0:
			kill()
			*kills++
		case 1:
			return fault{lose: errLost}
		case 2:
			return fault{refuse: errAway}
		case 3:
			if strings.HasPrefix(c.method, "Append") {
				return fault{late: errLost}
			}
		}
		return fault{}
	}
	opts := options()
	opts.Window = rapid.IntRange(1, 20).Draw(t, "window")
	opts.InFlight = 1 // or the calls would not be drawn in one order
	opts.Retry.For = time.Nanosecond
	_, err := transfer.Import(ctx, f.open(store), bytes.NewReader(log), opts)
	if rapid.Bool().Draw(t, "the late calls are done before the next import") {
		defer f.finish()
	}
	if err == nil {
		return true
	}
	if !errors.Is(err, context.Canceled) && !errors.Is(err, errLost) && !errors.Is(err, errAway) {
		t.Fatal(err)
	}
	*kills++
	return false
}

func wantSound(t fatal, store *spi.Store) {
	t.Helper()
	report := must(transfer.Verify(ctx, store, transfer.VerifyOptions{Found: func(p transfer.Problem) { t.Errorf("%v", p) }}))
	if report.Problems > 0 {
		t.Errorf("%+v", report)
	}
}
