package conformance

import (
	"slices"

	"github.com/loomgate/loomgate/spi"
)

var reads = topic{"reads", []testCase{
	{
		"an execution that is not there is empty and no error",
		0,
		func(f *fixture) {
			res, err := spi.Read(f.ctx, f.store, spi.ReadRequest{Execution: "e", Limit: 10})
			if err != nil || len(res.Events) > 0 || res.More || res.Incarnation != 1 || res.Floor != 1 {
				f.Errorf("it reads as %+v (%v)", res, err)
			}
			equal(f, "its head", f.head("e"), spi.HeadResponse{Incarnation: 1, Floor: 1})
		},
	},
	{
		"a part of a log is read forward and backward",
		0,
		func(f *fixture) {
			f.appendN("e", 0, 9)
			for _, c := range []struct {
				req  spi.ReadRequest
				want []int64
				more bool
			}{
				{spi.ReadRequest{}, upTo(9), false},
				{spi.ReadRequest{Limit: 4}, upTo(4), true},
				{spi.ReadRequest{Limit: 9}, upTo(9), false},
				{spi.ReadRequest{After: 4}, []int64{5, 6, 7, 8, 9}, false},
				{spi.ReadRequest{After: 4, Until: 6}, []int64{5, 6}, false},
				{spi.ReadRequest{After: 4, Until: 4}, nil, false},
				{spi.ReadRequest{After: 6, Until: 4}, nil, false},
				{spi.ReadRequest{After: 4, Until: 6, Limit: 1}, []int64{5}, true},
				{spi.ReadRequest{After: 9}, nil, false},
				{spi.ReadRequest{After: 50}, nil, false},
				{spi.ReadRequest{Until: 50}, upTo(9), false},
				{spi.ReadRequest{Backward: true}, []int64{9, 8, 7, 6, 5, 4, 3, 2, 1}, false},
				{spi.ReadRequest{Backward: true, Limit: 2}, []int64{9, 8}, true},
				{spi.ReadRequest{Backward: true, After: 4}, []int64{3, 2, 1}, false},
				{spi.ReadRequest{Backward: true, After: 4, Limit: 2}, []int64{3, 2}, true},
				{spi.ReadRequest{Backward: true, After: 6, Until: 4}, []int64{5, 4}, false},
				{spi.ReadRequest{Backward: true, After: 6, Until: 4, Limit: 1}, []int64{5}, true},
				{spi.ReadRequest{Backward: true, After: 4, Until: 6}, nil, false},
				{spi.ReadRequest{Backward: true, After: 1}, nil, false},
				{spi.ReadRequest{Backward: true, After: 50}, []int64{9, 8, 7, 6, 5, 4, 3, 2, 1}, false},
			} {
				if c.req.Limit == 0 {
					c.req.Limit = 100
				}
				c.req.Execution = "e"
				f.wantRead(c.req, c.want, c.more)
			}
		},
	},
	{
		"a read ends at its byte limit, but holds at least one event",
		0,
		func(f *fixture) {
			all := events(4)
			for i := range all {
				all[i].Payload = make([]byte, 1000)
			}
			f.mustAppend(spi.AppendRequest{Execution: "e", Events: all})
			size := all[0].Size()
			f.wantRead(spi.ReadRequest{Execution: "e", Limit: 10, MaxBytes: 1}, []int64{1}, true)
			f.wantRead(spi.ReadRequest{Execution: "e", Limit: 10, MaxBytes: 2*size + 1}, []int64{1, 2}, true)
			f.wantRead(spi.ReadRequest{Execution: "e", Limit: 10, MaxBytes: 4 * size}, upTo(4), false)
			f.wantRead(spi.ReadRequest{Execution: "e", Limit: 10, MaxBytes: 1, After: 3}, []int64{4}, false)
			f.wantRead(spi.ReadRequest{Execution: "e", Limit: 10, MaxBytes: 2 * size, Backward: true}, []int64{4, 3}, true)
		},
	},
	{
		"reads that follow one another hold each event once",
		0,
		func(f *fixture) {
			f.appendN("e", 0, 25)
			for _, backward := range []bool{false, true} {
				var got []int64
				req := spi.ReadRequest{Execution: "e", Limit: 7, Backward: backward}
				for {
					res, err := spi.Read(f.ctx, f.store, req)
					if err != nil {
						f.Fatal(err)
					}
					for _, e := range res.Events {
						got = append(got, e.Sequence)
					}
					if !res.More {
						break
					}
					if len(res.Events) == 0 || len(got) > 25 {
						f.Fatalf("backward %v: reads that never end hold %v", backward, got)
					}
					req.After = got[len(got)-1]
				}
				if backward {
					slices.Reverse(got)
				}
				if !slices.Equal(got, upTo(25)) {
					f.Errorf("backward %v: they hold %v", backward, got)
				}
			}
		},
	},
	{
		"the head never decreases while a log grows (invariant 6)",
		0,
		func(f *fixture) {
			together(4, func(w int) {
				last := int64(0)
				for range 25 {
					if w == 0 {
						if _, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: "e", ExpectedHead: spi.AnyHead, Events: events(2)}); err != nil {
							f.Error(err)
						}
						continue
					}
					res, err := spi.Head(f.ctx, f.store, spi.HeadRequest{Execution: "e"})
					if err != nil || res.Head < last || res.Head%2 != 0 {
						f.Errorf("after head %d the head is %d (%v)", last, res.Head, err)
					}
					last = res.Head
				}
			})
		},
	},
}}

// wantRead checks what a read returns.
func (f *fixture) wantRead(req spi.ReadRequest, want []int64, more bool) {
	f.Helper()
	res, err := spi.Read(f.ctx, f.store, req)
	if err != nil {
		f.Fatal(err)
	}
	var got []int64
	for _, e := range res.Events {
		got = append(got, e.Sequence)
	}
	if !slices.Equal(got, want) || res.More != more {
		f.Errorf("%+v reads %v and more %v, not %v and more %v", req, got, res.More, want, more)
	}
}
