package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/backends/remote"
	"github.com/loomgate/loomgate/internal/throwaway"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// A drill is everything that runs.
type drill struct {
	*throwaway.Cluster
	progress io.Writer
	log      *os.File
	key      string // an admin's
	gateways [2]gateway
	outage   time.Duration // how long what is killed stays away, and between two outages

	mu    sync.Mutex
	down  string    // the shard that does not answer; "" if all do
	since time.Time // the last shard has come back, or none has gone yet
}

type gateway struct {
	grpc, http string
	process    *throwaway.Gateway
}

func (d *drill) serve(ctx context.Context, i int) (err error) {
	g := &d.gateways[i]
	g.process, err = d.Serve(ctx, g.http, d.log, "--grpc-listen", g.grpc, "--http-listen", g.http)
	return err
}

func (d *drill) stop() error {
	var errs []error
	for _, g := range d.gateways {
		if g.process != nil {
			errs = append(errs, g.process.Stop())
		}
	}
	return errors.Join(errs...)
}

// play loads the gateways for a span, kills meanwhile, and counts.
func (d *drill) play(ctx context.Context, span time.Duration) (r report, err error) {
	keyFile, err := d.Prepare(ctx)
	if err != nil {
		return r, err
	}
	raw, err := os.ReadFile(keyFile)
	if err != nil {
		return r, err
	}
	d.key = strings.TrimSpace(string(raw))
	for i := range d.gateways {
		if err := d.serve(ctx, i); err != nil {
			return r, err
		}
	}
	workers, err := d.hire(ctx)
	defer func() {
		for _, w := range workers {
			w.close()
		}
	}()
	if err != nil {
		return r, err
	}
	loading, end := context.WithTimeout(ctx, span)
	defer end()
	var working sync.WaitGroup
	for _, w := range workers {
		working.Go(func() { w.work(loading, ctx) })
	}
	err = d.kill(loading, ctx)
	working.Wait()
	if err = errors.Join(err, ctx.Err()); err != nil {
		return r, err
	}
	return count(ctx, workers)
}

// hire makes the tenants and their workers.
func (d *drill) hire(ctx context.Context) (workers []*worker, err error) {
	connection, err := remote.Dial(d.gateways[0].grpc, remote.Options{APIKey: d.key, Plaintext: true})
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	admin := pb.NewAdminServiceClient(connection)
	for i := range tenants {
		w := &worker{drill: d, number: i, tenant: fmt.Sprintf("tenant-%02d", i)}
		workers = append(workers, w)
		if _, err := admin.CreateTenant(ctx, &pb.CreateTenantRequest{Name: w.tenant}); err != nil {
			return workers, err
		}
		at, err := admin.Locate(ctx, &pb.LocateRequest{Tenant: w.tenant, Execution: "e"})
		if err != nil {
			return workers, err
		}
		w.shard = at.GetShard()
		for g := range d.gateways {
			if w.clients[g], err = d.connect(ctx, w.tenant, g); err != nil {
				return workers, err
			}
		}
	}
	return workers, nil
}

// connect reaches a tenant through a gateway, which may have to hear of it first.
func (d *drill) connect(ctx context.Context, tenant string, gateway int) (*remote.Client, error) {
	for {
		client, err := remote.Open(ctx, d.gateways[gateway].grpc, remote.Options{APIKey: d.key, Tenant: spi.TenantName(tenant), Plaintext: true, Connections: 1})
		if err == nil {
			return client, nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return nil, fmt.Errorf("gateway %d, tenant %s: %w", gateway, tenant, err)
		}
	}
}

// kill kills one after the other until the load ends, and brings back what it killed.
func (d *drill) kill(loading, ctx context.Context) error {
	for n := 0; ; n++ {
		if pause(loading, d.outage) != nil {
			return nil
		}
		var err error
		switch n % 3 {
		case 0:
			err = d.killShard(ctx, n/3%shards)
		case 1:
			err = d.killGateway(ctx, n/3%len(d.gateways))
		case 2:
			err = d.killConnections(ctx, n/3%shards)
		}
		if err != nil {
			return err
		}
	}
}

func (d *drill) killShard(ctx context.Context, i int) error {
	fmt.Fprintf(d.progress, "shard-%d is killed\n", i)
	d.isDown(fmt.Sprintf("shard-%d", i))
	defer d.isDown("")
	err := d.Servers[i].Crash()
	if err == nil {
		err = pause(ctx, d.outage)
	}
	return errors.Join(err, d.Servers[i].Recover())
}

// isDown notes which shard does not answer from now on.
func (d *drill) isDown(shard string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down, d.since = shard, time.Now()
}

func (d *drill) killGateway(ctx context.Context, i int) error {
	fmt.Fprintf(d.progress, "gateway %d is killed\n", i)
	d.gateways[i].process.Kill()
	d.gateways[i].process = nil
	if err := pause(ctx, d.outage); err != nil {
		return err
	}
	return d.serve(ctx, i)
}

// killConnections ends what a shard's connections do, one after the other.
func (d *drill) killConnections(ctx context.Context, i int) error {
	fmt.Fprintf(d.progress, "connections to shard-%d are killed\n", i)
	conn, err := pgx.Connect(ctx, d.DSNs[i])
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for range 10 {
		_, err := conn.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1`)
		if err != nil {
			return err
		}
		if err := pause(ctx, d.outage/10); err != nil {
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
