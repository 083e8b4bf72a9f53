package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A side is one of the things compared: what one worker does, again and again.
type side struct {
	name string

	// worker returns what the worker of that number does with its nth call in this
	// turn, and how many appends one call is.
	worker func(turn, worker int) (call func(ctx context.Context, n int64) error, per int)
}

// A turn is what the workers of a side did in one span.
type turn struct {
	count            int64 // appends
	perSecond        float64
	p50, p99         time.Duration // of a call
	client, db, gate time.Duration // CPU an append; gate is 0 where there is no gateway
}

// processes are whose CPU is counted beside this one's.
type processes struct {
	postgres []int // postmasters: their children count
	gateway  int   // 0: none
}

// inTurn lets each side have its turn, round after round, and returns the turns by side.
func inTurn(ctx context.Context, rounds, workers int, span time.Duration, p processes, sides []side) ([][]turn, error) {
	turns := make([][]turn, len(sides))
	for round := range rounds {
		for i, s := range sides {
			t, err := oneTurn(ctx, round, workers, span, p, s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			turns[i] = append(turns[i], t)
		}
	}
	return turns, nil
}

func oneTurn(ctx context.Context, number, workers int, span time.Duration, p processes, s side) (turn, error) {
	took := make([][]time.Duration, workers)
	counts := make([]int64, workers)
	errs := make([]error, workers)
	ctx, cancel := context.WithCancel(ctx) // ends what a worker has left open
	defer cancel()
	calls, pers := make([]func(context.Context, int64) error, workers), make([]int, workers)
	for w := range workers {
		calls[w], pers[w] = s.worker(number, w)
	}
	before := p.cpu()
	begin := time.Now()
	var done sync.WaitGroup
	for w := range workers {
		done.Go(func() {
			call, per := calls[w], pers[w]
			for n := int64(0); time.Since(begin) < span; n++ {
				start := time.Now()
				if errs[w] = call(ctx, n); errs[w] != nil {
					return
				}
				took[w] = append(took[w], time.Since(start))
				counts[w] += int64(per)
			}
		})
	}
	done.Wait()
	elapsed := time.Since(begin)
	after := p.cpu()
	for _, err := range errs {
		if err != nil {
			return turn{}, err
		}
	}
	all := slices.Concat(took...)
	slices.Sort(all)
	t := turn{p50: all[len(all)/2], p99: all[len(all)*99/100]}
	for _, n := range counts {
		t.count += n
	}
	t.perSecond = float64(t.count) / elapsed.Seconds()
	t.client, t.db, t.gate = (after.client-before.client)/time.Duration(t.count), (after.db-before.db)/time.Duration(t.count), (after.gate-before.gate)/time.Duration(t.count)
	return t, nil
}

type used struct{ client, db, gate time.Duration }

func (p processes) cpu() (u used) {
	var own syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &own) == nil {
		u.client = time.Duration(own.Utime.Nano() + own.Stime.Nano())
	}
	if p.gateway != 0 {
		u.gate = processCPU(p.gateway)
	}
	if len(p.postgres) > 0 {
		u.db = familyCPU(p.postgres)
	}
	return u
}

// tick is the unit of CPU times in /proc.
const tick = time.Second / 100

// processCPU returns what a process has used, with its children that have ended.
func processCPU(pid int) time.Duration {
	fields := statOf(strconv.Itoa(pid))
	if fields == nil {
		return 0
	}
	total := 0
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		n, _ := strconv.Atoi(field)
		total += n
	}
	return time.Duration(total) * tick
}

// familyCPU is processCPU of parents and their children.
func familyCPU(parents []int) (total time.Duration) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		pid := filepath.Base(filepath.Dir(path))
		fields := statOf(pid)
		if fields == nil {
			continue // it has ended, and counts with its parent
		}
		parent, _ := strconv.Atoi(fields[1])
		number, _ := strconv.Atoi(pid)
		if slices.Contains(parents, parent) || slices.Contains(parents, number) {
			total += processCPU(number)
		}
	}
	return total
}

// statOf returns the fields of a process's stat from its state on: names hold spaces.
func statOf(pid string) []string {
	raw, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	return strings.Fields(rest)
}

// median returns the median of what is looked at in each of all.
func median[T any](all []T, of func(T) float64) float64 {
	values := make([]float64, len(all))
	for i, t := range all {
		values[i] = of(t)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// ratio returns the median of the ratios of neighbours in time.
func ratio(a, b []turn, of func(turn) float64) float64 {
	values := make([]float64, len(a))
	for i := range a {
		values[i] = of(a[i]) / of(b[i])
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func perSecond(t turn) float64 { return t.perSecond }
func p50(t turn) float64       { return t.p50.Seconds() * 1000 }
func p99(t turn) float64       { return t.p99.Seconds() * 1000 }
func micros(of func(turn) time.Duration) func(turn) float64 {
	return func(t turn) float64 { return float64(of(t).Nanoseconds()) / 1000 }
}
