// Sim runs the simulation of the runtime library: every interleaving of two resumers,
// many seeds of five nodes, and the negative controls.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/loomgate/loomgate/internal/sim"
	"github.com/loomgate/loomgate/spi"
)

func main() {
	seeds := flag.Uint64("seeds", 1_000, "how many seeds to run")
	from := flag.Uint64("from", 0, "the first seed")
	flag.Parse()
	if err := run(*from, *seeds); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(from, seeds uint64) error {
	schedules, err := sim.Duels(2, func(s *spi.Store) (*spi.Store, error) { return s, nil })
	if err != nil {
		return err
	}
	fmt.Printf("two resumers: %d schedules, all sentences hold\n", schedules)
	if err := every(from, seeds, sim.Control{}); err != nil {
		return err
	}
	fmt.Printf("five nodes: %d seeds, all sentences hold\n", seeds)
	caught := 0
	for _, control := range sim.Controls {
		found := every(from, seeds, control)
		if found == nil {
			fmt.Printf("not caught: %s\n", control.Name)
			continue
		}
		caught++
		fmt.Printf("caught: %s (%v)\n", control.Name, found)
	}
	fmt.Printf("negative controls caught: %d of %d\n", caught, len(sim.Controls))
	if caught < len(sim.Controls) {
		return errors.New("a negative control was not caught")
	}
	return nil
}

// every runs the seeds on all processors, until one fails.
func every(from, seeds uint64, control sim.Control) error {
	var next atomic.Uint64
	var failed atomic.Pointer[error]
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for failed.Load() == nil {
				seed := next.Add(1) - 1
				if seed >= seeds {
					return
				}
				if _, err := sim.Run(from+seed, control); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	wait.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
