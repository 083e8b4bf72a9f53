// Package stack composes what the gateway runs:
//
//	tenant -> profiling -> crypto -> profiling -> sharded -> [ per shard: profiling -> fair -> coalescing -> backend ]
//
// Where nothing is encrypted, the layers around the encryption are one. The server puts a
// tenant's limits over its view.
//
// A shard that cannot be opened yet is opened when it can: the others serve meanwhile.
package stack
