// Package sharded spreads one store over several, its shards.
//
//	cluster, err := sharded.Open(ctx, []sharded.Shard{{Name: "a", Store: a}, {Name: "b", Store: b}}, sharded.Options{})
//	…
//	res, err := spi.Append(ctx, cluster.Store(), …)
//
// # The map
//
// A name's hash is one of 4,096 slots, and each slot is owned by one shard at one
// epoch; a tenant that is pinned has a slot of its own. Which shard owns what, the
// shards say themselves. [Open] reads that, and refuses shards that together leave
// a slot to nobody or to two, that belong to several clusters, or that were filled
// by another [Placement].
//
// What is kept here is a copy. Each call states slot and epoch, and the shard
// checks both. Where it answers that the copy is stale, its ownership is read again
// and the call goes to whoever owns the slot now, until the caller's deadline; a
// caller without one waits as long as [Options].CallTimeout.
//
// # Pages
//
// A listing is merged from all shards (package merge). Each chunk is of one
// snapshot of its shard and says what the shard owned in it; together they cover
// each slot once, and each pin that any of them knows of, or there is no page. A
// shard that fails, is late, goes backwards, or lists what it does not own fails
// the page with a [spi.ShardError] that names it.
//
// A page asks every shard for a little more than its share. Whoever goes through
// everything is better served by [Cluster.Executions] and its like, which read
// ahead and ask for nothing twice; above a layer that scopes or encrypts, go
// through pages of [spi.MaxLimit].
//
// # What one shard's failure does
//
// Calls to its executions fail with a [spi.ShardError] around what it answered,
// calls to others do not notice. Pages, which it would be missing from, fail, unless
// the caller allows a page to be partial: then it is named in Missing. Of due timers
// the other shards' are returned, and it is named in Missing. What is an answer to the request, such as [spi.ConflictError], comes as the shard gave it.
//
// # Versions side by side
//
// A shard says from which version of the events group on it takes writes. Writers refuse
// themselves: a caller that is older reads on, and each of its writes there is a
// [WriterError]. [Cluster.RequireWriter] raises the minimum, and the epochs with it, so
// that the next call of every older writer to the shard finds out.
package sharded
