package spi

import "context"

// RefBackend is what a store can do with branch refs: names that point at a place
// in an execution. A ref may dangle; pruning removes it.
//
// Whoever works with branches calls these methods; nothing else depends on them. A
// ref's version changes with each write to the name, and no version of a name is
// ever used again, not even after it was deleted.
type RefBackend interface {
	// PutRef points a name at a place, if the name is at the version expected
	// ([RefVersionError]). The place that it leaves joins the name's lineage.
	PutRef(context.Context, PutRefRequest) (PutRefResponse, error)

	// GetRef returns a ref, or [NotFoundError].
	GetRef(context.Context, GetRefRequest) (GetRefResponse, error)

	// DeleteRef removes a name and its lineage, if the name is at the version
	// expected. A name that is not there is no error, unless a version was
	// expected of it.
	DeleteRef(context.Context, DeleteRefRequest) (DeleteRefResponse, error)

	// ListRefs returns a page of refs by name, as
	// [EventBackend].ListExecutions does of executions.
	ListRefs(context.Context, ListRefsRequest) (ListRefsResponse, error)
}

// RefPromoter is optional.
type RefPromoter interface {
	// PromoteRef repoints a name that exists, if it is at the version that the
	// caller saw ([RefVersionError], also where there is no such name). It is how
	// one of several rivals moves a branch.
	PromoteRef(context.Context, PromoteRefRequest) (PromoteRefResponse, error)
}

// RefTracer is optional.
type RefTracer interface {
	// RefLineage returns the earlier places of a name, newest first, since it was
	// last created. A name that is not there is [NotFoundError].
	RefLineage(context.Context, RefLineageRequest) (RefLineageResponse, error)
}

// RefMethods is the whole group.
type RefMethods interface {
	RefBackend
	RefPromoter
	RefTracer
}

// AnyVersion as an expected version expects nothing.
const AnyVersion int64 = -1

// Requests and responses of the group.
type (
	// A Ref is a name that points at a place.
	Ref struct {
		Name      RefName
		Execution ExecutionID
		Sequence  int64 // 0 points before the first event
		Version   int64 // the store's, from 1
	}

	// A PutRefRequest says where a name is to point.
	PutRefRequest struct {
		Route           Route
		Name            RefName
		Execution       ExecutionID
		Sequence        int64
		ExpectedVersion int64 // 0: the name must be new; or AnyVersion
	}

	// A PutRefResponse holds the ref as written.
	PutRefResponse struct{ Ref Ref }

	// A GetRefRequest names a ref.
	GetRefRequest struct {
		Route Route
		Name  RefName
	}

	// A GetRefResponse holds the ref.
	GetRefResponse struct{ Ref Ref }

	// A DeleteRefRequest names a ref.
	DeleteRefRequest struct {
		Route           Route
		Name            RefName
		ExpectedVersion int64 // from 1, or AnyVersion
	}

	// A DeleteRefResponse says whether this call removed the name.
	DeleteRefResponse struct{ Existed bool }

	// A ListRefsRequest asks for a page of refs.
	ListRefsRequest struct {
		Prefix         string
		After          string // the cursor: any well-formed string
		Limit          int    // 1 to MaxLimit
		KnownOwnership int64  // as of a ListExecutionsRequest
		AllowPartial   bool   // as of a ListExecutionsRequest
	}

	// A ListRefsResponse is a page of refs.
	ListRefsResponse struct {
		Refs    []Ref
		Next    string // the cursor to go on with; "" at the end
		Receipt Receipt
		Missing []string // shards that are left out, of a caller who allows it
	}

	// A PromoteRefRequest says where a name is to point from now on.
	PromoteRefRequest struct {
		Route           Route
		Name            RefName
		Execution       ExecutionID
		Sequence        int64
		ExpectedVersion int64 // from 1
	}

	// A PromoteRefResponse holds the ref as written.
	PromoteRefResponse struct{ Ref Ref }

	// A RefLineageRequest asks for a page of a name's earlier places.
	RefLineageRequest struct {
		Route  Route
		Name   RefName
		Before int64 // only versions below it; 0: all
		Limit  int   // 1 to MaxLimit
	}

	// A RefLineageResponse holds earlier places, newest first. The last one's
	// Version is what to go on before.
	RefLineageResponse struct {
		Refs []Ref
		More bool
	}
)

// Validate implements the rules of [PutRefRequest].
func (r PutRefRequest) Validate() error {
	return first(r.Route.validate(), r.Name.Validate(), r.Execution.Validate(), notNegative("sequence", r.Sequence), validVersion(r.ExpectedVersion))
}

// Validate implements the rules of [GetRefRequest].
func (r GetRefRequest) Validate() error { return first(r.Route.validate(), r.Name.Validate()) }

// Validate implements the rules of [DeleteRefRequest].
func (r DeleteRefRequest) Validate() error {
	if r.ExpectedVersion == 0 {
		return &InvalidArgumentError{"expected version", "is 0, which no ref has"}
	}
	return first(r.Route.validate(), r.Name.Validate(), validVersion(r.ExpectedVersion))
}

// Validate implements the rules of [ListRefsRequest].
func (r ListRefsRequest) Validate() error {
	return first(validPage(r.Prefix, r.After, r.Limit), notNegative("known ownership", r.KnownOwnership))
}

// Validate implements the rules of [PromoteRefRequest].
func (r PromoteRefRequest) Validate() error {
	return first(r.Route.validate(), r.Name.Validate(), r.Execution.Validate(), notNegative("sequence", r.Sequence), positive("expected version", r.ExpectedVersion))
}

// Validate implements the rules of [RefLineageRequest].
func (r RefLineageRequest) Validate() error {
	return first(r.Route.validate(), r.Name.Validate(), notNegative("before", r.Before), validLimit(r.Limit))
}

func validVersion(v int64) error {
	if v < AnyVersion {
		return &InvalidArgumentError{"expected version", "is below any"}
	}
	return nil
}

// PutRef points a name at a place; see [RefBackend.PutRef].
func PutRef(ctx context.Context, s *Store, req PutRefRequest) (PutRefResponse, error) {
	return call(ctx, s, CapRefs, "PutRef", req, methods.PutRef)
}

// GetRef returns a ref; see [RefBackend.GetRef].
func GetRef(ctx context.Context, s *Store, req GetRefRequest) (GetRefResponse, error) {
	return call(ctx, s, CapRefs, "GetRef", req, methods.GetRef)
}

// DeleteRef removes a name; see [RefBackend.DeleteRef].
func DeleteRef(ctx context.Context, s *Store, req DeleteRefRequest) (DeleteRefResponse, error) {
	return call(ctx, s, CapRefs, "DeleteRef", req, methods.DeleteRef)
}

// ListRefs returns a page of refs; see [RefBackend.ListRefs].
func ListRefs(ctx context.Context, s *Store, req ListRefsRequest) (ListRefsResponse, error) {
	return call(ctx, s, CapRefs, "ListRefs", req, methods.ListRefs)
}

// PromoteRef repoints a name that exists; see [RefPromoter.PromoteRef].
func PromoteRef(ctx context.Context, s *Store, req PromoteRefRequest) (PromoteRefResponse, error) {
	return call(ctx, s, CapPromoteRef, "PromoteRef", req, methods.PromoteRef)
}

// RefLineage returns the earlier places of a name; see [RefTracer.RefLineage].
func RefLineage(ctx context.Context, s *Store, req RefLineageRequest) (RefLineageResponse, error) {
	return call(ctx, s, CapRefLineage, "RefLineage", req, methods.RefLineage)
}
