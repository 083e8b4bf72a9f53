package timers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/decorators/faults"
	"github.com/loomgate/loomgate/runtime/events"
	"github.com/loomgate/loomgate/runtime/resume"
	"github.com/loomgate/loomgate/runtime/timers"
	"github.com/loomgate/loomgate/spi"
)

const id spi.ExecutionID = "order-1"

// A stage is a store whose clock a test moves, and services over it.
type stage struct {
	*testing.T
	now     time.Time
	store   *spi.Store
	resumer *resume.Resumer
	before  func(method string) // called before each call of the services
	calls   []string
	errs    []error
	woken   []*resume.Run
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), before: func(string) {}}
	var err error
	if s.store, err = memory.New(memory.WithClock(func() time.Time { return s.now })); err != nil {
		t.Fatal(err)
	}
	watched, err := faults.New(s.store, func(c faults.Call) faults.Fault {
		s.calls = append(s.calls, c.Method)
		s.before(c.Method)
		return faults.Fault{}
	})
	if err != nil {
		t.Fatal(err)
	}
	s.resumer = resume.New(watched)
	return s
}

func (s *stage) service(redrive bool, redrivers ...timers.Redriver) *timers.Service {
	s.Helper()
	service, err := timers.New(s.resumer, timers.Config{
		Holder: "node", Redrive: redrive,
		Backoff: timers.Backoff{Random: func() float64 { return 0.5 }},
		Now:     func() time.Time { return s.now },
		Body:    func(_ context.Context, run *resume.Run) { s.woken = append(s.woken, run) },
		OnError: func(err error) { s.errs = append(s.errs, err) },
	})
	if err != nil {
		s.Fatal(err)
	}
	for _, r := range redrivers {
		service.Register(r)
	}
	return service
}

func (s *stage) poll(service *timers.Service, after time.Duration) {
	s.Helper()
	s.now = s.now.Add(after)
	if err := service.Poll(s.Context()); err != nil {
		s.Error(err)
	}
}

func (s *stage) park(waits ...events.Wait) *resume.Run {
	s.Helper()
	run, err := s.resumer.Start(s.Context(), id, events.Started{})
	if err != nil {
		s.Fatal(err)
	}
	if _, err := run.Park(s.Context(), waits...); err != nil {
		s.Fatal(err)
	}
	return run
}

func (s *stage) sleep(name string, d time.Duration) events.Wait {
	return events.Wait{ID: name, Reason: events.ReasonTimer, WakeAt: s.now.Add(d)}
}

// rows is what would be due some time.
func (s *stage) rows() []spi.Timer {
	s.Helper()
	now := s.now
	s.now = now.Add(1000 * time.Hour)
	due, err := spi.DueTimers(s.Context(), s.store, spi.DueTimersRequest{Limit: 100})
	s.now = now
	if err != nil {
		s.Fatal(err)
	}
	return due.Timers
}

func (s *stage) wantRows(n int) {
	s.Helper()
	if rows := s.rows(); len(rows) != n {
		s.Errorf("%d rows, not %d: %+v", len(rows), n, rows)
	}
}

// rival acquires ahead of each acquire, and never appends.
func (s *stage) rival() {
	s.before = func(method string) {
		if method == "AcquireFenceIf" {
			if _, err := spi.AcquireFence(s.Context(), s.store, spi.AcquireFenceRequest{Execution: id}); err != nil {
				s.Error(err)
			}
		}
	}
}

func (s *stage) exhaustions() (n int) {
	for _, err := range s.errs {
		if _, ok := errors.AsType[*timers.ExhaustedError](err); ok {
			n++
		}
	}
	return n
}

func TestATimerWakesWhenItIsDueAndNotBefore(t *testing.T) {
	s := newStage(t)
	s.park(s.sleep("nap", time.Minute))
	service := s.service(false)
	s.poll(service, time.Minute-time.Millisecond)
	if len(s.woken) != 0 {
		t.Fatal("woken early")
	}
	s.poll(service, time.Millisecond)
	if len(s.woken) != 1 || s.woken[0].State().Answer.Waits[0] != "nap" || s.woken[0].Token() != 1 {
		t.Fatalf("%+v %v", s.woken, s.errs)
	}
	s.wantRows(0)
}

func TestARowGoesOnlyWhenItsOwnWaitHasEnded(t *testing.T) {
	s := newStage(t)
	early, late := s.sleep("early", time.Minute), s.sleep("late", time.Hour)
	s.park(early, late)
	service := s.service(false)
	s.poll(service, time.Minute) // the park is answered, and "late" is not
	s.wantRows(1)
	s.poll(service, time.Hour) // it runs: it may park on "late" again
	s.wantRows(1)
	if _, err := s.woken[0].Park(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	s.poll(service, time.Minute)
	if len(s.woken) != 2 || s.woken[1].State().Answer.Waits[0] != "late" {
		t.Fatalf("%+v %v", s.woken, s.errs)
	}
	s.wantRows(0)
}

func TestARowWhoseWaitHasEndedIsRetired(t *testing.T) {
	for name, end := range map[string]func(*resume.Run) error{
		"the execution has ended": func(r *resume.Run) error { return r.Complete(t.Context(), nil) },
		"it is parked on something else": func(r *resume.Run) error {
			_, err := r.Park(t.Context(), events.Wait{ID: "other", Reason: events.ReasonExternal})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			nap := s.sleep("nap", time.Minute)
			s.park(nap)
			run, err := s.resumer.Resume(t.Context(), resume.Request{Execution: id})
			if err != nil {
				t.Fatal(err)
			}
			if err := end(run); err != nil {
				t.Fatal(err)
			}
			s.poll(s.service(false), time.Hour)
			s.wantRows(0)
			if len(s.woken) != 0 {
				t.Error("woken for nothing")
			}
		})
	}
}

func TestAContendedWakeTakesNoTokenBeforeItsTimeAndIsReportedOnce(t *testing.T) {
	s := newStage(t)
	s.park(s.sleep("nap", time.Minute))
	service := s.service(false)
	s.rival()
	s.poll(service, time.Minute)
	s.calls = nil
	s.poll(service, 99*time.Millisecond) // half of 200 ms is not over
	for _, method := range s.calls {
		if method == "AcquireFenceIf" {
			t.Error("a token was taken before its time")
		}
	}
	for range 20 {
		s.poll(service, time.Minute)
	}
	if s.exhaustions() != 1 || len(s.errs) != 1 {
		t.Errorf("told %v", s.errs)
	}
	s.wantRows(0)
	s.before = func(string) {}
	if restored, err := service.Restore(t.Context(), id); err != nil || !restored {
		t.Error(restored, err)
	}
	s.poll(service, 0)
	if len(s.woken) != 1 {
		t.Errorf("not woken after recovery: %v", s.errs)
	}
}

// answers is a re-driver that says one thing after the other.
func answers(asked *int, outcomes ...timers.Outcome) timers.Redriver {
	return func(context.Context, spi.ExecutionID) (timers.Outcome, error) {
		*asked++
		return outcomes[min(*asked, len(outcomes))-1], nil
	}
}

func TestTheFirstAnswerThatIsNotNoopWins(t *testing.T) {
	s := newStage(t)
	var first, second, third int
	service := s.service(true, answers(&first, timers.Noop), answers(&second, timers.Done), answers(&third, timers.Contended))
	if written, err := service.ScheduleRedrive(t.Context(), id); err != nil || !written {
		t.Fatal(written, err)
	}
	s.poll(service, time.Minute)
	if first != 1 || second != 1 || third != 0 {
		t.Errorf("asked %d, %d, %d times", first, second, third)
	}
	s.wantRows(0)
}

func TestTheNextRowIsThereBeforeOneIsRetiredAndIsLater(t *testing.T) {
	s := newStage(t)
	failing := func(context.Context, spi.ExecutionID) (timers.Outcome, error) {
		return timers.Noop, errors.New("cannot read")
	}
	service := s.service(true, failing)
	if _, err := service.ScheduleRedrive(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	before := s.rows()[0]
	if before.Attempt != 0 || !before.Redrive {
		t.Errorf("the first row is %+v", before)
	}
	s.before = func(method string) {
		if method == "CompleteTimer" {
			s.wantRows(2)
		}
	}
	s.poll(service, time.Minute)
	if rows := s.rows(); len(rows) != 1 || rows[0].Attempt != 1 || !rows[0].WakeAt.After(before.WakeAt) || !rows[0].WakeAt.After(s.now) {
		t.Errorf("the next row is %+v", rows)
	}
	if len(s.errs) != 1 {
		t.Errorf("told %v", s.errs)
	}
}

func TestAttemptsRunOutOnce(t *testing.T) {
	s := newStage(t)
	var asked int
	service := s.service(true, answers(&asked, timers.Contended))
	if _, err := service.ScheduleRedrive(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		s.poll(service, time.Minute)
	}
	if asked != 8 || s.exhaustions() != 1 || len(s.errs) != 1 {
		t.Errorf("asked %d times, told %v", asked, s.errs)
	}
	s.wantRows(0)
}

func TestANodeWithoutRedriversLeavesTheRowsAndWakesTheOthers(t *testing.T) {
	s := newStage(t)
	writer := s.service(true)
	for range 600 { // more than a poll asks for
		s.now = s.now.Add(time.Millisecond)
		if _, err := writer.ScheduleRedrive(t.Context(), "parent"); err != nil {
			t.Fatal(err)
		}
	}
	s.park(s.sleep("nap", time.Minute))
	s.poll(writer, time.Hour)
	if len(s.woken) != 1 {
		t.Error("a plain wake is starved")
	}
	if rows := s.rows(); len(rows) != 100 {
		t.Error("rows are gone")
	}
}

func TestRedriveRowsAreWrittenOnlyWhenSwitchedOn(t *testing.T) {
	s := newStage(t)
	if written, err := s.service(false).ScheduleRedrive(t.Context(), id); err != nil || written {
		t.Error(written, err)
	}
	s.wantRows(0)
}

func TestOneNodePollsAtATime(t *testing.T) {
	s := newStage(t)
	s.park(s.sleep("nap", time.Minute))
	_, err := spi.AcquireLease(t.Context(), s.store, spi.AcquireLeaseRequest{Name: "loomgate/timers", Holder: "another", TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	service := s.service(false)
	s.poll(service, time.Minute)
	if len(s.woken) != 0 {
		t.Error("polled without the lease")
	}
	s.poll(service, time.Hour)
	if len(s.woken) != 1 {
		t.Error("the lease has ended, and nothing was polled")
	}
}

// deferred delivers a message to a parked execution while a rival keeps acquiring it.
func (s *stage) deferred(service *timers.Service) (*resume.Run, error) {
	s.Helper()
	s.park(events.Wait{ID: "payment", Reason: events.ReasonMessage, Channel: "paid"})
	s.rival()
	run, err := service.Deliver(s.Context(), id, spi.NewEventID(), "paid", 12)
	s.before = func(string) {}
	return run, err
}

func TestAMessageWhoseWakeIsContendedIsDeliveredByARedriveRow(t *testing.T) {
	s := newStage(t)
	service := s.service(true)
	service.Register(service.Inbox)
	if run, err := s.deferred(service); run != nil || err != nil {
		t.Fatal(run, err)
	}
	s.wantRows(1)
	s.poll(service, time.Minute)
	if len(s.woken) != 1 || s.woken[0].State().Answer == nil || len(s.woken[0].State().Inbox) != 0 {
		t.Fatalf("woken: %+v; told %v", s.woken, s.errs)
	}
	s.wantRows(0)
	if outcome, err := service.Inbox(t.Context(), id); outcome != timers.Noop || err != nil {
		t.Errorf("of a message that is consumed: %v, %v", outcome, err)
	}
}

func TestAMessageWhoseWakeIsContendedIsAnErrorWithRedriveOff(t *testing.T) {
	s := newStage(t)
	if _, err := s.deferred(s.service(false)); err == nil {
		t.Error("no error")
	} else if _, contended := errors.AsType[*resume.ContendedError](err); !contended {
		t.Error(err)
	}
	s.wantRows(0)
}

func TestOfTooManyWakesThatArePutOffTheSoonestIsForgottenAndNoneIsLost(t *testing.T) {
	const n = 1024 + 1
	s := newStage(t)
	at := s.now.Add(time.Minute)
	for i := range n { // rows of executions that run: their parks are still to come
		run := spi.ExecutionID(fmt.Sprintf("order-%04d", i))
		if _, err := s.resumer.Start(t.Context(), run, events.Started{}); err != nil {
			t.Fatal(err)
		}
		if _, err := spi.ScheduleTimer(t.Context(), s.store, spi.ScheduleTimerRequest{Timer: spi.Timer{Execution: run, WakeAt: at}}); err != nil {
			t.Fatal(err)
		}
	}
	service, err := timers.New(s.resumer, timers.Config{
		Holder: "node", Limit: n, Now: func() time.Time { return s.now },
		Backoff: timers.Backoff{Random: func() float64 { return 0.5 }},
	})
	if err != nil {
		t.Fatal(err)
	}
	looks := func() (n int) {
		s.calls = nil
		s.poll(service, 0)
		for _, method := range s.calls {
			if method == "Head" || method == "Read" {
				n++
			}
		}
		return n
	}
	s.now = at
	first := looks()
	if again := looks(); first < n || again == 0 || again > 10 {
		t.Errorf("of %d wakes, %d looks at the logs at once and %d afterwards", n, first, again)
	}
	if due, err := spi.DueTimers(t.Context(), s.store, spi.DueTimersRequest{Limit: 2 * n}); err != nil || len(due.Timers) != n {
		t.Errorf("%d rows are left (%v)", len(due.Timers), err)
	}
}
