package api_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"

	"github.com/loomgate/loomgate/api"
	"github.com/loomgate/loomgate/spi"
)

var incident = &spi.InternalError{Cause: &api.IncidentError{ID: "i1"}}

func TestATenantIsToldWhatItCanActOn(t *testing.T) {
	disk := errors.New("secret disk")
	conflict := &spi.ConflictError{Execution: "e", Head: 3}
	for _, c := range []struct {
		err, want error
		held      bool
	}{
		{conflict, conflict, false},
		{&spi.ShardError{Shard: "secret", Err: conflict}, conflict, false},
		{&spi.ShardError{Shard: "secret", Err: disk}, &spi.UnavailableError{Cause: incident}, true},
		{&spi.ShardError{Shard: "secret", Err: context.DeadlineExceeded}, &spi.UnavailableError{Cause: context.DeadlineExceeded}, false},
		{&spi.ShardError{Shard: "secret", Err: &spi.AmbiguousError{Execution: "e", Cause: disk}}, &spi.AmbiguousError{Execution: "e", Cause: incident}, true},
		{&spi.MisroutedError{Shard: "secret"}, &spi.UnavailableError{Cause: incident}, true},
		{&spi.SlotMovingError{Shard: "secret"}, &spi.UnavailableError{Cause: incident}, true},
		{&spi.CoverageError{}, &spi.UnavailableError{Cause: incident}, true},
		{&spi.OwnershipError{Shard: "secret"}, incident, true},
		{&spi.UnavailableError{Cause: disk}, &spi.UnavailableError{Cause: incident}, true},
		{&spi.InternalError{Cause: disk}, incident, true},
		{fmt.Errorf("secret: %w", conflict), conflict, false},
		{fmt.Errorf("secret: %w", context.Canceled), context.Canceled, false},
		{errors.Join(disk, conflict), incident, true},
		{disk, incident, true},
		{nil, nil, false},
	} {
		var held error
		tenant := api.Audience{Incident: func(whole error) string {
			held = whole
			return "i1"
		}}
		in := c.err
		if in != nil {
			in, c.want = &spi.OpError{Op: "Append", Err: in}, &spi.OpError{Op: "Append", Err: c.want}
		}
		if got := tenant.Mask(in); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v is told as %v, not %v", c.err, got, c.want)
		}
		if c.held != (held != nil) || c.held && !errors.Is(held, in) {
			t.Errorf("of %v is noted %v", c.err, held)
		}
	}
}

func TestNothingOfTheInsideIsInATenantsStatus(t *testing.T) {
	tenant := api.Audience{Incident: func(error) string { return "i1" }}
	inside := errors.New("secret")
	for _, err := range []error{
		inside,
		&spi.ShardError{Shard: "secret", Err: inside},
		&spi.ShardError{Shard: "secret", Err: &spi.UnavailableError{Cause: inside}},
		&spi.ShardError{Shard: "secret", Err: &spi.ConflictError{Execution: "e"}},
		&spi.AmbiguousError{Execution: "e", Cause: &spi.ShardError{Shard: "secret", Err: inside}},
		&spi.MisroutedError{Shard: "secret", Route: spi.Route{Slot: 7, Epoch: 3}},
		&spi.SlotMovingError{Shard: "secret", Slot: 7, State: spi.SlotFrozen},
		&spi.OwnershipError{Shard: "secret", Reason: "secret"},
		&spi.CoverageError{Missing: spi.SlotSet{{First: 1, Last: 2}}},
		&spi.LayerOrderError{Outer: "secret", Inner: "secret", Reason: "secret"},
		&spi.EmbeddingError{Decorator: "secret"},
		&spi.InternalError{Cause: inside},
		fmt.Errorf("secret: %w", &spi.StaleFenceError{Execution: "e"}),
	} {
		told := prototext.Format(api.ErrorStatus(&spi.OpError{Op: "Append", Err: err}, tenant).Proto())
		for _, inner := range []string{"secret", "slot", "shard", "epoch"} {
			if strings.Contains(told, inner) {
				t.Errorf("%#v is told with %q:\n%s", err, inner, told)
			}
		}
	}
}

func TestAnOperatorIsToldWhichShardItWas(t *testing.T) {
	err := &spi.OpError{Op: "Append", Err: &spi.ShardError{Shard: "s", Err: &spi.MisroutedError{Shard: "s"}}}
	if got := operator.Mask(err); !reflect.DeepEqual(got, err) {
		t.Errorf("%v is told as %v", err, got)
	}
	disk := &spi.ShardError{Shard: "s", Err: errors.New("secret")}
	if got, want := operator.Mask(disk), (&spi.ShardError{Shard: "s", Err: incident}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v is told as %v", disk, got)
	}
}

// TestNoErrorTypeIsUndecided finds an error type that nobody has decided about: it
// is told to nobody.
func TestNoErrorTypeIsUndecided(t *testing.T) {
	for _, err := range exampleErrors {
		got := operator.Mask(err)
		if _, internal := errors.AsType[*spi.InternalError](got); internal && !reflect.DeepEqual(got, err) {
			t.Errorf("not even an operator is told of %T", err)
		}
	}
}
