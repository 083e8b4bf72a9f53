package server

import (
	"context"
	"errors"
	"io"
	"sync"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"

	"github.com/loomgate/loomgate/api"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// The window of an append stream: how much of it may be between being read and
// being answered.
const (
	windowAppends = 256
	windowBytes   = 64 << 20
)

// An appendStream is one stream under way. Its handler reads appends, a goroutine
// for each execution does them, and one sends the results.
type appendStream struct {
	service
	grpc.BidiStreamingServer[pb.AppendStreamRequest, pb.AppendStreamResponse]

	ctx    context.Context
	cancel context.CancelFunc

	window  *semaphore.Weighted
	results chan streamResult // has room for a whole window: whoever appends never waits
	workers sync.WaitGroup

	mu     sync.Mutex
	queues map[string][]streamAppend // what waits behind the append of an execution
}

type streamAppend struct {
	ctx    context.Context
	end    func(error) // what watches it
	caller Caller
	req    *pb.AppendStreamRequest
	weight int64 // its part of the window
}

type streamResult struct {
	res    *pb.AppendStreamResponse
	weight int64
}

// AppendStream ends when all results are sent after the sender has closed its side.
// Whatever else ends it cancels the appends under way.
func (s service) AppendStream(stream grpc.BidiStreamingServer[pb.AppendStreamRequest, pb.AppendStreamResponse]) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	a := &appendStream{
		service:             s,
		BidiStreamingServer: stream,
		ctx:                 ctx,
		cancel:              cancel,
		window:              semaphore.NewWeighted(windowBytes),
		results:             make(chan streamResult, windowAppends),
		queues:              map[string][]streamAppend{},
	}
	var sender sync.WaitGroup
	var unsent error
	sender.Go(func() { unsent = a.send() })
	err := a.receive()
	a.workers.Wait()
	close(a.results)
	sender.Wait()
	if err == nil {
		err = unsent
	}
	return err
}

// receive starts appends until the sender has no more.
func (a *appendStream) receive() error {
	for {
		req, err := a.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			a.cancel()
			return err
		}
		caller, err := a.caller(a.ctx)
		if err != nil {
			return err // what has been started is answered
		}
		weight := weightOf(req)
		if a.window.Acquire(a.ctx, weight) != nil {
			return nil // nobody takes results any more, and send knows why
		}
		ctx, end := a.watch(a.ctx)
		a.start(streamAppend{ctx, end, caller, req, weight})
	}
}

// weightOf returns what part of the window's bytes an append takes: at least so much
// that no more than windowAppends are in it, and at most all.
func weightOf(req *pb.AppendStreamRequest) int64 {
	size := int64(0)
	for _, e := range req.GetAppend().GetEvents() {
		size += int64(len(e.GetPayload()) + len(e.GetJson()))
	}
	return min(max(size, windowBytes/windowAppends), windowBytes)
}

// start does an append, after those to the same execution.
func (a *appendStream) start(item streamAppend) {
	execution := item.req.GetAppend().GetExecution()
	a.mu.Lock()
	defer a.mu.Unlock()
	queue, busy := a.queues[execution]
	if busy {
		a.queues[execution] = append(queue, item)
		return
	}
	a.queues[execution] = nil
	a.workers.Go(func() {
		for more := true; more; item, more = a.next(execution) {
			a.results <- streamResult{a.append(item), item.weight}
		}
	})
}

// next returns the append that waits behind the last one of an execution.
func (a *appendStream) next(execution string) (item streamAppend, more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	queue := a.queues[execution]
	if len(queue) == 0 {
		delete(a.queues, execution)
		return streamAppend{}, false
	}
	a.queues[execution] = queue[1:]
	return queue[0], true
}

func (a *appendStream) append(item streamAppend) *pb.AppendStreamResponse {
	res, err := call(item.ctx, item.caller.Store, api.Append, item.req.GetAppend())
	item.end(err)
	if err != nil {
		told := api.EncodeError(a.audience(item.ctx, item.caller.Operator).Mask(err))
		return &pb.AppendStreamResponse{Tag: item.req.GetTag(), Result: &pb.AppendStreamResponse_Error{Error: told}}
	}
	return &pb.AppendStreamResponse{Tag: item.req.GetTag(), Result: &pb.AppendStreamResponse_Appended{Appended: api.Append.EncodeResponse(res)}}
}

// send sends results until there are no more. Once one cannot be sent, it cancels
// the appends under way.
func (a *appendStream) send() (err error) {
	for result := range a.results {
		if err == nil {
			if err = a.Send(result.res); err != nil {
				a.cancel()
			}
		}
		a.window.Release(result.weight)
	}
	return err
}
