package supervise_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/decorators/faults"
	"github.com/loomgate/loomgate/runtime/events"
	"github.com/loomgate/loomgate/runtime/resume"
	"github.com/loomgate/loomgate/runtime/retention"
	"github.com/loomgate/loomgate/runtime/supervise"
	"github.com/loomgate/loomgate/runtime/timers"
	"github.com/loomgate/loomgate/spi"
)

const parent spi.ExecutionID = "parent"

type stage struct {
	*testing.T
	now     time.Time
	store   *spi.Store
	resumer *resume.Resumer
	plain   *resume.Resumer // whose calls nobody sees
	fault   func(faults.Call) faults.Fault
	timers  *timers.Service
	errs    []error
	resumed []*resume.Run
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), fault: func(faults.Call) faults.Fault { return faults.Fault{} }}
	var err error
	if s.store, err = memory.New(memory.WithClock(func() time.Time { return s.now })); err != nil {
		t.Fatal(err)
	}
	watched, err := faults.New(s.store, func(c faults.Call) faults.Fault { return s.fault(c) })
	if err != nil {
		t.Fatal(err)
	}
	s.resumer, s.plain = resume.New(watched), resume.New(s.store)
	return s
}

// supervisor is on a node of its own.
func (s *stage) supervisor(redrive bool) *supervise.Supervisor {
	s.Helper()
	var err error
	s.timers, err = timers.New(s.resumer, timers.Config{
		Holder: "node", Redrive: redrive, Now: func() time.Time { return s.now },
		OnError: func(err error) { s.errs = append(s.errs, err) },
	})
	if err != nil {
		s.Fatal(err)
	}
	return supervise.New(s.resumer, supervise.Config{
		Timers: s.timers,
		Body:   func(_ context.Context, run *resume.Run) { s.resumed = append(s.resumed, run) },
	})
}

func child(i int) spi.ExecutionID { return spi.ExecutionID(fmt.Sprintf("child-%d", i)) }

// family starts a parent that is parked on two children with that wait.
func (s *stage) family(group string, edge func(key string) events.Parent) (children []*resume.Run) {
	s.Helper()
	wait := events.Wait{ID: "both", Reason: events.ReasonChildren, Group: group}
	for i := range 2 {
		e := edge(fmt.Sprint(i))
		run, err := s.plain.Start(s.Context(), child(i), events.Started{Parent: &e})
		if err != nil {
			s.Fatal(err)
		}
		children = append(children, run)
		wait.Children = append(wait.Children, events.Child{Key: fmt.Sprint(i), Execution: child(i)})
	}
	run, err := s.plain.Start(s.Context(), parent, events.Started{})
	if err != nil {
		s.Fatal(err)
	}
	if _, err := run.Park(s.Context(), wait); err != nil {
		s.Fatal(err)
	}
	return children
}

func keyed(key string) events.Parent { return events.Parent{Execution: parent, Key: key} }

func (s *stage) end(runs ...*resume.Run) {
	s.Helper()
	for _, run := range runs {
		if err := run.Complete(s.Context(), "fine"); err != nil {
			s.Fatal(err)
		}
	}
}

// acquire is what a rival does, and never appends.
func (s *stage) acquire() {
	s.Helper()
	if _, err := spi.AcquireFence(s.Context(), s.store, spi.AcquireFenceRequest{Execution: parent}); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) rival() {
	s.fault = func(c faults.Call) faults.Fault {
		if c.Method == "AcquireFenceIf" {
			s.acquire()
		}
		return faults.Fault{}
	}
}

func (s *stage) settled(sup *supervise.Supervisor, i int) {
	s.Helper()
	if err := sup.Settled(s.Context(), child(i)); err != nil {
		s.Error(err)
	}
}

func TestAParentIsResumedWhenItsLastChildHasSettled(t *testing.T) {
	s := newStage(t)
	children := s.family("", keyed)
	sup := s.supervisor(false)
	s.end(children[0])
	s.settled(sup, 0)
	if len(s.resumed) != 0 {
		t.Fatal("resumed with a child that runs")
	}
	s.end(children[1])
	s.settled(sup, 1)
	s.settled(sup, 0)
	if len(s.resumed) != 1 || s.resumed[0].Token() != 0 {
		t.Fatalf("resumed %d times", len(s.resumed))
	}
	var outcomes []events.Outcome
	if err := json.Unmarshal(s.resumed[0].State().Answer.Value, &outcomes); err != nil || len(outcomes) != 2 ||
		outcomes[1].Kind != spi.KindExecutionCompleted || string(outcomes[1].Result) != `"fine"` {
		t.Errorf("%+v %v", outcomes, err)
	}
}

func TestAChildCountsByItsOwnEdgeOnly(t *testing.T) {
	for name, c := range map[string]struct {
		group string
		edge  func(string) events.Parent
		want  int
	}{
		"by its key":         {"", keyed, 1},
		"by its group":       {"all", func(string) events.Parent { return events.Parent{Execution: parent, Key: "?", Group: "all"} }, 1},
		"not by another key": {"all", func(string) events.Parent { return events.Parent{Execution: parent, Key: "?", Group: "some"} }, 0},
		"not of another":     {"", func(key string) events.Parent { return events.Parent{Execution: "stranger", Key: key} }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.end(s.family(c.group, c.edge)...)
			if err := s.supervisor(false).Recover(t.Context()); err != nil {
				t.Error(err)
			}
			if len(s.resumed) != c.want {
				t.Errorf("resumed %d times", len(s.resumed))
			}
		})
	}
}

func TestAFencedParentIsResumedOnCondition(t *testing.T) {
	s := newStage(t)
	s.end(s.family("", keyed)...)
	s.acquire() // by somebody who died
	if err := s.supervisor(false).Recover(t.Context()); err != nil {
		t.Error(err)
	}
	if len(s.resumed) != 1 || s.resumed[0].Token() != 2 {
		t.Errorf("resumed %d times", len(s.resumed))
	}
}

func TestWhatIsContendedIsReportedWithRedriveOff(t *testing.T) {
	s := newStage(t)
	s.end(s.family("", keyed)...)
	s.acquire()
	s.rival()
	err := s.supervisor(false).Adopt(t.Context(), parent)
	if contended, ok := errors.AsType[*resume.ContendedError](err); !ok || contended.Attempts != 3 {
		t.Errorf("%v", err)
	}
}

func TestARedriveRowResumesWhatWasContendedWithoutRecovery(t *testing.T) {
	s := newStage(t)
	s.end(s.family("", keyed)...)
	s.acquire()
	s.rival()
	s.settled(s.supervisor(true), 1)
	for range 2 {
		s.now = s.now.Add(time.Minute)
		if err := s.timers.Poll(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if len(s.resumed) != 0 {
		t.Fatal("resumed against a rival")
	}
	s.fault = func(faults.Call) faults.Fault { return faults.Fault{} }
	s.now = s.now.Add(time.Minute)
	if err := s.timers.Poll(t.Context()); err != nil {
		t.Error(err)
	}
	if len(s.resumed) != 1 || len(s.errs) != 0 {
		t.Errorf("resumed %d times, told %v", len(s.resumed), s.errs)
	}
}

func TestADeletedChildHasSettledAndOneThatIsNotStartedHasNot(t *testing.T) {
	s := newStage(t)
	s.end(s.family("", keyed)...)
	if _, err := spi.DeleteExecution(t.Context(), s.store, spi.DeleteExecutionRequest{Execution: child(0), Incarnation: 1}); err != nil {
		t.Fatal(err)
	}
	sup := s.supervisor(false)
	if err := sup.Recover(t.Context()); err != nil || len(s.resumed) != 1 {
		t.Fatalf("resumed %d times: %v", len(s.resumed), err)
	}
	wait := events.Wait{ID: "next", Reason: events.ReasonChildren, Children: []events.Child{{Key: "2", Execution: "child-2"}}}
	if _, err := s.resumed[0].Park(t.Context(), wait); err != nil {
		t.Fatal(err)
	}
	if err := sup.Recover(t.Context()); err != nil || len(s.resumed) != 1 {
		t.Errorf("resumed %d times: %v", len(s.resumed), err)
	}
}

func (s *stage) apply(sup *supervise.Supervisor) (retention.Report, error) {
	s.now = s.now.Add(time.Hour)
	return retention.Apply(s.Context(), s.resumer, sup.Retention(retention.Policy{
		Prefix: "child-", MaxAge: time.Minute, Now: func() time.Time { return s.now },
	}))
}

func TestAChildStaysUntilItsParentHasBeenTold(t *testing.T) {
	s := newStage(t)
	s.end(s.family("", keyed)...)
	sup := s.supervisor(false)
	if report, err := s.apply(sup); err != nil || report.Pinned != 2 || report.Deleted != 0 {
		t.Fatalf("%+v %v", report, err)
	}
	s.settled(sup, 1)
	if report, err := s.apply(sup); err != nil || report.Pinned != 0 || report.Deleted != 2 {
		t.Errorf("%+v %v", report, err)
	}
}

func TestAChildGoesWhenItsParentHasEnded(t *testing.T) {
	s := newStage(t)
	s.end(s.family("", keyed)...)
	run, err := s.plain.Resume(t.Context(), resume.Request{Execution: parent})
	if err != nil {
		t.Fatal(err)
	}
	if report, err := s.apply(s.supervisor(false)); err != nil || report.Pinned != 2 {
		t.Errorf("a parent that runs may park again: %+v %v", report, err)
	}
	s.end(run)
	if report, err := s.apply(s.supervisor(false)); err != nil || report.Deleted != 2 {
		t.Errorf("%+v %v", report, err)
	}
}

func TestAShreddedParentPinsNothingAndAnyOtherFailureStopsTheRun(t *testing.T) {
	s := newStage(t)
	s.end(s.family("", keyed)...)
	unreadable := func(err error) func(faults.Call) faults.Fault {
		return func(c faults.Call) faults.Fault {
			if c.Method == "Read" && c.Name == string(parent) {
				return faults.Fault{Refuse: err}
			}
			return faults.Fault{}
		}
	}
	s.fault = unreadable(&spi.UnavailableError{Cause: errors.New("no route")})
	if report, err := s.apply(s.supervisor(false)); err == nil || report.Deleted != 0 {
		t.Errorf("%+v %v", report, err)
	}
	s.fault = unreadable(&spi.ShreddedError{Owner: spi.KeyOwner(parent)})
	if report, err := s.apply(s.supervisor(false)); err != nil || report.Deleted != 2 {
		t.Errorf("%+v %v", report, err)
	}
}
