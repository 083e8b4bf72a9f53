package supervise

import (
	"context"
	"errors"

	"github.com/loomgate/loomgate/runtime/resume"
	"github.com/loomgate/loomgate/runtime/retention"
	"github.com/loomgate/loomgate/spi"
)

// PinParkedChildren keeps a child that has ended while its parent is parked on it:
// the parent has yet to read how it ended.
//
// A parent that runs and has not been told yet may park on the child any moment, so
// that keeps it too; else a child could go just under a park. A log that was shredded
// says nothing to anybody, and pins nothing. Any other failure to read is an error,
// which stops the run.
func PinParkedChildren(resumer *resume.Resumer) retention.Pin {
	return func(ctx context.Context, c retention.Candidate) (bool, error) {
		child, err := unlessShredded(resumer.Fold(ctx, c.Execution))
		if child == nil || err != nil || edgeOf(child) == nil {
			return false, err
		}
		edge := *edgeOf(child)
		parent, err := unlessShredded(resumer.Fold(ctx, edge.Execution))
		if parent == nil || err != nil {
			return false, err
		}
		switch parent.Status {
		case resume.Pending, resume.Ended:
			return false, nil
		case resume.Parked:
			for _, w := range parent.Park.Waits {
				if w.Names(c.Execution, edge) {
					return true, nil
				}
			}
		case resume.Running:
		}
		return !parent.Told[c.Execution], nil
	}
}

// unlessShredded returns no state of a log that was shredded.
func unlessShredded(state *resume.State, err error) (*resume.State, error) {
	if _, shredded := errors.AsType[*spi.ShreddedError](err); shredded {
		return nil, nil
	}
	return state, err
}

// Retention returns a policy that keeps the children of this supervisor's parents,
// beside what it keeps already.
func (s *Supervisor) Retention(policy retention.Policy) retention.Policy {
	policy.Pins = append(policy.Pins[:len(policy.Pins):len(policy.Pins)], PinParkedChildren(s.resumer))
	return policy
}
