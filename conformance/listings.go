package conformance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/loomgate/loomgate/spi"
)

// awkwardNames come in code point order, in which neither UTF-16, nor a locale,
// nor a comparison that folds or normalises puts them.
var awkwardNames = []string{
	" ", "!", "%", "-a", "/", "0", "10", "1:a/b", "9", "A", "A-1", "A1", "Aa", "B", "Z", "\\", "_", "_a",
	"a", "a b", "a%", "a-1", "a/", "a/b", "a0", "aA", "a_b", "aa", "ab", "b", "cafe\u0301", "café", "z",
	"~", "\u007f", "\u0080", "ß", "é", "\u07ff", "\u0800", "注文", "\ud7ff", "\ue000", "\uffff",
	"\U00010000", "𝄞", "\U0010ffff",
}

// awkwardCursors are cursors that no store ever returned.
func awkwardCursors() []string {
	cursors := []string{"", "\x00", "\x00a", "a\x00", "a\x00z", "a\x00\U0010ffff", "a_", "\U0010ffff\U0010ffff", "zz", "\ufffe", strings.Repeat("a", 5000)}
	for _, name := range awkwardNames {
		cursors = append(cursors, name+"\x00", name+"\x01", name+"\U0010ffff", name[:len(name)-lastRune(name)])
	}
	return append(cursors, awkwardNames...)
}

func lastRune(s string) int {
	runes := []rune(s)
	return len(string(runes[len(runes)-1]))
}

// matching returns the sorted names that start with prefix and are after cursor.
func matching(names []string, prefix, cursor string) []string {
	var want []string
	for _, n := range names {
		if strings.HasPrefix(n, prefix) && n > cursor {
			want = append(want, n)
		}
	}
	slices.Sort(want)
	return want
}

// fill makes an execution of each name, in another order than their own.
func (f *fixture) fill(names []string) {
	f.Helper()
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(len(names)) {
		f.appendN(spi.ExecutionID(names[i]), 0, 1)
	}
}

func (f *fixture) wantNames(what string, got, want []string) {
	f.Helper()
	if !slices.Equal(got, want) {
		f.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

var listings = topic{"listings", []testCase{
	{
		"executions are listed in code point order, each once, whatever the size of a page",
		0,
		func(f *fixture) {
			f.fill(awkwardNames)
			for _, size := range []int{1, 2, 3, 7, len(awkwardNames) - 1, len(awkwardNames), len(awkwardNames) + 1, spi.MaxLimit} {
				f.wantNames(fmt.Sprintf("in pages of %d", size), f.list("", size), awkwardNames)
			}
		},
	},
	{
		"a page begins strictly after its cursor, also one that no store returned",
		0,
		func(f *fixture) {
			f.fill(awkwardNames)
			for _, cursor := range awkwardCursors() {
				want := matching(awkwardNames, "", cursor)
				page, next := f.page("", cursor, spi.MaxLimit)
				f.wantNames(fmt.Sprintf("after %.40q", cursor), page, want)
				equal(f, "the cursor of a whole listing", next, "")
				page, _ = f.page("", cursor, 2)
				f.wantNames(fmt.Sprintf("two after %.40q", cursor), page, want[:min(2, len(want))])
			}
		},
	},
	{
		"a prefix lists the ids that start with it, and nothing after them",
		0,
		func(f *fixture) {
			f.fill(awkwardNames)
			for _, prefix := range append([]string{"absent", "\U0010ffff\U0010ffff", "c", "A", "\ud7ff", "\ue000"}, awkwardNames...) {
				f.wantNames(fmt.Sprintf("with prefix %q", prefix), f.list(prefix, 2), matching(awkwardNames, prefix, ""))
				for _, cursor := range []string{"", "A", "a", "a/", "a\x00", "a_b", "z", "\U0010ffff", prefix, prefix + "\x00b"} {
					page, _ := f.page(prefix, cursor, spi.MaxLimit)
					f.wantNames(fmt.Sprintf("with prefix %q after %q", prefix, cursor), page, matching(awkwardNames, prefix, cursor))
				}
			}
		},
	},
	{
		"an empty store lists nothing",
		0,
		func(f *fixture) {
			for _, prefix := range []string{"", "a"} {
				page, next := f.page(prefix, "", 10)
				if len(page) > 0 || next != "" {
					f.Errorf("it lists %q and goes on at %q", page, next)
				}
			}
		},
	},
	{
		"random ids are listed like the sorted list of them",
		0,
		func(f *fixture) {
			random := rand.New(rand.NewPCG(3, 4))
			alphabet := []rune("aAbB01-_ é\u0301\u0001\u07ff\ud7ff\ue000\uffff𝄞\U00010000\U0010ffff")
			name := func(most int) string {
				runes := make([]rune, 1+random.IntN(most))
				for i := range runes {
					runes[i] = alphabet[random.IntN(len(alphabet))]
				}
				return string(runes)
			}
			set := map[string]bool{}
			for len(set) < 150 {
				set[name(5)] = true
			}
			var names []string
			for n := range set {
				names = append(names, n)
			}
			f.fill(names)
			for range 100 {
				prefix, cursor := "", name(6)
				if random.IntN(2) == 0 {
					prefix = name(2)
				}
				var got []string
				f.pages(prefix, cursor, 1+random.IntN(40), func(page []string) { got = append(got, page...) })
				f.wantNames(fmt.Sprintf("with prefix %q after %q", prefix, cursor), got, matching(names, prefix, cursor))
			}
		},
	},
	{
		"an execution created while its neighbours are listed disturbs none of them (invariant 10)",
		0,
		func(f *fixture) {
			f.fill([]string{"b", "d", "f", "h"})
			var got []string
			inserts := []string{"a", "c", "cc", "g", "i"} // behind, at and ahead of the cursor
			f.pages("", "", 1, func(page []string) {
				got = append(got, page...)
				if len(inserts) > 0 {
					f.appendN(spi.ExecutionID(inserts[0]), 0, 1)
					inserts = inserts[1:]
				}
			})
			f.wantOnce(got, "b", "d", "f", "h")
		},
	},
	{
		"an execution deleted while its neighbours are listed disturbs none of them (invariant 10)",
		spi.CapDeleteExecution,
		func(f *fixture) {
			f.fill([]string{"a", "b", "c", "d", "e", "f", "g"})
			var got []string
			f.pages("", "", 2, func(page []string) {
				got = append(got, page...)
				f.delete(spi.ExecutionID(page[len(page)-1])) // the cursor itself
				if len(got) == 2 {
					f.delete("d") // ahead of it
				}
			})
			f.wantOnce(got, "a", "b", "c", "e", "f", "g")
			if slices.Contains(got, "d") {
				f.Error("what was deleted before its page was read is listed")
			}
		},
	},
	{
		"pages read while others create and delete hold what was there all the time, once (invariant 10)",
		spi.CapDeleteExecution,
		func(f *fixture) {
			var there []string
			for i := range 60 {
				there = append(there, fmt.Sprintf("there-%02d", i))
			}
			f.fill(there)
			var listed atomic.Bool
			together(4, func(w int) {
				if w == 0 {
					defer listed.Store(true)
					for _, size := range []int{1, 7, 20} {
						var got []string
						for after := ""; ; {
							res, err := spi.ListExecutions(f.ctx, f.store, spi.ListExecutionsRequest{After: after, Limit: size})
							if err != nil {
								f.Error(err)
								return
							}
							for _, id := range res.Executions {
								got = append(got, string(id))
							}
							if after = res.Next; after == "" {
								break
							}
						}
						if !slices.IsSorted(got) {
							f.Errorf("out of order: %q", got)
						}
						f.wantOnce(got, there...)
					}
					return
				}
				for n := int64(1); !listed.Load() && !f.Failed(); n++ {
					e := id("there-%02d", w*17) + "-passing"
					if _, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: e, Incarnation: n, Events: events(1)}); err != nil {
						f.Error(err)
					}
					if _, err := spi.DeleteExecution(f.ctx, f.store, spi.DeleteExecutionRequest{Execution: e, Incarnation: n}); err != nil {
						f.Error(err)
					}
				}
			})
		},
	},
	{
		"an execution is listed if and only if it has events (invariant 11)",
		spi.CapAcquireFence | spi.CapDeleteExecution,
		func(f *fixture) {
			f.acquire("fenced")
			f.appendN("there", 0, 1)
			f.appendN("gone", 0, 1)
			f.delete("gone")
			f.appendN("again", 0, 1)
			f.delete("again")
			f.mustAppend(spi.AppendRequest{Execution: "again", Incarnation: 2, Events: events(1)})
			f.wantNames("the executions", f.list("", 10), []string{"again", "there"})
			f.appendN("fenced", 0, 1)
			f.wantNames("the executions", f.list("", 10), []string{"again", "fenced", "there"})
		},
	},
	{
		"long ids are listed like all others",
		0,
		func(f *fixture) {
			const longest = spi.MaxOuterID - 16 // what the kit's own prefix leaves of it
			long := strings.Repeat("a", longest)
			names := []string{"a", long[1:], long, long[1:] + "b", strings.Repeat("𝄞", longest/4)}
			f.fill(names)
			f.wantNames("the executions", f.list("", 1), names)
		},
	},
}}

// wantOnce checks that each of the names is in a listing exactly once.
func (f *fixture) wantOnce(got []string, names ...string) {
	f.Helper()
	count := map[string]int{}
	for _, n := range got {
		count[n]++
	}
	for _, n := range names {
		if count[n] != 1 {
			f.Errorf("%q was there all the time and is listed %d times in %q", n, count[n], got)
		}
	}
}
