package spi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestARenamedErrorTellsOuterNamesOnly(t *testing.T) {
	outer := func(name string) string { return strings.TrimPrefix(name, "secret/") }
	driver := errors.New(`duplicate key (id)=(secret/e)`)
	for _, c := range []struct {
		err  error
		text string
	}{
		{&OpError{"Append", &ConflictError{Execution: "secret/e", Head: 3}}, `Append: execution "e" is at head 3`},
		{fmt.Errorf("while secret/e: %w", &StaleFenceError{"secret/e", 2}), `execution "e" is fenced at 2`},
		{&ShardError{"s", &IncarnationError{"secret/e", 2}}, `shard "s": execution "e" is in incarnation 2`},
		{&AmbiguousError{"secret/e", driver}, `the outcome for execution "e" is unknown: internal error`},
		{&UnavailableError{driver}, `unavailable: internal error`},
		{&UnavailableError{context.Canceled}, `unavailable: context canceled`},
		{&NotFoundError{"ref", "secret/r"}, `no ref "r"`},
		{&RefVersionError{"secret/r", 7}, `ref "r" is at version 7`},
		{&LeaseLostError{"secret/l"}, `lease "l" is lost`},
		{&ShreddedError{"secret/e"}, `the data key of "e" is shredded`},
		{&InvalidArgumentError{"limit", "is 0"}, `limit is 0`},
		{fmt.Errorf("secret: %w", context.DeadlineExceeded), `context deadline exceeded`},
		{driver, `internal error`},
		{errors.Join(driver, &TruncatedError{"secret/e", 2}), `internal error`},
	} {
		if got := RenameError(c.err, outer); got.Error() != c.text {
			t.Errorf("%q becomes %q, not %q", c.err, got, c.text)
		}
	}
	ambiguous, _ := errors.AsType[*AmbiguousError](RenameError(&AmbiguousError{"secret/e", driver}, outer))
	if internal, ok := errors.AsType[*InternalError](ambiguous.Cause); !ok || !errors.Is(internal.Cause, driver) {
		t.Error("the cause is lost to the operator")
	}
	inner := &ConflictError{Execution: "secret/e"}
	for _, err := range []error{errors.Join(driver, inner), fmt.Errorf("%w and %w", driver, inner), &InternalError{inner}} {
		if got, found := errors.AsType[*ConflictError](RenameError(err, outer)); found {
			t.Errorf("%v tells %q", err, got.Execution)
		}
	}
	if !errors.Is(RenameError(errors.Join(driver, context.Canceled), outer), context.Canceled) {
		t.Error("a cancellation is lost")
	}
	if got := RenameError(nil, outer); got != nil {
		t.Error(got)
	}
}
