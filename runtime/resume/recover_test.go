package resume_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/runtime/events"
	"github.com/loomgate/loomgate/runtime/resume"
	"github.com/loomgate/loomgate/spi"
)

// abandoned is an execution that runs, and a resumer over a store whose clock a test moves.
func abandoned(t *testing.T) (r *resume.Resumer, run *resume.Run, now *time.Time) {
	t.Helper()
	now = new(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	store, err := memory.New(memory.WithClock(func() time.Time { return *now }))
	if err != nil {
		t.Fatal(err)
	}
	r = resume.New(store)
	if run, err = r.Start(t.Context(), id, events.Started{}); err != nil {
		t.Fatal(err)
	}
	return r, run, now
}

func TestOneRecovererTakesOverWhatRunsAndItsLastOwnerIsFencedOut(t *testing.T) {
	r, lost, _ := abandoned(t)
	run, err := r.Recover(t.Context(), id, "node-b", time.Minute)
	if err != nil || run == nil || run.Token() != 1 {
		t.Fatal(run, err)
	}
	if other, err := r.Recover(t.Context(), id, "node-c", time.Minute); err != nil || other != nil {
		t.Errorf("a second one got %+v, %v", other, err)
	}
	if err := run.Append(t.Context(), spi.Event{ID: spi.NewEventID(), Kind: "Noted"}); err != nil {
		t.Error(err)
	}
	err = lost.Complete(t.Context(), nil)
	_, stale := errors.AsType[*spi.StaleFenceError](err)
	_, superseded := errors.AsType[*resume.SupersededError](err)
	if !stale && !superseded {
		t.Errorf("the owner that was thought to be gone: %v", err)
	}
	if err := run.Complete(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestALivingOwnerKeepsItsExecutionAsLongAsItHolds(t *testing.T) {
	r, _, now := abandoned(t)
	token, err := r.Hold(t.Context(), id, "node-a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		*now = now.Add(50 * time.Second)
		again, err := r.Hold(t.Context(), id, "node-a", time.Minute)
		if err != nil || again != token {
			t.Errorf("it prolongs the lease: %d after %d, %v", again, token, err)
		}
		if run, err := r.Recover(t.Context(), id, "node-b", time.Minute); err != nil || run != nil {
			t.Errorf("it is taken away: %+v, %v", run, err)
		}
	}
	if _, err := r.Hold(t.Context(), id, "node-b", time.Minute); err == nil {
		t.Error("two hold it")
	}
	*now = now.Add(time.Minute)
	if run, err := r.Recover(t.Context(), id, "node-b", time.Minute); err != nil || run == nil {
		t.Errorf("of an owner who is silent: %+v, %v", run, err)
	}
}

func TestWhatALivingOwnerLetsGoIsThereToRecover(t *testing.T) {
	r, _, _ := abandoned(t)
	token, err := r.Hold(t.Context(), id, "node-a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.LetGo(t.Context(), id, token); err != nil {
		t.Fatal(err)
	}
	if run, err := r.Recover(t.Context(), id, "node-b", time.Minute); err != nil || run == nil {
		t.Errorf("%+v, %v", run, err)
	}
}

func TestWhatDoesNotRunIsNotRecoveredAndItsLeaseIsFree(t *testing.T) {
	for name, then := range map[string]func(*testing.T, *resume.Run) error{
		"parked": func(t *testing.T, run *resume.Run) error {
			_, err := run.Park(t.Context(), external)
			return err
		},
		"ended": func(t *testing.T, run *resume.Run) error { return run.Complete(t.Context(), nil) },
	} {
		t.Run(name, func(t *testing.T) {
			r, run, _ := abandoned(t)
			if err := then(t, run); err != nil {
				t.Fatal(err)
			}
			if run, err := r.Recover(t.Context(), id, "node-b", time.Hour); err != nil || run != nil {
				t.Errorf("%+v, %v", run, err)
			}
			if head, err := spi.Head(t.Context(), r.Store(), spi.HeadRequest{Execution: id}); err != nil || head.Fence != 0 {
				t.Errorf("a token was taken: %+v, %v", head, err)
			}
			if _, err := r.Hold(t.Context(), id, "node-c", time.Minute); err != nil {
				t.Errorf("the lease: %v", err)
			}
		})
	}
}

func TestAResumeOnSomebodysBehalfNamesThemAndOneThatIsRefusedTakesNoToken(t *testing.T) {
	s := newStage(t, spi.AllCaps)
	at := s.park(external)
	req := resume.Request{Execution: id, FenceIfParkedAt: at, Answer: approve}
	forbidden := errors.New("may not approve")
	_, err := s.resumer.ResumeAs(t.Context(), func(context.Context, *resume.State) (string, error) { return "", forbidden }, req)
	if !errors.Is(err, forbidden) {
		t.Error(err)
	}
	if head, err := spi.Head(t.Context(), s.store, spi.HeadRequest{Execution: id}); err != nil || head.Fence != 0 || head.Head != at {
		t.Errorf("it has left %+v, %v", head, err)
	}
	run, err := s.resumer.ResumeAs(t.Context(), func(_ context.Context, state *resume.State) (string, error) {
		if state.Park == nil || state.Park.Sequence != at {
			t.Errorf("who is asked sees %+v", state)
		}
		return "maria", nil
	}, req)
	if err != nil || run == nil {
		t.Fatal(run, err)
	}
	log, err := spi.Read(t.Context(), s.store, spi.ReadRequest{Execution: id, After: at, Limit: 10})
	if err != nil || len(log.Events) != 1 || log.Events[0].Metadata[resume.MetadataPrincipal] != "maria" {
		t.Errorf("%+v, %v", log.Events, err)
	}
}
