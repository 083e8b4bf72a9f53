package profiling

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/loomgate/loomgate/spi"
)

// sizes is how much a call was about; zero where it is about nothing of the kind.
type sizes struct {
	batch   int             // appends of a batch
	results map[class]int64 // what they came to
	limit   int             // items that a page was asked for
	items   int             // items that it holds
}

// sizesOf looks at a call that returned. A page that failed has no size: it would count
// as one that is empty.
func sizesOf(req, res any, err error) (s sizes) {
	if req, ok := req.(spi.AppendBatchRequest); ok {
		s.batch = len(req.Appends)
	}
	if err != nil {
		return s
	}
	switch res := res.(type) {
	case spi.AppendBatchResponse:
		s.results = map[class]int64{}
		for _, r := range res.Results {
			s.results[classOf(r.Err)]++
		}
	case spi.ReadResponse:
		s.limit, s.items = req.(spi.ReadRequest).Limit, len(res.Events)
	case spi.ListExecutionsResponse:
		s.limit, s.items = req.(spi.ListExecutionsRequest).Limit, len(res.Executions)
	case spi.SweepTombstonesResponse:
		s.limit, s.items = req.(spi.SweepTombstonesRequest).Limit, res.Swept
	case spi.DueTimersResponse:
		s.limit, s.items = req.(spi.DueTimersRequest).Limit, len(res.Timers)
	case spi.ListRefsResponse:
		s.limit, s.items = req.(spi.ListRefsRequest).Limit, len(res.Refs)
	case spi.RefLineageResponse:
		s.limit, s.items = req.(spi.RefLineageRequest).Limit, len(res.Refs)
	case spi.ListDataKeysResponse:
		s.limit, s.items = req.(spi.ListDataKeysRequest).Limit, owners(res.Keys)
	}
	return s
}

// owners counts whose the keys of a page are, which is what its limit is about.
func owners(keys []spi.DataKey) (n int) {
	for i := range keys {
		if i == 0 || keys[i].Owner != keys[i-1].Owner {
			n++
		}
	}
	return n
}

// attributes are a span's.
func (s *sizes) attributes() (all []attribute.KeyValue) {
	if s.batch > 0 {
		all = append(all, attribute.Int("loomgate.batch.size", s.batch))
	}
	if s.limit > 0 {
		all = append(all, attribute.Int("loomgate.page.limit", s.limit), attribute.Int("loomgate.page.items", s.items))
	}
	return all
}
