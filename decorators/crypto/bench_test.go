package crypto_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/decorators/crypto"
	"github.com/loomgate/loomgate/spi"
)

// BenchmarkAppend appends events of 1 KiB, in turn with the layer and without, and reports
// what it adds.
func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name     string
		metadata map[string]string
	}{{"payload", nil}, {"payload and metadata", map[string]string{"trace": "4bf92f3577b34da6a3ce929d0e0e4736", "worker": "7"}}} {
		b.Run(c.name, func(b *testing.B) {
			with, without := newAppender(b, true), newAppender(b, false)
			event := spi.Event{Kind: "Noted", Payload: make([]byte, 1024), Metadata: c.metadata}
			b.ReportAllocs()
			var taken [2]time.Duration
			for b.Loop() {
				for i, a := range []*appender{with, without} {
					begun := time.Now()
					a.append(b, event)
					taken[i] += time.Since(begun)
				}
			}
			n := time.Duration(b.N)
			b.ReportMetric(float64((taken[0]-taken[1])/n), "added-ns/op")
			b.ReportMetric(float64(taken[0])/float64(taken[1]), "ratio")
			b.ReportMetric(testing.AllocsPerRun(1000, func() { with.append(b, event) })-testing.AllocsPerRun(1000, func() { without.append(b, event) }), "added-allocs/op")
		})
	}
}

// An appender writes one log after the other.
type appender struct {
	store *spi.Store
	logs  int
	head  int64
}

func newAppender(b *testing.B, encrypted bool) *appender {
	s := must[*spi.Store](b)(memory.New())
	if encrypted {
		s = must[*spi.Store](b)(crypto.New(s, newKMS(b), crypto.Options{CacheLife: time.Hour}))
	}
	return &appender{store: s}
}

func (a *appender) append(b *testing.B, e spi.Event) {
	e.ID = spi.NewEventID()
	res, err := spi.Append(b.Context(), a.store, spi.AppendRequest{
		Execution: spi.ExecutionID(fmt.Sprintf("4:acme/order-%d", a.logs)), ExpectedHead: a.head, Events: []spi.Event{e},
	})
	if err != nil {
		b.Fatal(err)
	}
	if a.head = res.Head; a.head == 1000 {
		a.logs, a.head = a.logs+1, 0
	}
}

// BenchmarkRead reads 100 events of 1 KiB.
func BenchmarkRead(b *testing.B) {
	with, without := newAppender(b, true), newAppender(b, false)
	for range 100 {
		for _, a := range []*appender{with, without} {
			a.append(b, spi.Event{Kind: "Noted", Payload: make([]byte, 1024)})
		}
	}
	b.ReportAllocs()
	var taken [2]time.Duration
	for b.Loop() {
		for i, a := range []*appender{with, without} {
			begun := time.Now()
			res, err := spi.Read(b.Context(), a.store, spi.ReadRequest{Execution: "4:acme/order-0", Limit: 100})
			if err != nil || len(res.Events) != 100 {
				b.Fatal(len(res.Events), err)
			}
			taken[i] += time.Since(begun)
		}
	}
	b.ReportMetric(float64((taken[0]-taken[1])/time.Duration(b.N))/100, "added-ns/event")
	b.ReportMetric(float64(taken[0])/float64(taken[1]), "ratio")
}

// BenchmarkFirstAppend begins executions, each with a key of its own.
func BenchmarkFirstAppend(b *testing.B) {
	with, without := newAppender(b, true), newAppender(b, false)
	var taken [2]time.Duration
	for b.Loop() {
		for i, a := range []*appender{with, without} {
			a.logs, a.head = a.logs+1, 0
			begun := time.Now()
			a.append(b, spi.Event{Kind: "Noted", Payload: make([]byte, 1024)})
			taken[i] += time.Since(begun)
		}
	}
	b.ReportMetric(float64((taken[0]-taken[1])/time.Duration(b.N)), "added-ns/op")
}
