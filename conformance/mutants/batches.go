package mutants

import (
	"cmp"
	"context"
	"slices"

	"github.com/loomgate/loomgate/spi"
)

var batches = []Mutant{
	{
		"batch results in another order",
		"The results come in the order in which the rows were locked.",
		"batches/a batch has one result for each append, in the caller's order",
		store(func(s sound) methods { return resultsInAnotherOrder{s} }),
	},
	{
		"one refused append fails the batch",
		"An append that is refused is an error of the transaction.",
		"batches/a refused append fails alone",
		store(func(s sound) methods { return oneFailsAll{s} }),
	},
	{
		"batch ends at the first refusal",
		"The appends after one that is refused are not done.",
		"batches/a refused append fails alone",
		store(func(s sound) methods { return endsAtFirstRefusal{s} }),
	},
	{
		"batch without duplicates",
		"The retry of a batch that has landed is a batch of conflicts.",
		"batches/a batch again is a batch of duplicates",
		store(func(s sound) methods { return batchWithoutDuplicates{s} }),
	},
	{
		"batch that ignores SinceSeq",
		"In a batch, a duplicate is looked for past the expected head, wherever the first try was.",
		"duplicates/a retry at a newer head is recognised by its first SinceSeq, whichever way it comes",
		store(func(s sound) methods { return batchIgnoresSince{s} }),
	},
	{
		"batch that loses stamps",
		"The batch path has an insert of its own, which leaves the kernel stamp out.",
		"appends/an event comes back as it went in, whichever way it was appended",
		store(func(s sound) methods { return batchLosesStamps{s} }),
	},
}

type resultsInAnotherOrder struct{ sound }

func (m resultsInAnotherOrder) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	req.Appends = slices.Clone(req.Appends)
	slices.SortFunc(req.Appends, func(a, b spi.AppendRequest) int { return cmp.Compare(a.Execution, b.Execution) })
	return m.sound.AppendBatch(ctx, req)
}

type oneFailsAll struct{ sound }

func (m oneFailsAll) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	res, err := m.sound.AppendBatch(ctx, req)
	for _, r := range res.Results {
		err = cmp.Or(err, r.Err)
	}
	return res, err
}

type endsAtFirstRefusal struct{ sound }

func (m endsAtFirstRefusal) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (res spi.AppendBatchResponse, err error) {
	res.Results = make([]spi.AppendResult, len(req.Appends))
	for i := range req.Appends {
		one, err := spi.Append(ctx, m.Inner, req.Item(i))
		res.Results[i] = spi.AppendResult{AppendResponse: one, Err: err}
		if err != nil {
			break
		}
	}
	return res, ctx.Err()
}

type batchWithoutDuplicates struct{ sound }

func (m batchWithoutDuplicates) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	res, err := m.sound.AppendBatch(ctx, req)
	for i, r := range res.Results {
		if r.Duplicate {
			res.Results[i].Err = &spi.ConflictError{Execution: req.Appends[i].Execution, Head: r.Head}
		}
	}
	return res, err
}

type batchIgnoresSince struct{ sound }

func (m batchIgnoresSince) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	req.Appends = slices.Clone(req.Appends)
	for i := range req.Appends {
		req.Appends[i].SinceSeq = 0
	}
	return m.sound.AppendBatch(ctx, req)
}

type batchLosesStamps struct{ sound }

func (m batchLosesStamps) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	req.Appends = slices.Clone(req.Appends)
	for i := range req.Appends {
		req.Appends[i].Events = withoutStamps(req.Appends[i].Events)
	}
	return m.sound.AppendBatch(ctx, req)
}
