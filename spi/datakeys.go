package spi

import (
	"context"
	"fmt"
)

// DataKeyBackend is what a store can do with wrapped data keys. The store sees no
// key in the clear and never puts one on the wire; a layer that encrypts calls it.
//
// An owner has one key a version; a tenant's count up as they are rotated. Version
// 1 of an execution is the execution's own: it is placed with the log and goes with
// it, and its id is on the execution's row, so that the store can refuse an append
// under another.
type DataKeyBackend interface {
	// CreateDataKey stores a key unless its owner has that version already, and
	// returns the one that is there: of several creators all get the winner's. A
	// shredded one is [ShreddedError]. An execution that has events has had its
	// chance: its first key then is [ConflictError].
	CreateDataKey(context.Context, CreateDataKeyRequest) (CreateDataKeyResponse, error)

	// GetDataKey returns a key. One that was destroyed is [ShreddedError], also as
	// the newest, for which an older one is no substitute; one that never was is
	// [NotFoundError].
	GetDataKey(context.Context, GetDataKeyRequest) (GetDataKeyResponse, error)

	// DestroyDataKey removes a key for good and remembers that it did. From then
	// on no append under it is acknowledged. To destroy what is destroyed already
	// is no error; a key that never was is [NotFoundError].
	DestroyDataKey(context.Context, DestroyDataKeyRequest) (DestroyDataKeyResponse, error)

	// ListDataKeys returns a page of owners in code point order, with all the
	// versions of each that are there, for a scan of what is still in use.
	ListDataKeys(context.Context, ListDataKeysRequest) (ListDataKeysResponse, error)
}

// DataKeyRewrapper is optional.
type DataKeyRewrapper interface {
	// RewrapDataKey replaces how a key is wrapped, not the key, if it still is
	// wrapped by what the caller saw; otherwise it changes nothing. The errors are
	// those of GetDataKey. Rotation of tenant keys calls it.
	RewrapDataKey(context.Context, RewrapDataKeyRequest) (RewrapDataKeyResponse, error)
}

// DataKeyMethods is the whole group.
type DataKeyMethods interface {
	DataKeyBackend
	DataKeyRewrapper
}

// Requests and responses of the group.
type (
	// A DataKey is a wrapped key.
	DataKey struct {
		Owner     KeyOwner
		Version   int64 // from 1; an execution's is 1
		ID        KeyID
		WrappedBy string // the wrapping key's name: 1 to MaxDescription bytes
		Wrapped   []byte // 1 to MaxWrappedKey bytes
	}

	// A CreateDataKeyRequest holds the key to create.
	CreateDataKeyRequest struct {
		Route Route
		Key   DataKey
	}

	// A CreateDataKeyResponse holds the key that is there.
	CreateDataKeyResponse struct {
		Key     DataKey
		Created bool // by this call
	}

	// A GetDataKeyRequest names a key.
	GetDataKeyRequest struct {
		Route   Route
		Owner   KeyOwner
		Version int64 // 0: the newest
	}

	// A GetDataKeyResponse holds the key.
	GetDataKeyResponse struct{ Key DataKey }

	// A DestroyDataKeyRequest names a key.
	DestroyDataKeyRequest struct {
		Route   Route
		Owner   KeyOwner
		Version int64
	}

	// A DestroyDataKeyResponse says whether this call destroyed it.
	DestroyDataKeyResponse struct{ Destroyed bool }

	// A ListDataKeysRequest asks for a page of owners.
	ListDataKeysRequest struct {
		Prefix string
		After  string // the cursor: any well-formed string
		Limit  int    // 1 to MaxLimit owners

		KnownOwnership int64 // as of a ListExecutionsRequest
	}

	// A ListDataKeysResponse holds keys by owner and version.
	ListDataKeysResponse struct {
		Keys    []DataKey
		Next    string // the cursor to go on with; "" at the end
		Receipt Receipt
	}

	// A RewrapDataKeyRequest says how a key is to be wrapped.
	RewrapDataKeyRequest struct {
		Route        Route
		Owner        KeyOwner
		Version      int64
		OldWrappedBy string
		WrappedBy    string
		Wrapped      []byte
	}

	// A RewrapDataKeyResponse says whether this call changed anything.
	RewrapDataKeyResponse struct{ Rewrapped bool }
)

// Validate implements the rules of [CreateDataKeyRequest].
func (r CreateDataKeyRequest) Validate() error {
	k := r.Key
	if k.ID == (KeyID{}) {
		return &InvalidArgumentError{"key id", "is missing"}
	}
	return first(r.Route.validate(), k.Owner.Validate(), positive("version", k.Version), validWrapping(k.WrappedBy, k.Wrapped))
}

// Validate implements the rules of [GetDataKeyRequest].
func (r GetDataKeyRequest) Validate() error {
	return first(r.Route.validate(), r.Owner.Validate(), notNegative("version", r.Version))
}

// Validate implements the rules of [DestroyDataKeyRequest].
func (r DestroyDataKeyRequest) Validate() error {
	return first(r.Route.validate(), r.Owner.Validate(), positive("version", r.Version))
}

// Validate implements the rules of [ListDataKeysRequest].
func (r ListDataKeysRequest) Validate() error {
	return first(validPage(r.Prefix, r.After, r.Limit), notNegative("known ownership", r.KnownOwnership))
}

// Validate implements the rules of [RewrapDataKeyRequest].
func (r RewrapDataKeyRequest) Validate() error {
	return first(r.Route.validate(), r.Owner.Validate(), positive("version", r.Version),
		validName("old wrapping key", r.OldWrappedBy, 1, MaxDescription), validWrapping(r.WrappedBy, r.Wrapped))
}

func validWrapping(by string, wrapped []byte) error {
	if len(wrapped) < 1 || len(wrapped) > MaxWrappedKey {
		return &InvalidArgumentError{"wrapped key", fmt.Sprintf("has %d bytes, not 1 to %d", len(wrapped), MaxWrappedKey)}
	}
	return validName("wrapping key", by, 1, MaxDescription)
}

// CreateDataKey stores a key unless there is one; see [DataKeyBackend.CreateDataKey].
func CreateDataKey(ctx context.Context, s *Store, req CreateDataKeyRequest) (CreateDataKeyResponse, error) {
	return call(ctx, s, CapDataKeys, "CreateDataKey", req, methods.CreateDataKey)
}

// GetDataKey returns a key; see [DataKeyBackend.GetDataKey].
func GetDataKey(ctx context.Context, s *Store, req GetDataKeyRequest) (GetDataKeyResponse, error) {
	return call(ctx, s, CapDataKeys, "GetDataKey", req, methods.GetDataKey)
}

// DestroyDataKey removes a key for good; see [DataKeyBackend.DestroyDataKey].
func DestroyDataKey(ctx context.Context, s *Store, req DestroyDataKeyRequest) (DestroyDataKeyResponse, error) {
	return call(ctx, s, CapDataKeys, "DestroyDataKey", req, methods.DestroyDataKey)
}

// ListDataKeys returns a page of owners and their keys; see [DataKeyBackend.ListDataKeys].
func ListDataKeys(ctx context.Context, s *Store, req ListDataKeysRequest) (ListDataKeysResponse, error) {
	return call(ctx, s, CapDataKeys, "ListDataKeys", req, methods.ListDataKeys)
}

// RewrapDataKey replaces how a key is wrapped; see [DataKeyRewrapper.RewrapDataKey].
func RewrapDataKey(ctx context.Context, s *Store, req RewrapDataKeyRequest) (RewrapDataKeyResponse, error) {
	return call(ctx, s, CapRewrapDataKey, "RewrapDataKey", req, methods.RewrapDataKey)
}
