package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/loomgate/loomgate/spi"
)

// checkPages returns where a page lacks an id that was live through the page's time,
// or holds one that never was (10, 11).
func (h *History) checkPages(calls []call) []error {
	var errs []error
	ids := executions(calls)
	for _, p := range h.pages {
		listed := p.response.Executions
		if !slices.IsSorted(listed) || len(slices.Compact(slices.Clone(listed))) < len(listed) {
			errs = append(errs, fmt.Errorf("the page %q does not ascend", listed))
		}
		if len(listed) == 0 && !p.last {
			errs = append(errs, fmt.Errorf("the page after %q is empty, and not the last", p.after))
			continue
		}
		for _, id := range ids {
			inRange := spi.CompareIDs(id, spi.ExecutionID(p.after)) > 0 && (p.last || spi.CompareIDs(id, listed[len(listed)-1]) <= 0)
			if !inRange {
				continue
			}
			found := slices.Contains(listed, id)
			if !found && liveThrough(id, calls, p) {
				errs = append(errs, fmt.Errorf("the page after %q lacks %q, which was live all the time", p.after, id))
			}
			if found && neverLive(id, calls, p) {
				errs = append(errs, fmt.Errorf("the page after %q holds %q, which had no events at any time of it", p.after, id))
			}
		}
	}
	return errs
}

// liveThrough reports whether an append to the execution was acknowledged before the
// page was asked for, and no deletion can have come since.
func liveThrough(id spi.ExecutionID, calls []call, p page) bool {
	return slices.ContainsFunc(calls, func(a call) bool {
		return a.execution == id && writes(a) && a.out.err == nil && a.end < p.begin &&
			!slices.ContainsFunc(calls, func(d call) bool {
				return d.execution == id && deletes(d) && outcomeOf(d.out.err) != ineffective && d.begin < p.end && (d.end > a.begin || outcomeOf(d.out.err) == unknown)
			})
	})
}

// neverLive reports whether nothing can have been in the log while the page was read:
// each write began after the page, or ended before an acknowledged deletion began that
// ended before the page.
func neverLive(id spi.ExecutionID, calls []call, p page) bool {
	return !slices.ContainsFunc(calls, func(a call) bool {
		if a.execution != id || !writes(a) || a.begin > p.end || outcomeOf(a.out.err) == ineffective {
			return false
		}
		if outcomeOf(a.out.err) == answered && a.out.err != nil {
			return false
		}
		end := a.end
		if outcomeOf(a.out.err) == unknown {
			end = math.MaxInt64
		}
		return !slices.ContainsFunc(calls, func(d call) bool {
			return d.execution == id && deletes(d) && d.out.err == nil && end < d.begin && d.end < p.begin
		})
	})
}

func writes(c call) bool {
	switch c.in.(type) {
	case spi.AppendRequest, spi.AppendIfUnchangedRequest, copied:
		return true
	}
	return false
}

func deletes(c call) bool {
	_, ok := c.in.(spi.DeleteExecutionRequest)
	return ok
}
