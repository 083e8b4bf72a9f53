package spi

import "context"

// Snapshotter is optional, and nobody has decided about it yet: prove adds it to a
// copy of this package.
type Snapshotter interface {
	SnapshotExecution(context.Context, SnapshotExecutionRequest) (SnapshotExecutionResponse, error)
}

// A SnapshotExecutionRequest names an execution.
type SnapshotExecutionRequest struct {
	Route     Route
	Execution ExecutionID
}

// A SnapshotExecutionResponse holds a snapshot.
type SnapshotExecutionResponse struct{ Snapshot []byte }

// Validate implements the rules of [SnapshotExecutionRequest].
func (r SnapshotExecutionRequest) Validate() error {
	return first(r.Route.validate(), r.Execution.Validate())
}

// SnapshotExecution returns a snapshot; see [Snapshotter].
func SnapshotExecution(ctx context.Context, s *Store, req SnapshotExecutionRequest) (SnapshotExecutionResponse, error) {
	return call(ctx, s, CapSnapshotExecution, "SnapshotExecution", req, methods.SnapshotExecution)
}
