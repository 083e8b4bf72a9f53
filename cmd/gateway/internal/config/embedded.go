package config

import "slices"

// Embedded reports whether the shards are those that a gateway makes by itself where
// none is given.
func (c *Config) Embedded() bool {
	return slices.EqualFunc(c.Shards, embeddedShards(c.DataDir), func(a, b Shard) bool { return a.Name == b.Name && a.SQLite == b.SQLite })
}
