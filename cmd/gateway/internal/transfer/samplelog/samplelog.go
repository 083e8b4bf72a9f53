// Package samplelog makes logs that look like an organisation's: many executions
// interleaved as their events arrive, most of them short and some long, with clocks that
// tie and step back, lines that repeat, and ids of every kind. The same shape always
// makes the same lines.
package samplelog

import (
	"bufio"
	"container/heap"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"sort"
	"time"
)

// A Shape says what a log is like.
type Shape struct {
	Tenant     string
	Executions int
	Events     int // of all executions, at least one each
	Seed       uint64

	// ID names the n-th execution; every 50th name gets a character more that is not
	// of the basic plane, or that sorts after those in UTF-16.
	ID func(n int) string

	Kinds   []string
	Seconds bool // the clock has whole seconds, else microseconds
}

// Lines yields the log's lines without their ends. Each is good until the next one.
func (s Shape) Lines() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		m := &maker{Shape: s, rng: rand.New(rand.NewPCG(s.Seed, uint64(s.Events)))}
		m.begin()
		for len(m.queue) > 0 {
			if !yield(m.next()) {
				return
			}
		}
	}
}

// Write writes the log's lines.
func (s Shape) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	for line := range s.Lines() {
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}

// maker makes the lines of one log.
type maker struct {
	Shape
	rng   *rand.Rand
	queue queue // of executions that have events to come
}

// An execution is one whose next event arrives at a time.
type execution struct {
	id       string
	at       time.Time // of its next event
	left     int       // events
	recorded time.Time // of the event before
	line     []byte    // the event before
}

const year = 365 * 24 * time.Hour

// begin spreads the executions over a year.
func (m *maker) begin() {
	start := time.Date(2021, 1, 4, 8, 0, 0, 0, time.UTC)
	for n, events := range m.lengths() {
		id := m.ID(n)
		if n%50 == 49 {
			id += [...]string{" 𝄞", "\uFFFD", " é", "🧵"}[n/50%4]
		}
		at := start.Add(time.Duration(m.rng.Int64N(int64(year))))
		m.queue = append(m.queue, &execution{id: id, at: at, left: events})
	}
	heap.Init(&m.queue)
}

// lengths says how many events each execution has: one, and a share of the rest that
// differs by far.
func (m *maker) lengths() []int {
	lengths, shares, sum := make([]int, m.Executions), make([]float64, m.Executions), 0.0
	for n := range lengths {
		lengths[n] = 1
		sum += math.Exp(m.rng.NormFloat64())
		shares[n] = sum
	}
	for range m.Events - m.Executions {
		lengths[sort.SearchFloat64s(shares, m.rng.Float64()*sum)]++
	}
	return lengths
}

// next returns the line of the event that arrives next.
func (m *maker) next() []byte {
	e := m.queue[0]
	chance := m.rng.Float64()
	if repeat := chance < 0.006 && e.line != nil; !repeat {
		e.recorded = m.clock(e, chance)
		e.line = m.line(e.line[:0], e)
	}
	e.at = e.at.Add(time.Duration(m.rng.ExpFloat64() * float64(36*time.Hour)))
	if e.left--; e.left == 0 {
		heap.Pop(&m.queue)
	} else {
		heap.Fix(&m.queue, 0)
	}
	return e.line
}

// clock says when the next event of an execution claims to be recorded: when it arrives,
// or at the same time as the one before, or earlier.
func (m *maker) clock(e *execution, chance float64) time.Time {
	precision := time.Microsecond
	if m.Seconds {
		precision = time.Second
	}
	switch {
	case e.recorded.IsZero() || chance > 0.1:
		return e.at.Truncate(precision)
	case chance > 0.03:
		return e.recorded
	default:
		return e.recorded.Add(-time.Duration(1+m.rng.IntN(90)) * time.Second)
	}
}

// queue is a heap of executions by the time of their next event.
type queue []*execution

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(*execution)) }

func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
