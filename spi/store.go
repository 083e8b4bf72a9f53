package spi

import (
	"context"
	"reflect"
	"slices"
)

// methods is every method of every group.
type methods interface {
	EventMethods
	TimerMethods
	RefMethods
	LeaseMethods
	DataKeyMethods
	OwnershipMethods
}

// A Backend is what a storage brings. A group that it has not, it leaves nil.
// [Open] finds each group's optional methods in the group's value.
type Backend struct {
	Events    EventBackend // required
	Timers    TimerBackend
	Refs      RefBackend
	Leases    LeaseBackend
	DataKeys  DataKeyBackend
	Ownership OwnershipBackend
}

// A Decorator wraps a store, or several, and is a store again. It implements every
// method of every group, calling its inner stores through the functions of this
// package, and embeds nothing that has such a method: a method to come then fails
// to compile until its author has decided about it.
type Decorator interface {
	methods

	// Caps returns what the decorator offers over inner stores that all offer
	// inner. It must be true: less where the decorator needs what is not there,
	// more only where it can do the work itself.
	Caps(inner Caps) Caps

	// Layer describes the decorator.
	Layer() Layer
}

// A Store is a backend under zero or more decorators. It is safe for concurrent
// use if its parts are. Call it through the functions of this package.
type Store struct {
	methods methods
	caps    Caps
	layer   Layer    // the decorator's
	hides   hides    // by layer and all below
	inner   []*Store // none: a backend
}

// backend is nil where a storage has no method. [call] never reaches those: they
// are not in the store's caps.
type backend struct {
	EventBackend
	BatchAppender
	FenceAcquirer
	ConditionalFenceAcquirer
	UnchangedAppender
	PrefixCopier
	PrefixTruncater
	ExecutionDeleter
	TombstoneSweeper

	TimerBackend

	RefBackend
	RefPromoter
	RefTracer

	LeaseBackend

	DataKeyBackend
	DataKeyRewrapper

	OwnershipBackend
	OwnershipChanger
}

// Open returns a store over a backend, which offers each method that the backend
// has. It fails if the backend has no events.
func Open(b Backend) (*Store, error) {
	if b.Events == nil {
		return nil, &OpError{"Open", &InvalidArgumentError{"backend", "has no events"}}
	}
	m := &backend{}
	caps := offer(&m.EventBackend, b.Events, CapEvents) |
		offer(&m.BatchAppender, b.Events, CapAppendBatch) |
		offer(&m.FenceAcquirer, b.Events, CapAcquireFence) |
		offer(&m.ConditionalFenceAcquirer, b.Events, CapAcquireFenceIf) |
		offer(&m.UnchangedAppender, b.Events, CapAppendIfUnchanged) |
		offer(&m.PrefixCopier, b.Events, CapCopyPrefix) |
		offer(&m.PrefixTruncater, b.Events, CapTruncatePrefixKeeping) |
		offer(&m.ExecutionDeleter, b.Events, CapDeleteExecution) |
		offer(&m.TombstoneSweeper, b.Events, CapSweepTombstones) |
		offer(&m.TimerBackend, b.Timers, CapTimers) |
		offer(&m.RefBackend, b.Refs, CapRefs) |
		offer(&m.RefPromoter, b.Refs, CapPromoteRef) |
		offer(&m.RefTracer, b.Refs, CapRefLineage) |
		offer(&m.LeaseBackend, b.Leases, CapLeases) |
		offer(&m.DataKeyBackend, b.DataKeys, CapDataKeys) |
		offer(&m.DataKeyRewrapper, b.DataKeys, CapRewrapDataKey) |
		offer(&m.OwnershipBackend, b.Ownership, CapOwnership) |
		offer(&m.OwnershipChanger, b.Ownership, CapChangeOwnership)
	return &Store{methods: m, caps: caps}, nil
}

// offer is the only type assertion between a storage and its callers.
func offer[M any](to *M, group any, c Caps) Caps {
	m, ok := group.(M)
	if !ok {
		return 0
	}
	*to = m
	return c
}

// Wrap returns a decorator over its inner stores as a store. The error is an
// [EmbeddingError], a [LayerOrderError] for any layer below any inner store, or an
// [InvalidArgumentError] where the decorator or an inner store is missing.
func Wrap(d Decorator, inner ...*Store) (*Store, error) {
	if d == nil {
		return nil, &OpError{"Wrap", &InvalidArgumentError{"decorator", "is nil"}}
	}
	if len(inner) == 0 {
		return nil, &OpError{"Wrap", &InvalidArgumentError{"inner", "has no store"}}
	}
	if err := checkEmbedding(reflect.TypeOf(d)); err != nil {
		return nil, &OpError{"Wrap", err}
	}
	s := &Store{methods: d, layer: d.Layer(), inner: slices.Clone(inner)}
	caps := AllCaps
	for _, below := range inner {
		if below == nil {
			return nil, &OpError{"Wrap", &InvalidArgumentError{"inner", "has a nil store"}}
		}
		if err := below.hides.checkOrder(&s.layer); err != nil {
			return nil, &OpError{"Wrap", err}
		}
		s.hides = s.hides.and(below.hides)
		caps &= below.caps
	}
	s.hides, s.caps = s.hides.under(&s.layer), withGroups(d.Caps(caps))
	return s, nil
}

// Only returns s offering no more than c, and no optional method without its
// group: what a gateway says that it has, or what a test wants.
func Only(s *Store, c Caps) *Store {
	if s == nil {
		return nil
	}
	narrow := *s
	narrow.caps = withGroups(s.caps & c)
	return &narrow
}

// withGroups leaves out optional methods whose group is not in c.
func withGroups(c Caps) Caps {
	for _, g := range optionalOf {
		if !c.Has(g.group) {
			c &^= g.optional
		}
	}
	return c & AllCaps
}

// Offered returns what s offers. A nil Store offers nothing.
func (s *Store) Offered() Caps {
	if s == nil {
		return 0
	}
	return s.caps
}

// Layers returns the decorators of s, outermost first; those of several inner
// stores follow one another.
func (s *Store) Layers() []Layer {
	if s == nil || len(s.inner) == 0 {
		return nil
	}
	layers := []Layer{s.layer}
	for _, below := range s.inner {
		layers = append(layers, below.Layers()...)
	}
	return layers
}

// A request can tell whether it could ever be right.
type request interface{ Validate() error }

// call is the whole of a package function: s offers need, req is valid, and an
// error names op.
func call[Q request, R any](
	ctx context.Context, s *Store, need Caps, op string, req Q,
	method func(methods, context.Context, Q) (R, error),
) (res R, err error) {
	if !s.Offered().Has(need) {
		return res, &OpError{op, &UnsupportedError{need}}
	}
	if err := req.Validate(); err != nil {
		return res, &OpError{op, err}
	}
	if res, err = method(s.methods, ctx, req); err != nil {
		return failed[R](op, err)
	}
	return res, nil
}

// failed leaves nothing in a response that comes with an error, and names op in
// the error: the method that was called, not the one that a layer called for it.
func failed[R any](op string, err error) (none R, _ error) {
	return none, &OpError{op, WithoutOp(err)}
}
