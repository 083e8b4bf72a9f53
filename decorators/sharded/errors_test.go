package sharded_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/loomgate/loomgate/decorators/sharded"
	"github.com/loomgate/loomgate/spi"
)

// TestAnAnswerComesAsItIsAndAnOutageNamesTheShard goes through what a shard may answer.
func TestAnAnswerComesAsItIsAndAnOutageNamesTheShard(t *testing.T) {
	f := newFixture(t, 2, sharded.Options{})
	id := f.ids(shardName(1), 1)[0]
	answers := []error{
		&spi.ConflictError{Execution: id}, &spi.StaleFenceError{Execution: id}, &spi.IncarnationError{Execution: id}, &spi.TruncatedError{Execution: id},
		&spi.RangeError{Execution: id}, &spi.TooLargeError{Execution: id}, &spi.NotFoundError{}, &spi.RefVersionError{}, &spi.LeaseHeldError{},
		&spi.LeaseLostError{}, &spi.ShreddedError{}, &spi.KeyMismatchError{Execution: id}, &spi.InvalidArgumentError{}, &spi.UnsupportedError{},
		&spi.ThrottledError{},
	}
	outages := []error{
		errBroken, context.DeadlineExceeded, context.Canceled, &spi.UnavailableError{Cause: &spi.NotFoundError{}}, &spi.AmbiguousError{Cause: errBroken},
		&spi.InternalError{Cause: errBroken}, &spi.CompatibilityError{},
		// Behind these something was tried before the map was found to be stale.
		&spi.AmbiguousError{Cause: &spi.MisroutedError{}}, &spi.UnavailableError{Cause: &spi.SlotMovingError{}},
	}
	calls := 0
	for i, answer := range append(answers, outages...) {
		f.doubles[1].on(func(context.Context, string, any) (any, error) {
			calls++
			return nil, answer
		})
		calls = 0
		_, err := spi.Head(t.Context(), f.store, spi.HeadRequest{Execution: id})
		if !errors.Is(err, answer) || calls != 1 {
			t.Errorf("after %d calls %T comes as %v", calls, answer, err)
		}
		shard, named := errors.AsType[*spi.ShardError](err)
		if outage := i >= len(answers); outage != named || named && shard.Shard != shardName(1) {
			t.Errorf("%T comes as %v", answer, err)
		}
		if op := want[*spi.OpError](t, err); errors.As(op.Err, new(*spi.OpError)) {
			t.Errorf("%v names the method twice", err)
		}
	}
}

func TestWhatACancelledCallerGetsNamesNoShard(t *testing.T) {
	f := newFixture(t, 2, sharded.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	f.doubles[1].on(func(ctx context.Context, _ string, _ any) (any, error) {
		cancel()
		return nil, ctx.Err()
	})
	err := f.append(ctx, f.ids(shardName(1), 1)[0])
	if _, named := errors.AsType[*spi.ShardError](err); named || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestATenantLearnsNothingOfTheShards is about this package's own errors.
func TestATenantLearnsNothingOfTheShards(t *testing.T) {
	for _, err := range []error{
		&sharded.IdentityError{Shard: "secret"},
		&sharded.PinError{Tenant: "secret"},
		&spi.UnavailableError{Cause: &sharded.UnreadError{Shards: []string{"secret"}, Cause: errors.New("secret")}},
		&sharded.OverlapError{Shards: []string{"secret"}, Coverage: &spi.CoverageError{}},
		&sharded.ForeignError{Name: "secret"},
	} {
		wantText(t, err, "secret")
		if text := spi.RenameError(err, func(name string) string { return name }).Error(); strings.Contains(text, "secret") {
			t.Errorf("a tenant reads %q", text)
		}
	}
}
