// Package stack composes what the gateway runs:
//
//	tenant -> profiling -> crypto -> sharded -> [ per shard: profiling -> coalescing -> backend ]
//
// A shard that cannot be opened yet is opened when it can: the others serve meanwhile.
package stack
