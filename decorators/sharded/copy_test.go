package sharded_test

import (
	"context"
	"slices"
	"testing"

	"github.com/loomgate/loomgate/decorators/sharded"
	"github.com/loomgate/loomgate/spi"
)

// copyTo copies two events of an execution, and checks the copy.
func (f *fixture) copyTo(from, to spi.ExecutionID) {
	f.Helper()
	if _, err := spi.CopyPrefix(f.Context(), f.store, spi.CopyPrefixRequest{From: from, To: to, N: 2}); err != nil {
		f.Fatal(err)
	}
	ids := func(id spi.ExecutionID) (all []spi.EventID) {
		res, err := spi.Read(f.Context(), f.store, spi.ReadRequest{Execution: id, Limit: 2})
		if err != nil {
			f.Fatal(err)
		}
		for _, e := range res.Events {
			all = append(all, e.ID)
		}
		return all
	}
	if got := ids(to); len(got) != 2 || !slices.Equal(got, ids(from)) {
		f.Errorf("the copy holds %v", got)
	}
}

func TestAShardCopiesByItselfWhatItHasBothEndsOf(t *testing.T) {
	f := newFixture(t, 2, sharded.Options{})
	local, remote := f.ids(shardName(0), 2), f.ids(shardName(1), 1)
	f.mustAppend(local[0], local[0])
	copies := f.counting("CopyPrefix")
	f.copyTo(local[0], local[1])
	f.copyTo(local[0], remote[0])
	if a, b := copies[0].Load(), copies[1].Load(); a != 1 || b != 0 {
		t.Errorf("the shards are asked for %d and %d copies", a, b)
	}
}

func TestACopyFollowsEitherEndThatHasMoved(t *testing.T) {
	f := newFixture(t, 3, sharded.Options{})
	ids := f.ids(shardName(0), 4)
	f.mustAppend(ids[0], ids[0])
	f.moveWith(ids[0], 0, 1)
	f.copyTo(ids[0], ids[1])
	f.move(f.placement.Slot(string(ids[2])), 0, 2, "")
	f.copyTo(ids[1], ids[2])
	f.copyTo(ids[2], ids[3])
}

func TestACopyOfWhatHasADataKeyIsRefused(t *testing.T) {
	f := newFixture(t, 2, sharded.Options{})
	from, to := f.ids(shardName(0), 1)[0], f.ids(shardName(1), 1)[0]
	key := spi.DataKey{Owner: spi.KeyOwner(from), Version: 1, ID: spi.KeyID(spi.NewEventID()), WrappedBy: "kms", Wrapped: []byte{1}}
	if _, err := spi.CreateDataKey(t.Context(), f.store, spi.CreateDataKeyRequest{Key: key}); err != nil {
		t.Fatal(err)
	}
	if _, err := spi.Append(t.Context(), f.store, spi.AppendRequest{Execution: from, KeyID: key.ID, Events: events(2)}); err != nil {
		t.Fatal(err)
	}
	_, err := spi.CopyPrefix(t.Context(), f.store, spi.CopyPrefixRequest{From: from, To: to, N: 2})
	want[*spi.KeyMismatchError](t, err)
	f.wantHead(to, 0)
}

// TestACopyNamesTheShardThatFails has each end fail in turn.
func TestACopyNamesTheShardThatFails(t *testing.T) {
	for i := range 2 {
		f := newFixture(t, 2, sharded.Options{})
		from, to := f.ids(shardName(0), 1)[0], f.ids(shardName(1), 1)[0]
		f.mustAppend(from, from)
		f.doubles[i].on(func(context.Context, string, any) (any, error) { return nil, errBroken })
		_, err := spi.CopyPrefix(t.Context(), f.store, spi.CopyPrefixRequest{From: from, To: to, N: 2})
		wantShard(t, err, shardName(i))
	}
}
