package config_test

import (
	"slices"
	"testing"

	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
)

func TestWhatChangedIsTakenOverOrNeedsARestart(t *testing.T) {
	base := config.Config{
		Log:    config.Log{Level: "info"},
		HTTP:   config.HTTP{Listen: "127.0.0.1:7071"},
		Shards: []config.Shard{{Name: "a", DSN: config.NewSecret("postgres://h/one")}, {Name: "b", DSN: config.NewSecret("postgres://h/two")}},
	}
	for name, c := range map[string]struct {
		change        func(*config.Config)
		live, restart []string
	}{
		"nothing":           {func(*config.Config) {}, nil, nil},
		"the log's level":   {func(c *config.Config) { c.Log.Level = "debug" }, []string{"log.level"}, nil},
		"a tenant's limits": {func(c *config.Config) { c.Limits.Tenant.InFlight = 7 }, []string{"limits.tenant.in_flight"}, nil},
		"the log's format":  {func(c *config.Config) { c.Log.Format = "json" }, nil, []string{"log.format"}},
		"a shard's address": {func(c *config.Config) { c.Shards[1].DSN = config.NewSecret("postgres://h/three") }, []string{"shards[1].dsn"}, nil},
		"a shard more": {
			func(c *config.Config) { c.Shards = append(c.Shards, config.Shard{Name: "c"}) }, nil,
			[]string{"shards[2].name", "shards[2].dsn", "shards[2].dsn_file", "shards[2].sqlite", "shards[2].pool_size", "shards[2].behind_pooler"},
		},
		"both kinds": {func(c *config.Config) { c.Log.Level, c.HTTP.Listen = "warn", "127.0.0.1:80" }, []string{"log.level"}, []string{"http.listen"}},
	} {
		next := base
		next.Shards = slices.Clone(base.Shards)
		c.change(&next)
		got := base.Compare(&next)
		if !slices.Equal(got.Live, c.live) || !slices.Equal(got.Restart, c.restart) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
