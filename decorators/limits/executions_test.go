package limits_test

import (
	"context"
	"testing"
	"time"

	"github.com/loomgate/loomgate/decorators/limits"
	"github.com/loomgate/loomgate/spi"
)

func next(ctx context.Context, s *spi.Store, id spi.ExecutionID) error {
	req := first(id, 1, 1)
	req.ExpectedHead = spi.AnyHead
	return appendTo(ctx, s, req)
}

func TestNoExecutionTooManyIsStartedAndThoseThatAreThereGoOn(t *testing.T) {
	ctx := t.Context()
	s, account := over(t, newMemory(t), none(func(l *limits.Limits) { l.Executions = 2 }))
	one := first("one", 1, 1)
	expect(t, appendTo(ctx, s, one), "") // nothing is counted yet, and nothing is refused
	account.Counted(1)
	expect(t, next(ctx, s, "two"), "")
	for what, err := range map[string]error{
		"at head 0":  appendTo(ctx, s, first("three", 1, 1)),
		"at no head": next(ctx, s, "three"),
		"unchanged": func() error {
			_, err := spi.AppendIfUnchanged(ctx, s, spi.AppendIfUnchangedRequest{Execution: "three", Events: first("three", 1, 1).Events})
			return err
		}(),
		"copied": func() error {
			_, err := spi.CopyPrefix(ctx, s, spi.CopyPrefixRequest{From: "one", To: "three", N: 1})
			return err
		}(),
	} {
		if after := expect(t, err, "executions stored"); after != time.Minute {
			t.Errorf("%s: it is told to wait %v", what, after)
		}
	}
	expect(t, next(ctx, s, "one"), "")
	if res, err := spi.Append(ctx, s, one); err != nil || !res.Duplicate {
		t.Errorf("the append that started one, sent again: %+v, %v", res, err)
	}
	if u := account.Usage(); u.Executions != 2 || u.CountedAt.IsZero() {
		t.Errorf("%+v", u)
	}
	if _, err := spi.DeleteExecution(ctx, s, spi.DeleteExecutionRequest{Execution: "two", Incarnation: 1}); err != nil {
		t.Fatal(err)
	}
	expect(t, next(ctx, s, "three"), "")
	account.Counted(0) // as if another process had deleted them
	if _, err := spi.CopyPrefix(ctx, s, spi.CopyPrefixRequest{From: "one", To: "four", N: 1}); err != nil {
		t.Error(err)
	}
	if u := account.Usage(); u.Executions != 1 {
		t.Errorf("%+v", u)
	}
}

func TestOfABatchOnlyWhatStartsAnExecutionTooManyIsRefused(t *testing.T) {
	ctx := t.Context()
	s, account := over(t, newMemory(t), none(func(l *limits.Limits) { l.Executions = 1 }))
	expect(t, appendTo(ctx, s, first("old", 1, 1)), "")
	account.Counted(1)
	old := first("old", 1, 1)
	old.ExpectedHead = 1
	batch := spi.AppendBatchRequest{Appends: []spi.AppendRequest{first("new", 1, 1), old, first("newer", 1, 1)}}
	res, err := spi.AppendBatch(ctx, s, batch)
	if err != nil || len(res.Results) != 3 || res.Results[1].Err != nil || res.Results[1].Head != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	for _, i := range []int{0, 2} {
		if _, wrapped := res.Results[i].Err.(*spi.ThrottledError); !wrapped { //nolint:errorlint // a result has no OpError
			t.Errorf("result %d is %v", i, res.Results[i].Err)
		}
	}
	batch.Appends = []spi.AppendRequest{batch.Appends[0]}
	res, err = spi.AppendBatch(ctx, s, batch)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, res.Results[0].Err, "executions stored")
	account.Counted(0)
	if res, err = spi.AppendBatch(ctx, s, batch); err != nil || res.Results[0].Err != nil || account.Usage().Executions != 1 {
		t.Errorf("%+v, %v, %+v", res, err, account.Usage())
	}
}
