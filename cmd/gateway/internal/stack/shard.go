package stack

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/backends/sqlite"
	"github.com/loomgate/loomgate/cmd/gateway/internal/build"
	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/decorators/coalescing"
	"github.com/loomgate/loomgate/decorators/fair"
	"github.com/loomgate/loomgate/decorators/profiling"
	"github.com/loomgate/loomgate/spi"
)

// openPause is how long a shard that could not be opened is left alone.
const openPause = time.Second

// A Shard is one database of the stack.
type Shard struct {
	Name string

	// Backend is the database itself, with nothing above it that gathers or measures.
	Backend *spi.Store

	store     *spi.Store // as the layers above see it
	pending   *pending
	coalescer *coalescing.Coalescer // nil: appends are not gathered
	gate      *fair.Gate            // where tenants take turns

	postgres atomic.Pointer[postgres.Database] // nil: it is none, or not open yet
}

// close waits for the appends that were accepted, and closes the database.
func (s *Shard) close() error {
	var err error
	if s.coalescer != nil {
		err = s.coalescer.Close()
	}
	s.pending.close()
	return err
}

// Pool returns how the connections to a Postgres are; nil where there are none.
func (s *Shard) Pool() *pgxpool.Stat {
	if db := s.postgres.Load(); db != nil {
		return db.Pool()
	}
	return nil
}

// database returns what opens the shard's database.
func (s *Shard) database(cfg config.Shard, o Options) opener {
	if cfg.SQLite != "" {
		return func(ctx context.Context) (*spi.Store, func(), error) {
			if err := os.MkdirAll(filepath.Dir(cfg.SQLite), 0o700); err != nil {
				return nil, nil, fmt.Errorf("shard %q: %w", cfg.Name, err)
			}
			db, err := sqlite.Open(ctx, cfg.SQLite)
			if err != nil {
				return nil, nil, fmt.Errorf("shard %q: %w", cfg.Name, err)
			}
			return db.Store(), func() { db.Close() }, nil
		}
	}
	return func(ctx context.Context) (*spi.Store, func(), error) {
		opts := []postgres.Option{postgres.WritesAs(build.Writer)}
		if cfg.BehindPooler {
			opts = append(opts, postgres.BehindPooler())
		}
		if o.SQLTracer != nil {
			opts = append(opts, postgres.TracedBy(o.SQLTracer(cfg.Name)))
		}
		db, err := postgres.Open(ctx, cfg.PoolDSN().Reveal(), opts...)
		if err != nil {
			return nil, nil, fmt.Errorf("shard %q: %w", cfg.Name, err)
		}
		s.postgres.Store(db)
		return db.Store(), func() { db.Close() }, nil
	}
}

// openShard makes a shard, whose database is opened with the first call to it.
func openShard(cfg config.Shard, o Options) (*Shard, error) {
	s := &Shard{Name: cfg.Name}
	var err error
	if s.pending, s.Backend, err = newPending(cfg.Name, spi.AllCaps, openPause, s.database(cfg, o)); err != nil {
		return nil, err
	}
	return s, s.compose(cfg, o)
}

// compose puts a shard's layers over its database.
func (s *Shard) compose(cfg config.Shard, o Options) (err error) {
	s.store = s.Backend
	if o.Config.Coalescing {
		gather := coalescing.Options{Writers: writers}
		if o.Batches != nil {
			gather.Watch = o.Batches(cfg.Name)
		}
		if s.coalescer, err = coalescing.New(s.store, gather); err != nil {
			return err
		}
		s.store = s.coalescer.Store()
	}
	if s.gate, err = fair.New(s.store, fair.Options{Slots: s.slots(cfg.PoolSize), Gathered: s.coalescer != nil}); err != nil {
		return err
	}
	s.store, err = profiling.New(s.gate.Store(), o.profiling("shard/"+cfg.Name))
	return err
}

// slots is how many calls the shard does at once: as many as it has connections, but for
// those of the batches of appends.
func (s *Shard) slots(pool int) int {
	pool = cmp.Or(pool, filePool)
	if s.coalescer != nil {
		return max(1, pool-writers)
	}
	return pool
}

const (
	writers  = 2  // how many batches of appends are under way at once
	filePool = 16 // how many calls a database does at once that is a file
)
