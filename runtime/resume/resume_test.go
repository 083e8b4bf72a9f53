package resume_test

import (
	"errors"
	"testing"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/decorators/faults"
	"github.com/loomgate/loomgate/runtime/events"
	"github.com/loomgate/loomgate/runtime/resume"
	"github.com/loomgate/loomgate/spi"
)

const id spi.ExecutionID = "order-1"

// A stage is a store, and a resumer over it whose calls a test sees first.
type stage struct {
	*testing.T
	store   *spi.Store
	resumer *resume.Resumer
	before  func(method string) // called before each call of the resumer
}

func newStage(t *testing.T, caps spi.Caps) *stage {
	t.Helper()
	s := &stage{T: t, before: func(string) {}}
	var err error
	if s.store, err = memory.New(); err != nil {
		t.Fatal(err)
	}
	watched, err := faults.New(spi.Only(s.store, caps), func(c faults.Call) faults.Fault { s.before(c.Method); return faults.Fault{} })
	if err != nil {
		t.Fatal(err)
	}
	s.resumer = resume.New(watched)
	return s
}

// park starts the execution and parks it, and returns where.
func (s *stage) park(waits ...events.Wait) int64 {
	s.Helper()
	run, err := s.resumer.Start(s.Context(), id, events.Started{})
	if err != nil {
		s.Fatal(err)
	}
	if parked, err := run.Park(s.Context(), waits...); err != nil || !parked {
		s.Fatal(parked, err)
	}
	park, err := s.resumer.LocatePark(s.Context(), id)
	if err != nil || park == nil {
		s.Fatal(park, err)
	}
	return park.Sequence
}

var external = events.Wait{ID: "approval", Reason: events.ReasonExternal}

func approve(*resume.State) (resume.Answer, error) {
	return resume.Answer{Waits: []string{"approval"}, Value: "yes"}, nil
}

func (s *stage) resume(r *resume.Resumer, at int64) (*resume.Run, error) {
	return r.Resume(s.Context(), resume.Request{Execution: id, FenceIfParkedAt: at, Answer: approve})
}

func (s *stage) acquire() {
	s.Helper()
	if _, err := spi.AcquireFence(s.Context(), s.store, spi.AcquireFenceRequest{Execution: id}); err != nil {
		s.Fatal(err)
	}
}

// kinds is what the log holds.
func (s *stage) kinds() (kinds []string) {
	s.Helper()
	log, err := spi.Read(s.Context(), s.store, spi.ReadRequest{Execution: id, Limit: 100})
	if err != nil {
		s.Fatal(err)
	}
	for _, e := range log.Events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func (s *stage) wantResumes(n int) {
	s.Helper()
	got := 0
	for _, kind := range s.kinds() {
		if kind == spi.KindExecutionResumed {
			got++
		}
	}
	if got != n {
		s.Errorf("%d resumes in %v", got, s.kinds())
	}
}

func refused(t *testing.T, err error, want resume.Reason) {
	t.Helper()
	if e, ok := errors.AsType[*resume.RefusedError](err); !ok || e.Reason != want {
		t.Errorf("%v, not refused as %s", err, want)
	}
}

func TestAParkIsResumedOnceAndItsBodyIsNeverFencedOut(t *testing.T) {
	s := newStage(t, spi.AllCaps)
	at := s.park(external)
	run, err := s.resume(s.resumer, at)
	if err != nil || run.Token() != 1 || run.State().Status != resume.Running {
		t.Fatal(run, err)
	}
	_, err = s.resume(s.resumer, at)
	refused(t, err, resume.ReasonNotSuspended)
	s.wantResumes(1)
	if err := run.Complete(t.Context(), "done"); err != nil {
		t.Errorf("the winner's body: %v", err)
	}
	if state, err := s.resumer.Fold(t.Context(), id); err != nil || state.Status != resume.Ended {
		t.Errorf("%+v %v", state, err)
	}
}

func TestAcquirersWhoDiedDoNotStrandThePark(t *testing.T) {
	s := newStage(t, spi.AllCaps)
	at := s.park(external)
	for range 3 {
		s.acquire()
	}
	run, err := s.resume(s.resumer, at)
	if err != nil || run.Token() != 4 {
		t.Errorf("%+v %v", run, err)
	}
}

func TestContentionIsNoRefusal(t *testing.T) {
	s := newStage(t, spi.AllCaps)
	at := s.park(external)
	s.before = func(method string) {
		if method == "AcquireFenceIf" {
			s.acquire() // a rival who acquires, and never appends
		}
	}
	_, err := s.resume(s.resumer, at)
	if e, ok := errors.AsType[*resume.ContendedError](err); !ok || e.Attempts != 3 || !e.Retryable() {
		t.Errorf("%v", err)
	}
	s.wantResumes(0)
}

func TestAnAnswerThatComesBetweenTheLookAndTheAcquireRefuses(t *testing.T) {
	s := newStage(t, spi.AllCaps)
	at := s.park(external)
	rivals := resume.New(s.store)
	s.before = func(method string) {
		if method == "AcquireFenceIf" {
			s.before = func(string) {}
			if _, err := s.resume(rivals, at); err != nil {
				t.Error(err)
			}
		}
	}
	_, err := s.resume(s.resumer, at)
	refused(t, err, resume.ReasonNotSuspended)
	s.wantResumes(1)
}

func TestWhatAnswersNothingLeavesTheParkOpen(t *testing.T) {
	s := newStage(t, spi.AllCaps)
	at := s.park(external)
	append := func(kind string, kernel bool) {
		_, err := spi.Append(t.Context(), s.store, spi.AppendRequest{Execution: id, ExpectedHead: spi.AnyHead, Events: []spi.Event{{ID: spi.NewEventID(), Kind: kind, Kernel: kernel}}})
		if err != nil {
			t.Error(err)
		}
	}
	append(spi.KindExecutionDenied, true)
	s.before = func(method string) {
		if method == "Append" {
			s.before = func(string) {}
			append("Noted", false) // between the acquire and the answer
		}
	}
	run, err := s.resume(s.resumer, at)
	if err != nil || run.State().Head != at+3 {
		t.Fatalf("%+v %v: %v", run, err, s.kinds())
	}
	s.wantResumes(1)
}

func TestAParkThatIsNoneIsRefusedAndTakesNoToken(t *testing.T) {
	s := newStage(t, spi.AllCaps)
	at := s.park(external)
	_, err := s.resume(s.resumer, at-1)
	refused(t, err, resume.ReasonNotSuspended)
	_, err = s.resumer.Resume(t.Context(), resume.Request{Execution: "nobody", FenceIfParkedAt: 2, Answer: approve})
	refused(t, err, resume.ReasonNotSuspended)
	if head, err := spi.Head(t.Context(), s.store, spi.HeadRequest{Execution: id}); err != nil || head.Fence != 0 {
		t.Errorf("the token is %d (%v)", head.Fence, err)
	}
}

func TestWithoutAConditionalAcquireTheUnconditionalOneIsTaken(t *testing.T) {
	s := newStage(t, spi.AllCaps&^spi.CapAcquireFenceIf)
	at := s.park(external)
	if run, err := s.resume(s.resumer, at); err != nil || run.Token() != 1 {
		t.Errorf("%+v %v", run, err)
	}
	_, err := s.resume(s.resumer, at)
	refused(t, err, resume.ReasonNotSuspended)
}

func TestAMessageIsConsumedOnceWithTheResumeThatItBrings(t *testing.T) {
	s := newStage(t, spi.AllCaps)
	s.park(events.Wait{ID: "payment", Reason: events.ReasonMessage, Channel: "paid"})
	message := spi.NewEventID()
	run, err := s.resumer.Deliver(t.Context(), id, message, "paid", 12)
	if err != nil || run == nil || len(run.State().Inbox) != 0 {
		t.Fatalf("%+v %v", run, err)
	}
	if run, err := s.resumer.Deliver(t.Context(), id, message, "paid", 12); err != nil || run != nil {
		t.Errorf("the same message again: %+v %v", run, err)
	}
	want := []string{spi.KindExecutionStarted, spi.KindExecutionSuspended, spi.KindMessageReceived, spi.KindMessageConsumed, spi.KindExecutionResumed}
	if got := s.kinds(); len(got) != len(want) || got[3] != want[3] || got[4] != want[4] {
		t.Errorf("the log is %v", got)
	}
}

func TestAMessageThatIsThereAlreadyIsTakenByThePark(t *testing.T) {
	s := newStage(t, spi.AllCaps)
	if run, err := s.resumer.Deliver(t.Context(), id, spi.NewEventID(), "paid", 12); err != nil || run != nil {
		t.Fatal(run, err)
	}
	run, err := s.resumer.Start(t.Context(), id, events.Started{})
	if err != nil {
		t.Fatal(err)
	}
	parked, err := run.Park(t.Context(), events.Wait{ID: "payment", Reason: events.ReasonMessage, Channel: "paid"})
	if err != nil || parked || run.State().Answer == nil {
		t.Errorf("parked %v (%v): %v", parked, err, s.kinds())
	}
	if err := run.Complete(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestARunReceivesWhatHasComeWhileItRan(t *testing.T) {
	s := newStage(t, spi.AllCaps)
	run, err := s.resumer.Start(t.Context(), id, events.Started{})
	if err != nil {
		t.Fatal(err)
	}
	for body := range 2 {
		if _, err := s.resumer.Deliver(t.Context(), id, spi.NewEventID(), "paid", body); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"0", "1"} {
		if message, err := run.Receive(t.Context(), "paid"); err != nil || message == nil || string(message.Body) != want {
			t.Errorf("%+v, %v", message, err)
		}
	}
	if message, err := run.Receive(t.Context(), "paid"); err != nil || message != nil {
		t.Errorf("a third one: %+v, %v", message, err)
	}
}
