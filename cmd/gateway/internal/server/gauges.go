package server

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/loomgate/loomgate/cmd/gateway/internal/telemetry"
)

// gauges are what is looked at with each scrape.
type gauges struct {
	shardUp     metric.Int64ObservableGauge
	connections metric.Int64ObservableGauge
	maximum     metric.Int64ObservableGauge
	waiting     metric.Int64ObservableGauge
	waits       metric.Int64ObservableCounter
	waited      metric.Float64ObservableCounter
	recordsAge  metric.Float64ObservableGauge
	ready       metric.Int64ObservableGauge
	draining    metric.Int64ObservableGauge
}

const (
	shardKey = attribute.Key("loomgate.shard")
	stateKey = attribute.Key("loomgate.state")
)

func (s *server) sqlTracer(shard string) pgx.QueryTracer { return s.sql[shard] }

func (s *server) watchBatches(shard string) telemetry.BatchWatcher {
	return s.telemetry.NewBatches(shard, s.Config.Log)
}

// traceSQL makes what shows the shards' SQL.
func (s *server) traceSQL() {
	s.sql = map[string]*telemetry.SQL{}
	for _, shard := range s.Config.Shards {
		s.sql[shard.Name] = s.telemetry.NewSQL(shard.Name)
	}
}

// observe lets scrapes see how the shards, the records and the process are.
func (s *server) observe() error {
	meter := s.telemetry.Meter()
	var g gauges
	var errs [9]error
	g.shardUp, errs[0] = meter.Int64ObservableGauge("loomgate.shard.up",
		metric.WithDescription("1 if the shard answered when it was last asked, else 0."))
	g.connections, errs[1] = meter.Int64ObservableGauge("loomgate.pool.connections",
		metric.WithDescription("Connections to the shard, in use or idle."))
	g.maximum, errs[2] = meter.Int64ObservableGauge("loomgate.pool.max",
		metric.WithDescription("Connections to the shard that there may be."))
	g.waiting, errs[3] = meter.Int64ObservableGauge("loomgate.pool.waiting",
		metric.WithDescription("Calls that wait for a connection to the shard."))
	g.waits, errs[4] = meter.Int64ObservableCounter("loomgate.pool.waits",
		metric.WithDescription("How often no connection to the shard was free."))
	g.waited, errs[5] = meter.Float64ObservableCounter("loomgate.pool.wait.duration", metric.WithUnit("s"),
		metric.WithDescription("How long was waited where no connection to the shard was free."))
	g.recordsAge, errs[6] = meter.Float64ObservableGauge("loomgate.control.age", metric.WithUnit("s"),
		metric.WithDescription("How old the copy of the tenants and keys is."))
	g.ready, errs[7] = meter.Int64ObservableGauge("loomgate.ready",
		metric.WithDescription("1 while this gateway should get calls, else 0."))
	g.draining, errs[8] = meter.Int64ObservableGauge("loomgate.draining",
		metric.WithDescription("1 while the gateway lets calls end before it stops, else 0."))
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s.look(o, &g)
		return nil
	}, g.shardUp, g.connections, g.maximum, g.waiting, g.waits, g.waited, g.recordsAge, g.ready, g.draining)
	return err
}

func (s *server) look(o metric.Observer, g *gauges) {
	for _, shard := range s.stack.Shards {
		at := shardKey.String(shard.Name)
		o.ObserveInt64(g.shardUp, one(s.shardUp(shard.Name)), metric.WithAttributes(at))
		pool := shard.Pool()
		if pool == nil {
			continue
		}
		o.ObserveInt64(g.connections, int64(pool.AcquiredConns()), metric.WithAttributes(at, stateKey.String("in_use")))
		o.ObserveInt64(g.connections, int64(pool.IdleConns()), metric.WithAttributes(at, stateKey.String("idle")))
		o.ObserveInt64(g.maximum, int64(pool.MaxConns()), metric.WithAttributes(at))
		o.ObserveInt64(g.waiting, s.sql[shard.Name].Waiting(), metric.WithAttributes(at))
		o.ObserveInt64(g.waits, pool.EmptyAcquireCount(), metric.WithAttributes(at))
		o.ObserveFloat64(g.waited, pool.EmptyAcquireWaitTime().Seconds(), metric.WithAttributes(at))
	}
	if age, read := s.records.Age(); read {
		o.ObserveFloat64(g.recordsAge, age.Seconds())
	}
	o.ObserveInt64(g.ready, one(s.unready() == ""))
	o.ObserveInt64(g.draining, one(s.draining.Load()))
}

// shardUp reports whether a shard answered when it was last asked.
func (s *server) shardUp(name string) bool {
	up, asked := s.up.Load(name)
	return asked && up.(bool)
}

func one(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}
