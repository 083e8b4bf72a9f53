package conformance

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/loomgate/loomgate/spi"
)

// raceFreeze lets writers of new names race the freezing of their slot.
func (f *fixture) raceFreeze(write func(name string, route spi.Route) error, listed func() []string) {
	f.Helper()
	home := slot(7, spi.SlotOwned, 3)
	f.own(home)
	f.raceWriters(
		func(writer, n int) (string, error) {
			name := fmt.Sprintf("writer-%d-%d", writer, n)
			return name, write(name, at(home))
		},
		func(err error) {
			f.Helper()
			equal(f, "the error", *wantError[*spi.SlotMovingError](f, err), spi.SlotMovingError{Shard: shardOne.Shard, Slot: 7, State: spi.SlotFrozen})
		},
		func() { f.changeSlots(slot(7, spi.SlotFrozen, 3)) },
		listed,
	)
}

// plain returns names as strings.
func plain[N ~string](names []N) []string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = string(n)
	}
	return all
}

// raceWriters lets writers race a change after which nothing may land. write does
// the n-th write of a writer and returns a name for what it stored, and refused
// checks the error that stops it. written returns the names of all that is stored:
// what is there as soon as change has returned must be what was acknowledged, no
// more and no less, and stay so.
func (f *fixture) raceWriters(write func(writer, n int) (string, error), refused func(error), change func(), written func() []string) {
	f.Helper()
	const writers, lead, most = 4, 3, 2000
	var (
		acknowledged [writers][]string
		stopped      [writers]error
		running      sync.WaitGroup
		over         atomic.Bool // the case gives up
		changed      atomic.Bool
		warm         = make(chan struct{}, writers)
	)
	defer running.Wait()
	defer over.Store(true)
	for w := range writers {
		running.Go(func() {
			for n := 0; n < most && !over.Load(); n++ {
				late := changed.Load()
				name, err := write(w, n)
				if err == nil && late {
					f.Errorf("the write of %q began after the change and is acknowledged", name)
				}
				if err == nil {
					acknowledged[w] = append(acknowledged[w], name)
				}
				if n == lead || err != nil && n < lead {
					warm <- struct{}{}
				}
				if err != nil || late {
					stopped[w] = err
					return
				}
			}
		})
	}
	for range writers {
		<-warm
	}
	change()
	after := written()
	changed.Store(true)
	running.Wait()
	for _, err := range stopped {
		if err != nil {
			refused(err)
		}
	}
	all := slices.Concat(acknowledged[:]...)
	slices.Sort(all)
	slices.Sort(after)
	f.wantNames("stored when the change had returned, against what was acknowledged", after, all)
	finally := written()
	slices.Sort(finally)
	f.wantNames("stored in the end, against what was when the change had returned", finally, after)
}
