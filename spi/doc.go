// Package spi is the storage interface of durable executions: what backends
// implement, decorators wrap and callers call.
//
// # One handle
//
// A [Store] is a backend under zero or more decorators. It has no methods of the
// interface; callers use the package functions, as in io/fs:
//
//	res, err := spi.Append(ctx, store, spi.AppendRequest{
//		Execution:    "order-1",
//		ExpectedHead: 0,
//		Events:       []spi.Event{{ID: spi.NewEventID(), Kind: "OrderPlaced"}},
//	})
//
// A function checks that the store offers the method, that the request is valid,
// and names itself in every error. Nothing else stands between a caller and a
// layer.
//
// # Groups
//
// The methods come in six groups: events (which every store has), timers, refs,
// leases, data keys and ownership. A group has required methods, offered whole or
// not at all, and optional ones, offered one by one. [Caps] is the set of what a
// store offers. One handle covers all groups, so that one tenant's events cannot
// be paired with another's timers.
//
// # Undecided does not build
//
// A backend implements what it can; [Open] finds out what that is. A [Decorator]
// implements every method of every group, so a new method fails to compile
// wherever nobody has decided about it. [Wrap] refuses a decorator that embeds
// its way out of deciding, and layers in an unsafe order.
//
// # Rules that hold for every method
//
// These errors can come from any method, and are not named again:
// [UnsupportedError] where it is not offered and [InvalidArgumentError] where a
// request breaks a rule, both before any I/O; [MisroutedError] and
// [SlotMovingError] for a call that a layer has routed, or should have;
// [UnavailableError] where the store cannot answer now; [ThrottledError] where a layer
// holds the caller to a limit; [ShardError] around any of
// them, where a layer knows which shard it was; for a write, [AmbiguousError] when
// the outcome can no longer be known; and the context's own error.
//
// A call that returns an error other than AmbiguousError has changed nothing,
// except where a method says otherwise.
//
// What a request holds stays the caller's: a store keeps no slice and no map of
// it. What a response holds is the caller's from then on.
//
// The rules come from the contract (docs/contract.md), whose numbered invariants
// the kit's cases name.
//
// Ids, ref names and cursors are compared as UTF-8 bytes, which is Unicode code
// point order; see [CompareIDs].
package spi
