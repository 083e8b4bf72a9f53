package retry_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/decorators/retry"
	"github.com/loomgate/loomgate/spi"
)

// over returns a store that sends again to one that answers by script.
func over(t testing.TB, s *scripted, o retry.Options) *spi.Store {
	t.Helper()
	inner, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	store, err := retry.New(inner, o)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func want[E error](t *testing.T, err error) E {
	t.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("the error is %v, not a %T", err, e)
	}
	return e
}

// repeat is a script of one error.
func repeat(n int, err error) []error { return slices.Repeat([]error{err}, n) }

var (
	unavailable = error(&spi.UnavailableError{Cause: errLost})
	ambiguous   = error(&spi.AmbiguousError{Execution: "e", Cause: errLost})
)

// longest waits as long as may be.
func longest(d time.Duration) time.Duration { return d }

func TestWaitsDoubleUpToTheCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits []time.Duration
		s := &scripted{script: repeat(6, unavailable)}
		store := over(t, s, retry.Options{Base: time.Second, Cap: 5 * time.Second, Within: time.Hour, Jitter: func(d time.Duration) time.Duration {
			waits = append(waits, d)
			return d
		}})
		begin := time.Now()
		if _, err := spi.Append(t.Context(), store, atHead); err != nil {
			t.Fatal(err)
		}
		if want := []time.Duration{1e9, 2e9, 4e9, 5e9, 5e9, 5e9}; !slices.Equal(waits, want) || time.Since(begin) != 22*time.Second {
			t.Errorf("waits up to %v, %v in all", waits, time.Since(begin))
		}
	})
}

func TestTriesAreBounded(t *testing.T) {
	for _, script := range [][]error{repeat(100, unavailable), repeat(100, ambiguous)} {
		s := &scripted{script: slices.Clone(script)}
		_, err := spi.Append(t.Context(), over(t, s, retry.Options{Tries: 5, Jitter: noWait}), atHead)
		if s.calls != 5 || !errors.Is(err, script[0]) {
			t.Errorf("%d calls answer %v", s.calls, err)
		}
		s = &scripted{script: slices.Clone(script)}
		res, err := spi.AppendBatch(t.Context(), over(t, s, retry.Options{Tries: 5, Jitter: noWait}), spi.AppendBatchRequest{Appends: []spi.AppendRequest{atHead}})
		if s.calls != 5 || err != nil || !errors.Is(res.Results[0].Err, script[0]) {
			t.Errorf("%d batches answer %v, %v", s.calls, res, err)
		}
	}
}

func TestNoTryBeginsTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{script: repeat(100, unavailable)}
		store := over(t, s, retry.Options{Tries: 100, Within: 10 * time.Second, Base: 4 * time.Second, Cap: 4 * time.Second, Jitter: longest})
		begin := time.Now()
		_, err := spi.Append(t.Context(), store, atHead)
		if want[*spi.UnavailableError](t, err); s.calls != 3 || time.Since(begin) != 8*time.Second {
			t.Errorf("%d calls in %v", s.calls, time.Since(begin))
		}
	})
}

func TestAWaitEndsWithTheContext(t *testing.T) {
	for _, c := range []struct {
		first, want error
	}{{unavailable, context.Canceled}, {ambiguous, ambiguous}} {
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{script: []error{c.first}}
			store := over(t, s, retry.Options{Base: time.Hour, Cap: time.Hour, Within: 2 * time.Hour, Jitter: longest})
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			begin := time.Now()
			if _, err := spi.Append(ctx, store, atHead); !errors.Is(err, c.want) || s.calls != 1 || time.Since(begin) != time.Second {
				t.Errorf("%v after %v and %d calls", err, time.Since(begin), s.calls)
			}
		})
	}
}

func TestAWaitThatTheContextWouldEndDoesNotBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{script: []error{unavailable}}
		store := over(t, s, retry.Options{Base: time.Minute, Cap: time.Minute, Within: time.Hour, Jitter: longest})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		begin := time.Now()
		_, err := spi.Append(ctx, store, atHead)
		if want[*spi.UnavailableError](t, err); time.Since(begin) != 0 {
			t.Errorf("waits for %v", time.Since(begin))
		}
	})
}

func TestWithoutAJitterWaitsAreSpreadFromNothingToTheLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits []time.Duration
		for range 400 {
			begin := time.Now()
			store := over(t, &scripted{script: []error{unavailable}}, retry.Options{Base: time.Second})
			if _, err := spi.Append(t.Context(), store, atHead); err != nil {
				t.Fatal(err)
			}
			waits = append(waits, time.Since(begin))
		}
		slices.Sort(waits)
		// That a fair draw fails one of these has a chance below 1 in 10^9.
		if waits[0] > 100*time.Millisecond || waits[399] > time.Second || waits[399] < 900*time.Millisecond || waits[200] < 300*time.Millisecond || waits[200] > 700*time.Millisecond {
			t.Errorf("from %v to %v, half of them up to %v", waits[0], waits[399], waits[200])
		}
	})
}

func TestNegativeOptionsAreRefused(t *testing.T) {
	inner, err := (&scripted{}).open()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []retry.Options{{Tries: -1}, {Within: -1}, {Base: -1}, {Cap: -1}} {
		_, err := retry.New(inner, o)
		want[*spi.InvalidArgumentError](t, err)
	}
}

func TestTheRequestIsTheSameEachTime(t *testing.T) {
	s := &scripted{script: repeat(2, ambiguous)}
	req := spi.AppendBatchRequest{Appends: []spi.AppendRequest{atAnySince}}
	if _, err := spi.AppendBatch(t.Context(), over(t, s, retry.Options{Jitter: noWait}), req); err != nil {
		t.Fatal(err)
	}
	for _, sent := range s.batches {
		if a := sent.Appends[0]; a.ExpectedHead != spi.AnyHead || a.SinceSeq != 4 || a.Events[0].ID != noted[0].ID {
			t.Errorf("%+v", a)
		}
	}
}

func TestAnAppendThatALostTryHasStoredIsNoDuplicate(t *testing.T) {
	s := &scripted{append: spi.AppendResponse{FirstSeq: 4, Head: 4, Duplicate: true}}
	store := over(t, s, retry.Options{Jitter: noWait})
	batch := spi.AppendBatchRequest{Appends: []spi.AppendRequest{atHead}}
	for _, lost := range []bool{false, true} {
		if lost {
			s.script = repeat(2, ambiguous)
		}
		single, err := spi.Append(t.Context(), store, atHead)
		if err != nil || single.Duplicate == lost || single.FirstSeq != 4 {
			t.Errorf("an append: %+v, %v", single, err)
		}
		if lost {
			s.script = repeat(2, ambiguous)
		}
		res, err := spi.AppendBatch(t.Context(), store, batch)
		if err != nil || res.Results[0].Duplicate == lost || res.Results[0].FirstSeq != 4 {
			t.Errorf("a batch: %+v, %v", res, err)
		}
	}
	// Nothing was lost: the duplicate is an earlier call's.
	s.script = repeat(1, unavailable)
	if res, err := spi.Append(t.Context(), store, atHead); err != nil || !res.Duplicate {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestAConditionalAcquireIsNotSettledByTheTokenThatTheLostTryWouldHave(t *testing.T) {
	const fence = 5
	req := spi.AcquireFenceIfRequest{Execution: "e", Fence: fence, ParkSeq: 1}
	for _, c := range []struct {
		answer  spi.AcquireFenceIfResponse
		settled bool
	}{
		{spi.AcquireFenceIfResponse{Acquired: true, Token: fence + 1}, true},
		{spi.AcquireFenceIfResponse{Token: fence}, true},      // something answers the park
		{spi.AcquireFenceIfResponse{Token: fence + 1}, false}, // the lost try's, or a rival's
		{spi.AcquireFenceIfResponse{Token: fence + 2}, true},  // a rival's in any case
	} {
		s := &scripted{acquireIf: c.answer, script: repeat(1, ambiguous)}
		res, err := spi.AcquireFenceIf(t.Context(), over(t, s, retry.Options{Jitter: noWait}), req)
		if c.settled && (err != nil || res != c.answer) || !c.settled && !errors.Is(err, ambiguous) {
			t.Errorf("%+v becomes %+v, %v", c.answer, res, err)
		}
		s = &scripted{acquireIf: c.answer, script: repeat(1, unavailable)}
		if res, err := spi.AcquireFenceIf(t.Context(), over(t, s, retry.Options{Jitter: noWait}), req); err != nil || res != c.answer {
			t.Errorf("with nothing lost, %+v becomes %+v, %v", c.answer, res, err)
		}
	}
}

func TestAKeyThatALostTryHasStoredIsCreated(t *testing.T) {
	mine := spi.DataKey{Owner: "e", Version: 1, ID: spi.KeyID{1}, WrappedBy: "kms", Wrapped: []byte{1}}
	theirs := mine
	theirs.ID = spi.KeyID{2}
	for _, c := range []struct {
		key     spi.DataKey
		created bool
	}{{mine, true}, {theirs, false}} {
		s := &scripted{create: spi.CreateDataKeyResponse{Key: c.key}, script: repeat(1, ambiguous)}
		res, err := spi.CreateDataKey(t.Context(), over(t, s, retry.Options{Jitter: noWait}), spi.CreateDataKeyRequest{Key: mine})
		if err != nil || res.Created != c.created || res.Key.ID != c.key.ID {
			t.Errorf("%+v, %v", res, err)
		}
	}
}

func TestAThrottledRequestIsNotSentAgainTooEarly(t *testing.T) {
	throttled := func(after time.Duration) error {
		return &spi.ThrottledError{Limit: "requests a second", RetryAfter: after}
	}
	for _, c := range []struct {
		after time.Duration
		calls int
		took  time.Duration
	}{
		{3 * time.Second, 2, 4 * time.Second},
		{11 * time.Second, 1, 0}, // past Within: there is no point in waiting
		{1<<63 - 1, 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := retry.Options{Within: 10 * time.Second, Base: time.Second, Jitter: longest}
			s := &scripted{script: []error{throttled(c.after)}}
			begin := time.Now()
			_, err := spi.Append(t.Context(), over(t, s, o), atHead)
			if (err == nil) != (c.calls > 1) || s.calls != c.calls || time.Since(begin) != c.took {
				t.Errorf("after %v: %d calls in %v, %v", c.after, s.calls, time.Since(begin), err)
			}
			s = &scripted{script: []error{nil, throttled(c.after / 2), throttled(c.after)}}
			begin = time.Now()
			res, err := spi.AppendBatch(t.Context(), over(t, s, o), spi.AppendBatchRequest{Appends: []spi.AppendRequest{to("a"), to("b"), to("c")}})
			if err != nil || (res.Results[2].Err == nil) != (c.calls > 1) || s.calls != c.calls || time.Since(begin) != c.took {
				t.Errorf("after %v: %d batches in %v, %v, %v", c.after, s.calls, time.Since(begin), res.Results, err)
			}
		})
	}
}
