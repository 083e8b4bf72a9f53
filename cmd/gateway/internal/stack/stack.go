package stack

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/cmd/gateway/internal/build"
	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/decorators/crypto"
	"github.com/loomgate/loomgate/decorators/profiling"
	"github.com/loomgate/loomgate/decorators/sharded"
	"github.com/loomgate/loomgate/decorators/tenant"
	"github.com/loomgate/loomgate/spi"
)

// Options say what to compose.
type Options struct {
	Config *config.Config

	// TracerProvider and MeterProvider take what the layers measure; nil: nobody.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider

	// SQLTracer returns what sees the SQL of a shard; nil: nobody.
	SQLTracer func(shard string) pgx.QueryTracer

	// Batches returns what sees the appends to a shard that are gathered, see
	// [coalescing.Options]; nil: nobody.
	Batches func(shard string) func(batch context.Context, callers []context.Context) (_ context.Context, end func())
}

func (o Options) profiling(name string) profiling.Options {
	return profiling.Options{Name: name, TracerProvider: o.TracerProvider, MeterProvider: o.MeterProvider}
}

// A Stack is everything under the tenants' views.
type Stack struct {
	Shards  []*Shard
	Cluster *sharded.Cluster

	// Keys rotates and shreds; nil where nothing is encrypted.
	Keys *crypto.Keys

	shared  *spi.Store
	options Options // its Config is as it was last taken over
}

// Placement is the configuration's, as the shards know it.
func Placement(cfg *config.Config) sharded.Placement {
	if cfg.Placement == config.PlaceByTenant {
		return sharded.ByTenant
	}
	return sharded.ByExecution
}

// Open composes the stack. Shards that do not answer are left for later, unless what
// the others say does not fit.
func Open(ctx context.Context, o Options) (*Stack, error) { return open(ctx, o, true) }

func open(ctx context.Context, o Options, awaitMissing bool) (_ *Stack, err error) {
	s := &Stack{options: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	var shards []sharded.Shard
	for _, cfg := range o.Config.Shards {
		shard, err := openShard(cfg, o)
		if err != nil {
			return nil, err
		}
		s.Shards = append(s.Shards, shard)
		shards = append(shards, sharded.Shard{Name: shard.Name, Store: shard.store})
	}
	s.Cluster, err = sharded.Open(ctx, shards, sharded.Options{Placement: Placement(o.Config), AwaitMissing: awaitMissing, Writer: build.Writer})
	if err = errors.Join(err, s.unfit()); err != nil {
		return nil, advise(err)
	}
	s.shared = s.Cluster.Store()
	if o.Config.Crypto.Enabled() {
		if s.shared, err = profiling.New(s.shared, o.profiling("sharded")); err != nil {
			return nil, err
		}
		if err := s.encrypt(o.Config.Crypto); err != nil {
			return nil, err
		}
	}
	s.shared, err = profiling.New(s.shared, o.profiling("gateway"))
	return s, err
}

// unfit returns why databases that answer cannot be used: to wait for them does not help.
func (s *Stack) unfit() error {
	var errs []error
	for _, shard := range s.Shards {
		if err := shard.pending.lastError(); is[*postgres.UnfitError](err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// advise adds to an error the command that does away with it.
func advise(err error) error {
	if unfit, ok := errors.AsType[*postgres.UnfitError](err); ok && unfit.Migrate {
		return fmt.Errorf("%w; run gateway migrate", err)
	}
	if misfit, ok := errors.AsType[*sharded.IdentityError](err); ok && misfit.Missing {
		return fmt.Errorf("%w; run gateway init", err)
	}
	return err
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// encrypt puts the layer that encrypts on top.
func (s *Stack) encrypt(cfg config.Crypto) error {
	secret := []byte(cfg.Secret.Reveal())
	ring, err := crypto.OpenKeyring(cfg.KeyringFile, secret)
	if err != nil {
		return err
	}
	opts := crypto.Options{CacheLife: cfg.CacheLife}
	if s.Keys, err = crypto.NewKeys(s.shared, ring, opts); err != nil {
		return err
	}
	s.shared, err = crypto.New(s.shared, ring, opts)
	return err
}

// Tenant returns a tenant's view of the stack.
func (s *Stack) Tenant(name spi.TenantName) (*spi.Store, error) { return tenant.New(name, s.shared) }

// Shared returns the stack as all tenants share it, for operators.
func (s *Stack) Shared() *spi.Store { return s.shared }

// Shard returns the shard of that name.
func (s *Stack) Shard(name string) (*Shard, error) {
	for _, shard := range s.Shards {
		if shard.Name == name {
			return shard, nil
		}
	}
	return nil, fmt.Errorf("there is no shard %q", name)
}

// Close waits for what was accepted, and closes the databases.
func (s *Stack) Close() error {
	var errs []error
	for _, shard := range s.Shards {
		errs = append(errs, shard.close())
	}
	return errors.Join(errs...)
}

// Init gives the shards of a configuration their identities and their slots. Shards that
// have them already are left as they are.
func Init(ctx context.Context, cfg *config.Config, cluster string) (err error) {
	var shards []sharded.Shard
	for _, c := range cfg.Shards {
		store, closeDatabase, err := (&Shard{}).database(c, Options{})(ctx)
		if err != nil {
			return err
		}
		defer closeDatabase()
		shards = append(shards, sharded.Shard{Name: c.Name, Store: store})
	}
	return sharded.Init(ctx, cluster, Placement(cfg), shards)
}

// Check returns why the shards of a configuration do not make one cluster, or do not take
// writes from this version; nil if they do.
func Check(ctx context.Context, cfg *config.Config) error {
	s, err := open(ctx, Options{Config: cfg}, false)
	if err != nil {
		return err
	}
	return errors.Join(s.Refused(), s.Close())
}

// Refused returns which shards take no writes from this version, nil if all do.
func (s *Stack) Refused() error {
	var errs []error
	for _, refused := range s.Cluster.Refused() {
		errs = append(errs, refused)
	}
	return errors.Join(errs...)
}
