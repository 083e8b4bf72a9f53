package retention

import "container/heap"

// newest holds the candidates that ended last, at most so many.
type newest struct {
	most int
	heap oldestFirst
}

// add takes a candidate in. If that is one too many it returns the oldest.
func (n *newest) add(c Candidate) (oldest Candidate, full bool) {
	heap.Push(&n.heap, c)
	if len(n.heap) <= n.most {
		return Candidate{}, false
	}
	return heap.Pop(&n.heap).(Candidate), true
}

type oldestFirst []Candidate

func (h oldestFirst) Len() int { return len(h) }
func (h oldestFirst) Less(i, j int) bool {
	return h[i].EndedAt.Before(h[j].EndedAt) || h[i].EndedAt.Equal(h[j].EndedAt) && h[i].Execution < h[j].Execution
}
func (h oldestFirst) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *oldestFirst) Push(c any)   { *h = append(*h, c.(Candidate)) }
func (h *oldestFirst) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
