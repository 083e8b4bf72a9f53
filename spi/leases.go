package spi

import (
	"context"
	"fmt"
	"time"
)

// LeaseBackend is what a store can do with leases: names that one holder at a time
// has for a while, by the store's clock. A lease is a hint that keeps two workers
// from doing one thing; what keeps it safe if they do is the fence.
type LeaseBackend interface {
	// AcquireLease takes a lease that is free or has expired. Whoever holds it
	// already, by the name of the holder, gets it again with the same token and a
	// new end, so repeating a call is safe; once expired it has a new token for
	// anybody. Somebody else's is [LeaseHeldError].
	AcquireLease(context.Context, AcquireLeaseRequest) (AcquireLeaseResponse, error)

	// RenewLease sets a new end for a lease that the caller still holds. One that
	// has expired, was released or has another token is [LeaseLostError].
	RenewLease(context.Context, RenewLeaseRequest) (RenewLeaseResponse, error)

	// ReleaseLease gives a lease up. One that the caller no longer holds is no
	// error.
	ReleaseLease(context.Context, ReleaseLeaseRequest) (ReleaseLeaseResponse, error)
}

// LeaseMethods is the whole group.
type LeaseMethods interface{ LeaseBackend }

// Limits on how long a lease runs.
const (
	MinLeaseTTL = time.Millisecond
	MaxLeaseTTL = 24 * time.Hour
)

// Requests and responses of the group.
type (
	// An AcquireLeaseRequest says who wants a lease for how long.
	AcquireLeaseRequest struct {
		Route  Route
		Name   LeaseName
		Holder string        // 1 to MaxDescription bytes; tells one worker from another
		TTL    time.Duration // MinLeaseTTL to MaxLeaseTTL, whole microseconds
	}

	// An AcquireLeaseResponse holds the lease's token, which no other holding of
	// the name has had, and its end.
	AcquireLeaseResponse struct {
		Token     int64
		ExpiresAt time.Time
	}

	// A RenewLeaseRequest says which lease to renew for how long.
	RenewLeaseRequest struct {
		Route Route
		Name  LeaseName
		Token int64
		TTL   time.Duration
	}

	// A RenewLeaseResponse holds the new end.
	RenewLeaseResponse struct{ ExpiresAt time.Time }

	// A ReleaseLeaseRequest says which lease to give up.
	ReleaseLeaseRequest struct {
		Route Route
		Name  LeaseName
		Token int64
	}

	// A ReleaseLeaseResponse says whether the caller still held it.
	ReleaseLeaseResponse struct{ Released bool }
)

// Validate implements the rules of [AcquireLeaseRequest].
func (r AcquireLeaseRequest) Validate() error {
	return first(r.Route.validate(), r.Name.Validate(), validName("holder", r.Holder, 1, MaxDescription), validTTL(r.TTL))
}

// Validate implements the rules of [RenewLeaseRequest].
func (r RenewLeaseRequest) Validate() error {
	return first(r.Route.validate(), r.Name.Validate(), positive("token", r.Token), validTTL(r.TTL))
}

// Validate implements the rules of [ReleaseLeaseRequest].
func (r ReleaseLeaseRequest) Validate() error {
	return first(r.Route.validate(), r.Name.Validate(), positive("token", r.Token))
}

func validTTL(ttl time.Duration) error {
	if ttl < MinLeaseTTL || ttl > MaxLeaseTTL || ttl%time.Microsecond != 0 {
		return &InvalidArgumentError{"ttl", fmt.Sprintf("is %v, not %v to %v in whole microseconds", ttl, MinLeaseTTL, MaxLeaseTTL)}
	}
	return nil
}

// AcquireLease takes a lease; see [LeaseBackend.AcquireLease].
func AcquireLease(ctx context.Context, s *Store, req AcquireLeaseRequest) (AcquireLeaseResponse, error) {
	return call(ctx, s, CapLeases, "AcquireLease", req, methods.AcquireLease)
}

// RenewLease sets a new end for a lease; see [LeaseBackend.RenewLease].
func RenewLease(ctx context.Context, s *Store, req RenewLeaseRequest) (RenewLeaseResponse, error) {
	return call(ctx, s, CapLeases, "RenewLease", req, methods.RenewLease)
}

// ReleaseLease gives a lease up; see [LeaseBackend.ReleaseLease].
func ReleaseLease(ctx context.Context, s *Store, req ReleaseLeaseRequest) (ReleaseLeaseResponse, error) {
	return call(ctx, s, CapLeases, "ReleaseLease", req, methods.ReleaseLease)
}
