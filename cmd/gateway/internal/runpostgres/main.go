// Command runpostgres runs a gateway over three Postgres servers that are gone when it
// ends: for trying it out.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/loomgate/loomgate/cmd/gateway/internal/greeting"
	"github.com/loomgate/loomgate/internal/throwaway"
)

const (
	shards = 3
	grpc   = "127.0.0.1:7070"
	http   = "127.0.0.1:7071"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "run-postgres:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	cluster, err := throwaway.Start(ctx, throwaway.Options{Shards: shards, GRPC: grpc, HTTP: http})
	if err != nil {
		return err
	}
	defer cluster.Close()
	key, err := cluster.Prepare(ctx)
	if err != nil {
		return err
	}
	gateway, err := cluster.Serve(ctx, http, os.Stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gateway.Stop()) }()
	if _, err := cluster.Do(ctx, "tenants", "create", "demo", "--addr", grpc, "--key-file", key); err != nil {
		return err
	}
	for i, s := range cluster.Servers {
		fmt.Printf("shard-%d is Postgres on port %d (user postgres, no password)\n", i, s.Port)
	}
	greeting.Print(os.Stdout, http, key, "demo")
	select {
	case <-gateway.Exited():
	case <-ctx.Done():
	}
	return nil
}
