// The tour takes one execution through its life on a store in memory: appends, a
// park, two nodes that want to resume it, a page, and what a decorator adds. Its
// output is short; the interest is in the code.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/conformance/small"
	"github.com/loomgate/loomgate/spi"
)

func main() {
	if err := tour(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func tour(ctx context.Context, out io.Writer) error {
	shared, err := memory.New()
	if err != nil {
		return err
	}
	// A stack: a tenant's view of a store that tenants share. The kit's own small
	// decorator stands in for the one to come.
	store, err := small.Prefix("acme", shared)
	if err != nil {
		return err
	}

	// An execution comes into being with its first event.
	order := spi.AppendRequest{
		Execution: "order-1", ExpectedHead: 0,
		Events: []spi.Event{
			kernel(spi.KindExecutionStarted),
			{ID: spi.NewEventID(), Kind: "OrderPlaced", Payload: []byte(`{"total":"12.30"}`)},
			kernel(spi.KindExecutionSuspended), // it waits for a payment
		},
	}
	appended, err := spi.Append(ctx, store, order)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "appended up to %d\n", appended.Head)

	// The same append again changes nothing: a retry is always safe.
	again, err := spi.Append(ctx, store, order)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "again: duplicate %v, head %d\n", again.Duplicate, again.Head)

	// Two nodes want to resume the park. One wins, the other changes nothing.
	park := spi.AcquireFenceIfRequest{Execution: "order-1", Fence: 0, ParkSeq: appended.Head}
	for _, node := range []string{"node A", "node B"} {
		res, err := spi.AcquireFenceIf(ctx, store, park)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: acquired %v, token %d\n", node, res.Acquired, res.Token)
	}

	// Whoever holds no token cannot answer the park any more.
	resume := spi.AppendRequest{Execution: "order-1", ExpectedHead: appended.Head, Events: []spi.Event{kernel(spi.KindExecutionResumed)}}
	_, err = spi.Append(ctx, store, resume)
	if _, stale := errors.AsType[*spi.StaleFenceError](err); stale {
		fmt.Fprintf(out, "without the token: %v\n", err)
	}
	resume.Fence = 1
	if _, err := spi.Append(ctx, store, resume); err != nil {
		return err
	}

	// The tenant sees its own names; the shared store sees whose they are.
	for _, s := range []*spi.Store{store, shared} {
		page, err := spi.ListExecutions(ctx, s, spi.ListExecutionsRequest{Limit: 10})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "listed: %q\n", page.Executions)
	}
	return nil
}

func kernel(kind string) spi.Event {
	return spi.Event{ID: spi.NewEventID(), Kind: kind, Kernel: true}
}
