// Package crypto is a decorator that encrypts payloads and metadata: nothing of them is
// readable in the store below it, and to destroy one key is to destroy what it encrypted.
//
// A key of the [KMS] wraps the keys of tenants, a tenant's key wraps a data key for each
// execution, and that encrypts events. The wrapped keys are in the store. [New] returns
// the store that encrypts; [Keys] is for whoever rotates and shreds.
//
// Ids, kinds, stamps, times, sequences, fences and sizes stay readable: the store judges
// by them.
package crypto

import (
	"time"

	"github.com/loomgate/loomgate/spi"
)

// What [Options] are where they are not set.
const (
	DefaultTenant    spi.TenantName = "default"
	DefaultCacheLife                = 10 * time.Second
	DefaultCacheSize                = 10_000
)

// Options are the same on every node, and for [NewKeys].
type Options struct {
	// Tenant owns the executions whose names no scope made: all of them above a
	// tenant's view. The default is [DefaultTenant].
	Tenant spi.TenantName

	// CacheLife is how long a key is used after the store was asked for it. A shred
	// takes as long. To lengthen it, lengthen it for NewKeys first. The default is
	// [DefaultCacheLife].
	CacheLife time.Duration

	// CacheSize is how many data keys, and how many tenant keys, are held in memory.
	// Of tenants beyond that the KMS is asked again and again. The default is
	// [DefaultCacheSize].
	CacheSize int

	// AllowUnencrypted reads and continues executions that were written before there
	// was this layer, as they are; new ones are encrypted, and so are copies.
	// Without it they are refused, as is whatever somebody put there by going around
	// this layer.
	AllowUnencrypted bool
}

// maxTries bounds how often a call begins again because others changed the keys of what
// it works on.
const maxTries = 10

type layer struct {
	inner *spi.Store
	self  *spi.Store // this layer, to read through
	keys  *keeper
}

// New returns inner with everything encrypted. It keeps its keys in inner, which has to
// offer that ([spi.UnsupportedError]), and does not offer it itself. It stands above the
// layer that routes, and above or below tenants' views; the two are not compatible:
// where it stands is part of what it writes.
//
// Beside the errors of package spi, calls that need a key answer [KeyLostError],
// [TamperedError] and [UnencryptedError].
func New(inner *spi.Store, kms KMS, opts Options) (*spi.Store, error) {
	l := &layer{inner: inner}
	var err error
	if l.self, err = spi.Wrap(l, inner); err != nil {
		return nil, err
	}
	if l.keys, err = newKeeper(inner, kms, opts); err != nil {
		return nil, err
	}
	return l.self, nil
}

// Caps leaves out the keys, which are this layer's, and what makes a store a shard: the
// keys of tenants have no route. Copies it makes by itself, where it can.
func (l *layer) Caps(inner spi.Caps) spi.Caps {
	inner &^= spi.CapDataKeys | spi.CapRewrapDataKey | spi.CapChangeOwnership | spi.CapCopyPrefix
	if inner.Has(spi.CapAppendIfUnchanged) {
		inner |= spi.CapCopyPrefix
	}
	return inner
}

// Layer tells that this layer encrypts.
func (l *layer) Layer() spi.Layer { return spi.Layer{Name: "crypto", Encrypts: true} }
