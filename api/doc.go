// Package api carries the methods of package spi over the wire: each request,
// response and error as a message of loomgate.v1 and back.
//
// [Method] is one method with all four directions; a server and a client need
// nothing else about it. Errors cross as [ErrorStatus] and [FromStatus] say.
//
// What is not on the wire:
//
//   - data keys, and with them an append's KeyID: the gateway encrypts;
//   - routes, receipts and KnownOwnership: the gateway routes, and has checked what
//     a page covers before it answers;
//   - the names of shards that [spi.DueTimersResponse] misses: a tenant is told how
//     many they are.
package api

// The tools are pinned in tools/go.mod and go.mod.
//go:generate go tool -modfile=../tools/go.mod buf lint
//go:generate go tool -modfile=../tools/go.mod buf format --diff --exit-code
//go:generate go tool -modfile=../tools/go.mod buf generate

import "github.com/loomgate/loomgate/spi"

// MaxMessageBytes is the largest message that a server or a client of this module
// takes: the largest append or read ([spi.MaxAppendBytes], [spi.MaxReadBytes]) with
// everything that stands around the payloads. As JSON, where payloads are base64,
// it is reached earlier.
const MaxMessageBytes = spi.MaxAppendBytes + 16<<20
