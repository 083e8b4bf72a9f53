package conformance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/loomgate/loomgate/spi"
)

var refs = topic{"refs", []testCase{
	{
		"a new ref comes back as it was put",
		spi.CapRefs,
		func(f *fixture) {
			ref := f.putRef("main", "order-1", 3, 0)
			equal(f, "the ref as put", ref, spi.Ref{Name: "main", Execution: "order-1", Sequence: 3, Version: max(ref.Version, 1)})
			f.wantRef(ref)
		},
	},
	{
		"a put repoints a ref, under a new version",
		spi.CapRefs,
		func(f *fixture) {
			old := f.putRef("main", "order-1", 3, 0)
			ref := f.putRef("main", "order-2", 1, old.Version)
			equal(f, "the ref as put", ref, spi.Ref{Name: "main", Execution: "order-2", Sequence: 1, Version: ref.Version})
			if ref.Version <= old.Version {
				f.Errorf("the version goes from %d to %d", old.Version, ref.Version)
			}
			f.wantRef(ref)
		},
	},
	{
		"names that differ in anything are different refs",
		spi.CapRefs,
		func(f *fixture) {
			names := []string{"a", "A", "a ", " a", "a/", "é", "e\u0301", "E\u0301", "\U0001F600", "\uFFFF"}
			for i, name := range names {
				f.putRef(name, "order-1", int64(i), 0)
			}
			for i, name := range names {
				equal(f, "the place of "+name, f.getRef(name).Sequence, int64(i))
			}
		},
	},
	{
		"a put that expects a new name is refused where there is one",
		spi.CapRefs,
		func(f *fixture) {
			f.refuseRef(f.putRef("main", "order-1", 3, 0), 0, f.tryPut)
		},
	},
	{
		"a put that expects a version is refused at another",
		spi.CapRefs,
		func(f *fixture) {
			old := f.putRef("main", "order-1", 3, 0)
			ref := f.putRef("main", "order-1", 4, spi.AnyVersion)
			for _, v := range []int64{old.Version, ref.Version + 1, math.MaxInt64} {
				f.refuseRef(ref, v, f.tryPut)
			}
		},
	},
	{
		"a put that expects a version is refused where there is no such name",
		spi.CapRefs,
		func(f *fixture) {
			f.refuseRef(spi.Ref{Name: "absent"}, 1, f.tryPut)
		},
	},
	{
		"a put that expects nothing always writes",
		spi.CapRefs,
		func(f *fixture) {
			f.wantRef(f.putRef("main", "order-1", 3, spi.AnyVersion))
			f.wantRef(f.putRef("main", "order-2", 4, spi.AnyVersion))
		},
	},
	{
		"a ref that is not there is not found, by the name that the caller knows",
		spi.CapRefs,
		func(f *fixture) {
			f.putRef("other", "order-1", 1, 0)
			f.wantNoRef("absent")
		},
	},
	{
		"a promotion repoints a ref at the version that was seen",
		spi.CapRefs | spi.CapPromoteRef,
		func(f *fixture) {
			old := f.putRef("main", "order-1", 3, 0)
			ref := f.promote("main", "order-2", 0, old.Version)
			equal(f, "the ref as promoted", ref, spi.Ref{Name: "main", Execution: "order-2", Version: ref.Version})
			if ref.Version <= old.Version {
				f.Errorf("the version goes from %d to %d", old.Version, ref.Version)
			}
			f.wantRef(ref)
		},
	},
	{
		"a promotion is refused at another version",
		spi.CapRefs | spi.CapPromoteRef,
		func(f *fixture) {
			old := f.putRef("main", "order-1", 3, 0)
			ref := f.promote("main", "order-1", 4, old.Version)
			for _, v := range []int64{old.Version, ref.Version + 1, math.MaxInt64} {
				f.refuseRef(ref, v, f.tryPromote)
			}
		},
	},
	{
		"a promotion never creates a ref",
		spi.CapRefs | spi.CapPromoteRef,
		func(f *fixture) {
			f.refuseRef(spi.Ref{Name: "absent"}, 1, f.tryPromote)
			gone := f.putRef("gone", "order-1", 3, 0)
			f.deleteRef("gone", spi.AnyVersion)
			f.refuseRef(spi.Ref{Name: "gone"}, gone.Version, f.tryPromote)
		},
	},
	{
		"of eight who promote one version at once one wins",
		spi.CapRefs | spi.CapPromoteRef,
		func(f *fixture) {
			version := f.putRef("main", "order", 0, 0).Version
			f.wantOneRef("main", func(place int64) (spi.Ref, error) { return f.tryPromote("main", "order", place, version) })
		},
	},
	{
		"of eight who put a new name at once one wins",
		spi.CapRefs,
		func(f *fixture) {
			f.wantOneRef("main", func(place int64) (spi.Ref, error) { return f.tryPut("main", "order", place, 0) })
		},
	},
	{
		"of eight who put over one version at once one wins",
		spi.CapRefs,
		func(f *fixture) {
			version := f.putRef("main", "order", 0, 0).Version
			f.wantOneRef("main", func(place int64) (spi.Ref, error) { return f.tryPut("main", "order", place, version) })
		},
	},
	{
		"of eight who put at once and expect nothing all write, under versions of their own",
		spi.CapRefs,
		func(f *fixture) {
			var put [8]spi.Ref
			together(len(put), func(i int) {
				var err error
				if put[i], err = f.tryPut("main", "order", int64(i), spi.AnyVersion); err != nil {
					f.Error(err)
				}
			})
			slices.SortFunc(put[:], func(a, b spi.Ref) int { return int(a.Version - b.Version) })
			for i := range put[1:] {
				if put[i].Version == put[i+1].Version {
					f.Errorf("two have the version %d", put[i].Version)
				}
			}
			f.wantRef(put[len(put)-1])
		},
	},
	{
		"a deletion removes a name, at the version expected or at any",
		spi.CapRefs,
		func(f *fixture) {
			ref := f.putRef("main", "order-1", 3, 0)
			equal(f, "existed", f.deleteRef("main", ref.Version), true)
			f.wantNoRef("main")
			f.putRef("main", "order-1", 3, 0)
			equal(f, "existed", f.deleteRef("main", spi.AnyVersion), true)
			f.wantNoRef("main")
		},
	},
	{
		"a deletion is refused at another version",
		spi.CapRefs,
		func(f *fixture) {
			old := f.putRef("main", "order-1", 3, 0)
			ref := f.putRef("main", "order-1", 4, old.Version)
			for _, v := range []int64{old.Version, ref.Version + 1} {
				f.refuseRef(ref, v, f.tryDelete)
			}
		},
	},
	{
		"to delete what is not there is no error, unless a version was expected",
		spi.CapRefs,
		func(f *fixture) {
			equal(f, "existed", f.deleteRef("absent", spi.AnyVersion), false)
			f.refuseRef(spi.Ref{Name: "absent"}, 1, f.tryDelete)
		},
	},
	{
		"of a deletion and a promotion of one version one wins",
		spi.CapRefs | spi.CapPromoteRef,
		func(f *fixture) {
			for round := range raceRounds / 4 {
				name := fmt.Sprintf("branch-%d", round)
				version := f.putRef(name, "order", 0, 0).Version
				var errs [2]error
				var refs [2]spi.Ref
				together(2, func(i int) {
					do := f.tryPromote
					if i == round%2 {
						do = f.tryDelete
					}
					refs[i], errs[i] = do(name, "order", 1, version)
				})
				deleted, promoted := round%2, 1-round%2
				switch {
				case (errs[0] == nil) == (errs[1] == nil):
					f.Errorf("they answer %v and %v", errs[0], errs[1])
				case errs[deleted] == nil:
					f.wantNoRef(spi.RefName(name))
				default:
					f.wantRef(refs[promoted])
				}
			}
		},
	},
	{
		"no version of a name is used again, not even after a deletion",
		spi.CapRefs,
		func(f *fixture) {
			seen := map[int64]bool{}
			for range 3 {
				for _, expected := range []int64{0, spi.AnyVersion} {
					ref := f.putRef("phoenix", "order-1", 1, expected)
					if ref.Version < 1 || seen[ref.Version] {
						f.Errorf("the version %d is below 1 or was used before", ref.Version)
					}
					for old := range seen {
						f.refuseRef(ref, old, f.tryPut)
					}
					seen[ref.Version] = true
				}
				f.deleteRef("phoenix", spi.AnyVersion)
			}
		},
	},
	{
		"a refused write changes nothing",
		spi.CapRefs,
		func(f *fixture) {
			ref := f.putRef("main", "order-1", 3, 0)
			if _, err := f.tryPut("main", "order-2", 4, 0); err == nil {
				f.Error("the put is not refused")
			}
			if _, err := f.tryDelete("main", "", 0, ref.Version+1); err == nil {
				f.Error("the deletion is not refused")
			}
			if _, err := f.tryPut("new", "order-2", 4, 1); err == nil {
				f.Error("the put is not refused")
			}
			f.wantRef(ref)
			f.wantNames("the refs", f.listRefs("", 10), []string{"main"})
		},
	},
	{
		"a ref may dangle",
		spi.CapRefs,
		func(f *fixture) {
			f.wantRef(f.putRef("main", "no such execution", math.MaxInt64, 0))
		},
	},
	{
		"a ref stays when its execution is deleted",
		spi.CapRefs | spi.CapDeleteExecution,
		func(f *fixture) {
			f.append("order-1", 0, "Noted")
			ref := f.putRef("main", "order-1", 1, 0)
			f.delete("order-1")
			f.wantRef(ref)
		},
	},
	{
		"a ref lists no execution, and an execution no ref",
		spi.CapRefs,
		func(f *fixture) {
			f.putRef("main", "order-1", 1, 0)
			f.append("order-2", 0, "Noted")
			f.wantNames("the executions", f.list("", 10), []string{"order-2"})
			f.wantNames("the refs", f.listRefs("", 10), []string{"main"})
		},
	},
	{
		"a place comes back exactly, at the edges of 64 bits",
		spi.CapRefs,
		func(f *fixture) {
			for i, seq := range edges {
				f.wantRef(f.putRef(fmt.Sprintf("edge-%d", i), "order-1", seq, 0))
				equal(f, "the sequence", f.getRef(fmt.Sprintf("edge-%d", i)).Sequence, seq)
			}
		},
	},
	{
		"the longest names are refs like all others",
		spi.CapRefs,
		func(f *fixture) {
			long := f.longest("a")
			names := []string{"a", long[1:], long, f.longest("é")}
			f.fillRefs(names)
			f.wantRef(f.putRef(long, spi.ExecutionID(f.longest("b")), 1, spi.AnyVersion))
			f.wantNames("the refs", f.listRefs("", 1), names)
		},
	},

	{
		"refs are listed in code point order, each once, whatever the size of a page",
		spi.CapRefs,
		func(f *fixture) {
			f.fillRefs(awkwardNames)
			for size := 1; size <= len(awkwardNames)+1; size++ {
				f.wantNames(fmt.Sprintf("in pages of %d", size), f.listRefs("", size), awkwardNames)
			}
		},
	},
	{
		"a page of refs begins strictly after its cursor, also one that no store returned",
		spi.CapRefs,
		func(f *fixture) {
			f.fillRefs(awkwardNames)
			for _, cursor := range awkwardCursors() {
				want := matching(awkwardNames, "", cursor)
				page, next := f.refPage("", cursor, spi.MaxLimit)
				f.wantNames(fmt.Sprintf("after %.40q", cursor), page, want)
				equal(f, "the cursor of a whole listing", next, "")
				page, _ = f.refPage("", cursor, 2)
				f.wantNames(fmt.Sprintf("two after %.40q", cursor), page, want[:min(2, len(want))])
			}
		},
	},
	{
		"a prefix lists the refs that start with it, and nothing after them",
		spi.CapRefs,
		func(f *fixture) {
			f.fillRefs(awkwardNames)
			for _, prefix := range append([]string{"absent", "c", "A", "\ud7ff", "\ue000"}, awkwardNames...) {
				f.wantNames(fmt.Sprintf("with prefix %q", prefix), f.listRefs(prefix, 2), matching(awkwardNames, prefix, ""))
				for _, cursor := range []string{"A", "a", "a/", "a\x00", "z", "\U0010ffff", prefix + "\x00b"} {
					page, _ := f.refPage(prefix, cursor, spi.MaxLimit)
					f.wantNames(fmt.Sprintf("with prefix %q after %q", prefix, cursor), page, matching(awkwardNames, prefix, cursor))
				}
			}
		},
	},
	{
		"a listing shows each ref as it is",
		spi.CapRefs,
		func(f *fixture) {
			one := f.putRef("one", "order-1", 0, 0)
			two := f.putRef("two", "order-1", math.MaxInt64, 0)
			f.wantRefs(one, two)
			one = f.putRef("one", "order-2", 5, one.Version)
			f.wantRefs(one, two)
		},
	},
	{
		"promoted, deleted and re-created refs are listed as they are by then",
		spi.CapRefs | spi.CapPromoteRef,
		func(f *fixture) {
			a, b, c := f.putRef("a", "order", 1, 0), f.putRef("b", "order", 1, 0), f.putRef("c", "order", 1, 0)
			f.wantRefs(a, b, c)
			b = f.promote("b", "order-2", 7, b.Version)
			f.wantRefs(a, b, c)
			f.deleteRef("b", spi.AnyVersion)
			f.wantRefs(a, c)
			f.deleteRef("c", spi.AnyVersion)
			f.wantRefs(a)
			b = f.putRef("b", "order-3", 2, 0)
			f.wantRefs(a, b)
			zero := f.putRef("\U0001F600", "order", 1, 0)
			b = f.promote("b", "order-3", 3, b.Version)
			f.wantRefs(a, b, zero)
		},
	},
	{
		"refs created and deleted while others are listed disturb none of them (invariant 10)",
		spi.CapRefs,
		func(f *fixture) {
			f.fillRefs([]string{"b", "d", "f", "h", "j", "l"})
			var got []string
			steps := []func(){
				func() { f.putRef("a", "order", 1, 0) },
				func() { f.deleteRef("d", spi.AnyVersion) }, // the cursor itself
				func() { f.putRef("e", "order", 1, 0); f.deleteRef("b", spi.AnyVersion) },
				func() { f.putRef("i", "order", 1, spi.AnyVersion); f.deleteRef("j", spi.AnyVersion) }, // ahead
			}
			f.refPages("", 1, func(page []string) {
				got = append(got, page...)
				if len(steps) > 0 {
					steps[0]()
					steps = steps[1:]
				}
			})
			f.wantOnce(got, "b", "d", "f", "h", "l")
			if !slices.IsSorted(got) || slices.Contains(got, "j") || slices.Contains(got, "a") {
				f.Errorf("listed are %q", got)
			}
		},
	},
	{
		"a sweep that deletes each ref of its page meets all of them",
		spi.CapRefs,
		func(f *fixture) {
			var names, got []string
			for i := range 64 {
				names = append(names, fmt.Sprintf("branch-%02d", i))
			}
			f.fillRefs(names)
			f.refPages("", 5, func(page []string) {
				got = append(got, page...)
				for _, name := range page {
					f.deleteRef(spi.RefName(name), spi.AnyVersion)
				}
			})
			f.wantNames("swept", got, names)
			f.wantRefs()
		},
	},
	{
		"an empty store lists no refs",
		spi.CapRefs,
		func(f *fixture) {
			f.wantRefs()
		},
	},

	{
		"a ref that was never moved has no lineage",
		spi.CapRefs | spi.CapRefLineage,
		func(f *fixture) {
			f.putRef("main", "order-1", 1, 0)
			f.wantLineage("main", nil)
		},
	},
	{
		"the lineage is the earlier places, newest first, whatever the size of a page",
		spi.CapRefs | spi.CapRefLineage,
		func(f *fixture) {
			var places []spi.Ref
			for i := range int64(7) {
				places = append(places, f.putRef("main", id("order-%d", int(i%3)), i, spi.AnyVersion))
				f.putRef("other", "order", i, spi.AnyVersion)
			}
			slices.Reverse(places)
			f.wantLineage("main", places[1:])
			for i, p := range places {
				page := f.lineage("main", p.Version, 2)
				want := places[max(i+1, 1):min(i+3, len(places))]
				if !slices.Equal(page.Refs, want) {
					f.Errorf("before version %d come %v, not %v", p.Version, page.Refs, want)
				}
				equal(f, "more", page.More, i+3 < len(places))
			}
			if page := f.lineage("main", math.MaxInt64, 1); !slices.Equal(page.Refs, places[1:2]) {
				f.Errorf("before the highest version comes %v", page.Refs)
			}
		},
	},
	{
		"the place that a promotion leaves joins the lineage",
		spi.CapRefs | spi.CapPromoteRef | spi.CapRefLineage,
		func(f *fixture) {
			first := f.putRef("main", "order-1", 1, 0)
			second := f.promote("main", "order-2", 2, first.Version)
			third := f.putRef("main", "order-3", 3, second.Version)
			f.promote("main", "order-1", 1, third.Version)
			f.wantLineage("main", []spi.Ref{third, second, first})
		},
	},
	{
		"a refused write leaves the lineage alone",
		spi.CapRefs | spi.CapRefLineage,
		func(f *fixture) {
			first := f.putRef("main", "order-1", 1, 0)
			second := f.putRef("main", "order-2", 2, first.Version)
			f.refuseRef(second, first.Version, f.tryPut)
			f.refuseRef(second, first.Version, f.tryDelete)
			f.wantLineage("main", []spi.Ref{first})
		},
	},
	{
		"a deletion ends the lineage",
		spi.CapRefs | spi.CapRefLineage,
		func(f *fixture) {
			f.putRef("main", "order-1", 1, 0)
			f.putRef("main", "order-2", 2, spi.AnyVersion)
			f.deleteRef("main", spi.AnyVersion)
			_, err := spi.RefLineage(f.ctx, f.store, spi.RefLineageRequest{Name: "main", Limit: 1})
			f.wantRefNotFound(err, "main")
			third := f.putRef("main", "order-3", 3, 0)
			f.wantLineage("main", nil)
			f.putRef("main", "order-4", 4, spi.AnyVersion)
			f.wantLineage("main", []spi.Ref{third})
		},
	},
	{
		"the lineage of a name that never was is not found",
		spi.CapRefs | spi.CapRefLineage,
		func(f *fixture) {
			_, err := spi.RefLineage(f.ctx, f.store, spi.RefLineageRequest{Name: "absent", Limit: 1})
			f.wantRefNotFound(err, "absent")
		},
	},
	{
		"eight writers leave a lineage without gaps",
		spi.CapRefs | spi.CapRefLineage,
		func(f *fixture) {
			var put [8]spi.Ref
			together(len(put), func(i int) {
				var err error
				if put[i], err = f.tryPut("main", "order", int64(i), spi.AnyVersion); err != nil {
					f.Error(err)
				}
			})
			slices.SortFunc(put[:], func(a, b spi.Ref) int { return int(b.Version - a.Version) })
			f.wantRef(put[0])
			f.wantLineage("main", put[1:])
		},
	},

	{
		"refs survive reopening",
		spi.CapRefs,
		func(f *fixture) {
			kept, gone := f.putRef("kept", "order-1", math.MaxInt64, 0), f.putRef("gone", "order-1", 1, 0)
			f.deleteRef("gone", spi.AnyVersion)
			f.reopen()
			f.wantRef(kept)
			f.wantRefs(kept)
			f.wantNoRef("gone")
			if again := f.putRef("gone", "order-1", 1, 0); again.Version == gone.Version {
				f.Errorf("the version %d is used again", again.Version)
			}
			f.refuseRef(kept, kept.Version+100, f.tryPut)
		},
	},
	{
		"the lineage survives reopening",
		spi.CapRefs | spi.CapRefLineage,
		func(f *fixture) {
			first := f.putRef("main", "order-1", 1, 0)
			second := f.putRef("main", "order-2", 2, first.Version)
			f.reopen()
			f.putRef("main", "order-3", 3, second.Version)
			f.wantLineage("main", []spi.Ref{second, first})
		},
	},
}}

func (f *fixture) tryPut(name string, execution spi.ExecutionID, seq, expected int64) (spi.Ref, error) {
	res, err := spi.PutRef(f.ctx, f.store, spi.PutRefRequest{Name: spi.RefName(name), Execution: execution, Sequence: seq, ExpectedVersion: expected})
	return res.Ref, err
}

func (f *fixture) tryPromote(name string, execution spi.ExecutionID, seq, expected int64) (spi.Ref, error) {
	res, err := spi.PromoteRef(f.ctx, f.store, spi.PromoteRefRequest{Name: spi.RefName(name), Execution: execution, Sequence: seq, ExpectedVersion: expected})
	return res.Ref, err
}

// tryDelete has the shape of the other writes, whose place it does not need.
func (f *fixture) tryDelete(name string, _ spi.ExecutionID, _, expected int64) (spi.Ref, error) {
	_, err := spi.DeleteRef(f.ctx, f.store, spi.DeleteRefRequest{Name: spi.RefName(name), ExpectedVersion: expected})
	return spi.Ref{}, err
}

// putRef points a name at a place and returns the ref.
func (f *fixture) putRef(name string, execution spi.ExecutionID, seq, expected int64) spi.Ref {
	f.Helper()
	ref, err := f.tryPut(name, execution, seq, expected)
	if err != nil {
		f.Fatal(err)
	}
	return ref
}

// promote repoints a name and returns the ref.
func (f *fixture) promote(name string, execution spi.ExecutionID, seq, expected int64) spi.Ref {
	f.Helper()
	ref, err := f.tryPromote(name, execution, seq, expected)
	if err != nil {
		f.Fatal(err)
	}
	return ref
}

func (f *fixture) getRef(name string) spi.Ref {
	f.Helper()
	res, err := spi.GetRef(f.ctx, f.store, spi.GetRefRequest{Name: spi.RefName(name)})
	if err != nil {
		f.Fatal(err)
	}
	return res.Ref
}

// deleteRef reports whether it removed a name.
func (f *fixture) deleteRef(name spi.RefName, expected int64) bool {
	f.Helper()
	res, err := spi.DeleteRef(f.ctx, f.store, spi.DeleteRefRequest{Name: name, ExpectedVersion: expected})
	if err != nil {
		f.Fatal(err)
	}
	return res.Existed
}

// wantRef checks what a name points at.
func (f *fixture) wantRef(want spi.Ref) {
	f.Helper()
	equal(f, "the ref", f.getRef(string(want.Name)), want)
}

func (f *fixture) wantNoRef(name spi.RefName) {
	f.Helper()
	_, err := spi.GetRef(f.ctx, f.store, spi.GetRefRequest{Name: name})
	f.wantRefNotFound(err, name)
}

func (f *fixture) wantRefNotFound(err error, name spi.RefName) {
	f.Helper()
	equal(f, "the error", *wantError[*spi.NotFoundError](f, err), spi.NotFoundError{What: "ref", Name: string(name)})
}

// refuseRef checks that a write which expects a version is refused, and that the
// ref stays as it is; a ref of version 0 is not there.
func (f *fixture) refuseRef(now spi.Ref, expected int64, write func(string, spi.ExecutionID, int64, int64) (spi.Ref, error)) {
	f.Helper()
	_, err := write(string(now.Name), "elsewhere", 99, expected)
	equal(f, "the error", *wantError[*spi.RefVersionError](f, err), spi.RefVersionError{Name: now.Name, Current: now.Version})
	if now.Version == 0 {
		f.wantNoRef(now.Name)
		return
	}
	f.wantRef(now)
}

// wantOneRef checks that of eight writes at once, to places of their own, one
// wins, and that the others learn of its version.
func (f *fixture) wantOneRef(name string, write func(place int64) (spi.Ref, error)) {
	f.Helper()
	var refs [8]spi.Ref
	var errs [8]error
	together(len(refs), func(i int) { refs[i], errs[i] = write(int64(i) + 1) })
	now := f.getRef(name)
	winners := 0
	for i, err := range errs {
		if err == nil {
			winners++
			equal(f, "the winner's ref", refs[i], now)
			equal(f, "the winner's place", refs[i].Sequence, int64(i)+1)
			continue
		}
		equal(f, "a loser's error", *wantError[*spi.RefVersionError](f, err), spi.RefVersionError{Name: now.Name, Current: now.Version})
	}
	equal(f, "the number of winners", winners, 1)
}

// fillRefs makes a ref of each name, in another order than their own.
func (f *fixture) fillRefs(names []string) {
	f.Helper()
	for _, i := range rand.New(rand.NewPCG(5, 6)).Perm(len(names)) {
		f.putRef(names[i], "order", int64(i), 0)
	}
}

// listRefs returns the names of all refs with a prefix, in pages of a size.
func (f *fixture) listRefs(prefix string, size int) []string {
	f.Helper()
	var all []string
	f.refPages(prefix, size, func(page []string) { all = append(all, page...) })
	return all
}

// refPages calls do with the names of each page of refs.
func (f *fixture) refPages(prefix string, size int, do func(page []string)) {
	f.Helper()
	for after := ""; ; {
		page, next := f.refPage(prefix, after, size)
		do(page)
		if next == "" {
			return
		}
		after = next
	}
}

// refPage returns the names of one page of refs, and checks its cursor.
func (f *fixture) refPage(prefix, after string, size int) (page []string, next string) {
	f.Helper()
	res, err := spi.ListRefs(f.ctx, f.store, spi.ListRefsRequest{Prefix: prefix, After: after, Limit: size})
	if err != nil {
		f.Fatal(err)
	}
	for _, ref := range res.Refs {
		page = append(page, string(ref.Name))
	}
	f.checkPage(page, after, res.Next, size)
	f.checkAfter(page, after)
	return page, res.Next
}

// checkAfter checks that a page does not begin again at its cursor, where a
// listing would never end.
func (f *fixture) checkAfter(page []string, after string) {
	f.Helper()
	if len(page) > 0 && page[0] <= after {
		f.Fatalf("the page after %.40q begins with %q", after, page[0])
	}
}

// wantRefs checks what all refs are.
func (f *fixture) wantRefs(want ...spi.Ref) {
	f.Helper()
	res, err := spi.ListRefs(f.ctx, f.store, spi.ListRefsRequest{Limit: spi.MaxLimit})
	if err != nil {
		f.Fatal(err)
	}
	if !slices.Equal(res.Refs, want) {
		f.Errorf("the refs are %v, not %v", res.Refs, want)
	}
}

func (f *fixture) lineage(name spi.RefName, before int64, limit int) spi.RefLineageResponse {
	f.Helper()
	res, err := spi.RefLineage(f.ctx, f.store, spi.RefLineageRequest{Name: name, Before: before, Limit: limit})
	if err != nil {
		f.Fatal(err)
	}
	if len(res.Refs) > limit || res.More && (len(res.Refs) == 0 || res.Refs[len(res.Refs)-1].Version < 1) {
		f.Fatalf("a page of at most %d holds %d, and says that there is more: %t", limit, len(res.Refs), res.More)
	}
	if len(res.Refs) > 0 && before > 0 && res.Refs[0].Version >= before {
		f.Fatalf("the page before version %d begins with %d", before, res.Refs[0].Version)
	}
	return res
}

// wantLineage checks the earlier places of a name, in pages of every size.
func (f *fixture) wantLineage(name spi.RefName, want []spi.Ref) {
	f.Helper()
	for size := 1; size <= len(want)+1; size++ {
		var got []spi.Ref
		for before, more := int64(0), true; more; {
			page := f.lineage(name, before, size)
			got = append(got, page.Refs...)
			if more = page.More; more {
				before = page.Refs[len(page.Refs)-1].Version
			}
		}
		if !slices.Equal(got, want) {
			f.Errorf("in pages of %d the lineage is %v, not %v", size, got, want)
		}
	}
}
