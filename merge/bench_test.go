package merge_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"testing"

	"github.com/loomgate/loomgate/merge"
)

// inMemory returns a merge of sources that cost next to nothing.
func inMemory(sources, n int) merge.Merge[string] {
	m := merge.Merge[string]{Key: self}
	dealt := make([][]string, sources)
	for _, key := range numbered("execution-", n) {
		h := fnv.New32a()
		h.Write([]byte(key))
		i := h.Sum32() % uint32(sources)
		dealt[i] = append(dealt[i], key)
	}
	for i, keys := range dealt {
		m.Sources = append(m.Sources, merge.Source[string]{
			Name: fmt.Sprint("s", i),
			Open: func(context.Context, string) (merge.Cursor[string], error) { return &slice{keys}, nil },
		})
	}
	return m
}

type slice struct{ rest []string }

func (s *slice) Next(_ context.Context, limit int) (merge.Chunk[string], error) {
	n := min(limit, len(s.rest))
	chunk := merge.Chunk[string]{Items: s.rest[:n], Done: n == len(s.rest)}
	s.rest = s.rest[n:]
	return chunk, nil
}

func (s *slice) Close() {}

// BenchmarkAll reports the time that an item takes.
func BenchmarkAll(b *testing.B) {
	for _, sources := range []int{1, 4, 16, 64} {
		b.Run(fmt.Sprintf("sources=%d", sources), func(b *testing.B) {
			m := inMemory(sources, 1_000_000)
			b.ReportAllocs()
			given := 0
			for b.Loop() {
				for _, err := range m.All(b.Context(), "") {
					if err != nil {
						b.Fatal(err)
					}
					given++
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(given), "ns/item")
		})
	}
}

// BenchmarkPage reports the time that an item of a page takes.
func BenchmarkPage(b *testing.B) {
	for _, sources := range []int{4, 16} {
		for _, limit := range []int{10, 1000} {
			b.Run(fmt.Sprintf("sources=%d/limit=%d", sources, limit), func(b *testing.B) {
				m := inMemory(sources, 100_000)
				b.ReportAllocs()
				given := 0
				for b.Loop() {
					page, err := m.Page(b.Context(), "", limit)
					if err != nil {
						b.Fatal(err)
					}
					given += len(page.Items)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(given), "ns/item")
			})
		}
	}
}
