package conformance

import (
	"errors"

	"github.com/loomgate/loomgate/spi"
)

// raceRounds is how often each race is run: a race that is lost once in a hundred
// times is lost in some run of every day.
const raceRounds = 40

var races = topic{"races", []testCase{
	{
		"an answering append and a conditional acquire never both succeed",
		spi.CapAcquireFenceIf,
		func(f *fixture) {
			f.raceAcquire(func(e spi.ExecutionID) error {
				_, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: e, ExpectedHead: 1, Events: []spi.Event{event(spi.KindExecutionResumed)}})
				return err
			})
		},
	},
	{
		"an answering append at any head and a conditional acquire never both succeed",
		spi.CapAcquireFenceIf,
		func(f *fixture) {
			f.raceAcquire(func(e spi.ExecutionID) error {
				_, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: e, ExpectedHead: spi.AnyHead, Events: []spi.Event{event("Noted"), event(spi.KindExecutionResumed)}})
				return err
			})
		},
	},
	{
		"an answering append in a batch and a conditional acquire never both succeed",
		spi.CapAcquireFenceIf | spi.CapAppendBatch,
		func(f *fixture) {
			f.raceAcquire(func(e spi.ExecutionID) error {
				res, err := spi.AppendBatch(f.ctx, f.store, spi.AppendBatchRequest{Appends: []spi.AppendRequest{
					{Execution: "other", ExpectedHead: spi.AnyHead, Events: events(1)},
					{Execution: e, ExpectedHead: 1, Events: []spi.Event{event(spi.KindExecutionResumed)}},
				}})
				if err == nil && len(res.Results) != 2 {
					err = errors.New("not one result for each append")
				}
				if err != nil {
					return err
				}
				return res.Results[1].Err
			})
		},
	},
	{
		"an append if unchanged and a conditional acquire never both succeed (invariant 9)",
		spi.CapAcquireFenceIf | spi.CapAppendIfUnchanged,
		func(f *fixture) {
			f.raceAcquire(func(e spi.ExecutionID) error {
				_, err := spi.AppendIfUnchanged(f.ctx, f.store, spi.AppendIfUnchangedRequest{Execution: e, Head: 1, Events: []spi.Event{event(spi.KindExecutionResumed)}})
				return err
			})
		},
	},
	{
		"two appends if unchanged never both succeed (invariant 9)",
		spi.CapAppendIfUnchanged,
		func(f *fixture) {
			for round := range raceRounds {
				e := id("e%d", round)
				f.appendN(e, 0, 1)
				var errs [2]error
				together(2, func(i int) {
					_, errs[i] = spi.AppendIfUnchanged(f.ctx, f.store, spi.AppendIfUnchangedRequest{Execution: e, Head: 1, Events: events(1)})
				})
				if (errs[0] == nil) == (errs[1] == nil) {
					f.Errorf("they answer %v and %v", errs[0], errs[1])
				}
				f.wantLog(e, 1, 2)
			}
		},
	},
	{
		"an append and a deletion leave no event of the old incarnation behind (invariant 11)",
		spi.CapDeleteExecution,
		func(f *fixture) {
			for round := range raceRounds {
				e := id("e%d", round)
				f.appendN(e, 0, 1)
				var appended, deleted error
				together(2, func(i int) {
					if i == 0 {
						_, appended = spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: e, ExpectedHead: 1, Events: events(2)})
						return
					}
					_, deleted = spi.DeleteExecution(f.ctx, f.store, spi.DeleteExecutionRequest{Execution: e, Incarnation: 1})
				})
				if deleted != nil {
					f.Fatal(deleted)
				}
				if appended != nil && !isIncarnationOrConflict(appended) {
					f.Errorf("the append answers %v", appended)
				}
				f.wantNothing(e)
			}
		},
	},
	{
		"appends and a truncation leave the head and no sequence twice (invariants 2 and 6)",
		spi.CapTruncatePrefixKeeping,
		func(f *fixture) {
			for round := range raceRounds / 4 {
				e := id("e%d", round)
				f.appendN(e, 0, 4)
				together(3, func(i int) {
					if i == 0 {
						_, err := spi.TruncatePrefixKeeping(f.ctx, f.store, spi.TruncatePrefixKeepingRequest{Execution: e, Incarnation: 1, Before: 100})
						if err != nil {
							f.Error(err)
						}
						return
					}
					for range 3 {
						if _, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: e, ExpectedHead: spi.AnyHead, Events: events(1)}); err != nil {
							f.Error(err)
						}
					}
				})
				head := f.head(e)
				equal(f, "the head", head.Head, 10)
				f.wantLog(e, upTo(10)[max(head.Floor, 1)-1:]...)
			}
		},
	},
}}

// raceAcquire lets an answer race an acquire of the park that it answers, and
// checks that exactly one of them succeeds and that the log and the fence agree.
func (f *fixture) raceAcquire(answer func(spi.ExecutionID) error) {
	f.Helper()
	for round := range raceRounds {
		e := id("e%d", round)
		park := f.park(e, 0, 0)
		var answered error
		var acquired spi.AcquireFenceIfResponse
		var acquireErr error
		together(2, func(i int) {
			if i == round%2 {
				answered = answer(e)
				return
			}
			acquired, acquireErr = spi.AcquireFenceIf(f.ctx, f.store, spi.AcquireFenceIfRequest{Execution: e, ParkSeq: park})
		})
		if acquireErr != nil {
			f.Fatal(acquireErr)
		}
		if answered != nil {
			wantError[*spi.StaleFenceError](f, answered)
		}
		if (answered == nil) == acquired.Acquired {
			f.Errorf("the answer's error is %v, and the acquire answers %+v", answered, acquired)
		}
		head := f.head(e)
		if (answered == nil) != (head.Head > 1) || acquired.Acquired != (head.Fence == 1) {
			f.Errorf("the answer's error is %v and the acquire answers %+v, but the log is at %+v", answered, acquired, head)
		}
	}
}

func isIncarnationOrConflict(err error) bool {
	_, incarnation := errors.AsType[*spi.IncarnationError](err)
	_, conflict := errors.AsType[*spi.ConflictError](err)
	return incarnation || conflict
}
