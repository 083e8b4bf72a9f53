package coalescing_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/backends/sqlite"
	"github.com/loomgate/loomgate/conformance"
	"github.com/loomgate/loomgate/conformance/small"
	"github.com/loomgate/loomgate/decorators/coalescing"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

// open gives each test a store in memory of its own.
var open = conformance.PerTest(func(t *testing.T) *spi.Store {
	s, err := memory.New()
	if err != nil {
		t.Fatal(err)
	}
	return s
})

func TestConformance(t *testing.T) {
	conformance.Decorator(t, open, func(inner ...*spi.Store) (*spi.Store, error) {
		c, err := coalescing.New(inner[0], coalescing.Options{})
		if err != nil {
			return nil, err
		}
		return c.Store(), nil
	})
}

// coalesced returns a store over another one, until the test ends.
func coalesced(tb testing.TB, inner *spi.Store) *spi.Store {
	tb.Helper()
	c, err := coalescing.New(inner, coalescing.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	return c.Store()
}

func TestConformanceOverSQLite(t *testing.T) {
	folder := conformance.PerTest(func(t *testing.T) string { return t.TempDir() })
	conformance.Store(t, func(t *testing.T) *spi.Store {
		db, err := sqlite.Open(t.Context(), filepath.Join(folder(t), "store.db"), sqlite.WithNormalSync())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return coalesced(t, db.Store())
	})
}

var migrated = pgtest.NewTemplate(postgres.Migrate)

func TestConformanceOverPostgres(t *testing.T) {
	database := conformance.PerTest(func(t *testing.T) pgtest.Database { return migrated.Fresh(t, pgtest.ICU) })
	conformance.Store(t, func(t *testing.T) *spi.Store {
		db, err := postgres.Open(t.Context(), database(t).DSN)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		return coalesced(t, db.Store())
	})
}

func TestAStoreWithoutBatchesIsRefused(t *testing.T) {
	_, err := coalescing.New(spi.Only(open(t), ^spi.CapAppendBatch), coalescing.Options{})
	if refusal := want[*spi.UnsupportedError](t, err); refusal.Cap != spi.CapAppendBatch {
		t.Errorf("%+v", refusal)
	}
}

func TestWhatIsNoStoreOrNoBoundIsRefused(t *testing.T) {
	for _, c := range []struct {
		inner   *spi.Store
		options coalescing.Options
	}{{nil, coalescing.Options{}}, {open(t), coalescing.Options{Writers: -1}}, {open(t), coalescing.Options{Timeout: -1}}} {
		_, err := coalescing.New(c.inner, c.options)
		want[*spi.InvalidArgumentError](t, err)
	}
}

func TestItIsRefusedAboveIsolation(t *testing.T) {
	tenant, err := small.Prefix("acme", open(t))
	if err != nil {
		t.Fatal(err)
	}
	_, err = coalescing.New(tenant, coalescing.Options{})
	want[*spi.LayerOrderError](t, err)
}

// TestEveryAppendIsStoredOnceWhoeverGivesUp lets many callers append to few executions,
// and give up at any point. The same request again settles each append.
func TestEveryAppendIsStoredOnceWhoeverGivesUp(t *testing.T) {
	const callers, rounds, executions = 16, 150, 5
	inner := open(t)
	store := coalesced(t, inner)
	var done sync.WaitGroup
	var mu sync.Mutex
	written := map[spi.EventID]spi.ExecutionID{}
	for w := range callers {
		done.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for range rounds {
				e := spi.ExecutionID(fmt.Sprintf("6:tenant/e%d", random.IntN(executions)))
				req := spi.AppendRequest{Execution: e, ExpectedHead: spi.AnyHead, SinceSeq: 1, Events: to(e).Events}
				if random.IntN(2) == 0 {
					ctx, cancel := context.WithCancel(t.Context())
					var giving sync.WaitGroup
					giving.Go(cancel)
					_, err := spi.Append(ctx, store, req)
					giving.Wait()
					if err != nil && !isAmbiguous(err) && !errors.Is(err, context.Canceled) {
						t.Errorf("an append given up on: %v", err)
					}
				}
				if _, err := spi.Append(t.Context(), store, req); err != nil {
					t.Errorf("an append: %v", err)
				}
				mu.Lock()
				written[req.Events[0].ID] = e
				mu.Unlock()
			}
		})
	}
	done.Wait()
	for n := range executions {
		e := spi.ExecutionID(fmt.Sprintf("6:tenant/e%d", n))
		log, err := spi.Read(t.Context(), inner, spi.ReadRequest{Execution: e, Limit: spi.MaxLimit})
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range log.Events {
			if written[event.ID] != e {
				t.Errorf("%v is in %q once too often", event.ID, e)
			}
			delete(written, event.ID)
		}
	}
	if len(written) > 0 {
		t.Errorf("%d acknowledged events are not there", len(written))
	}
}
