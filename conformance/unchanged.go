package conformance

import "github.com/loomgate/loomgate/spi"

var unchangedAppends = topic{"appends if unchanged", []testCase{
	{
		"an append lands if token and head are what the caller saw",
		spi.CapAppendIfUnchanged | spi.CapAcquireFence,
		func(f *fixture) {
			res, err := f.appendIfUnchanged("e", 0, 0, spi.KindExecutionStarted)
			if err != nil || res.FirstSeq != 1 || res.Head != 1 {
				f.Fatalf("it answers %+v (%v)", res, err)
			}
			f.acquire("e")
			if _, err := f.appendIfUnchanged("e", 1, 1, spi.KindExecutionCompleted, "Noted"); err != nil {
				f.Fatal(err)
			}
			f.wantLog("e", 1, 2, 3)
		},
	},
	{
		"a token that has moved is stale, and a head that has moved is a conflict",
		spi.CapAppendIfUnchanged | spi.CapAcquireFence,
		func(f *fixture) {
			f.appendN("e", 0, 2)
			f.acquire("e")
			for _, token := range []int64{0, 2} {
				_, err := f.appendIfUnchanged("e", token, 2, "Noted")
				equal(f, "the token", wantError[*spi.StaleFenceError](f, err).Current, 1)
			}
			for _, head := range []int64{0, 1, 3} {
				_, err := f.appendIfUnchanged("e", 1, head, "Noted")
				equal(f, "the head", wantError[*spi.ConflictError](f, err).Head, 2)
			}
			f.wantLog("e", 1, 2)
		},
	},
	{
		"it neither presents a token nor raises one",
		spi.CapAppendIfUnchanged | spi.CapAcquireFence,
		func(f *fixture) {
			token := f.acquire("e")
			if _, err := f.appendIfUnchanged("e", token, 0, spi.KindExecutionSuspended); err != nil {
				f.Fatal(err)
			}
			equal(f, "the event's token", f.first("e").Fence, 0)
			equal(f, "the execution's token", f.head("e").Fence, token)
		},
	},
	{
		"the same again is a duplicate, even if the fence has moved since",
		spi.CapAppendIfUnchanged | spi.CapAcquireFence,
		func(f *fixture) {
			req := spi.AppendIfUnchangedRequest{Execution: "e", Events: events(2)}
			for _, duplicate := range []bool{false, true, true} {
				res, err := spi.AppendIfUnchanged(f.ctx, f.store, req)
				if err != nil || res.Duplicate != duplicate || res.FirstSeq != 1 {
					f.Fatalf("it answers %+v (%v)", res, err)
				}
				f.acquire("e")
			}
			f.wantLog("e", 1, 2)
		},
	},
	{
		"another incarnation is refused",
		spi.CapAppendIfUnchanged | spi.CapDeleteExecution,
		func(f *fixture) {
			f.appendN("e", 0, 1)
			f.delete("e")
			for _, incarnation := range []int64{0, 1, 3} {
				_, err := spi.AppendIfUnchanged(f.ctx, f.store, spi.AppendIfUnchangedRequest{Execution: "e", Incarnation: incarnation, Events: events(1)})
				equal(f, "the incarnation", wantError[*spi.IncarnationError](f, err).Current, 2)
			}
			f.wantNothing("e")
			if _, err := spi.AppendIfUnchanged(f.ctx, f.store, spi.AppendIfUnchangedRequest{Execution: "e", Incarnation: 2, Events: events(1)}); err != nil {
				f.Error(err)
			}
		},
	},
	{
		"a refused first one leaves nothing to list",
		spi.CapAppendIfUnchanged,
		func(f *fixture) {
			_, err := f.appendIfUnchanged("e", 0, 1, "Noted")
			wantError[*spi.ConflictError](f, err)
			_, err = f.appendIfUnchanged("e", 1, 0, "Noted")
			wantError[*spi.StaleFenceError](f, err)
			f.wantNothing("e")
		},
	},
}}

func (f *fixture) appendIfUnchanged(id spi.ExecutionID, fence, head int64, kinds ...string) (spi.AppendIfUnchangedResponse, error) {
	req := spi.AppendIfUnchangedRequest{Execution: id, Fence: fence, Head: head}
	for _, k := range kinds {
		req.Events = append(req.Events, event(k))
	}
	return spi.AppendIfUnchanged(f.ctx, f.store, req)
}
