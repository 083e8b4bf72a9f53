// Command accept proves the gateway as a whole: it brings logs into a gateway over four
// Postgres shards, stops imports and kills a shard on the way, and compares what comes
// out with what went in. Without a folder of logs it makes some.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loomgate/loomgate/cmd/gateway/internal/transfer/samplelog"
	"github.com/loomgate/loomgate/internal/throwaway"
)

const shards = 4

func main() {
	data := flag.String("data", "", "folder of logs, NAME.ndjson or NAME.ndjson.gz for tenant NAME; made if empty")
	only := flag.String("only", "", "only these logs, by tenant, with commas between")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	begin := time.Now()
	if err := run(ctx, *data, *only); err != nil {
		fmt.Fprintln(os.Stderr, "accept:", err)
		stop()
		os.Exit(1)
	}
	fmt.Printf("accepted in %v\n", time.Since(begin).Round(time.Second))
}

func run(ctx context.Context, data, only string) error {
	grpc, err := throwaway.FreeAddress()
	if err != nil {
		return err
	}
	http, err := throwaway.FreeAddress()
	if err != nil {
		return err
	}
	cluster, err := throwaway.Start(ctx, throwaway.Options{Shards: shards, GRPC: grpc, HTTP: http})
	if err != nil {
		return err
	}
	defer cluster.Close()
	logs, err := findLogs(cluster, data, only)
	if err != nil {
		return err
	}
	key, err := cluster.Prepare(ctx)
	if err != nil {
		return err
	}
	log, err := os.Create(cluster.Path("gateway.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	gateway, err := cluster.Serve(ctx, http, log)
	if err != nil {
		return err
	}
	a := &acceptance{Cluster: cluster, addr: grpc, key: key}
	err = a.prove(ctx, logs)
	return errors.Join(err, gateway.Stop(), a.outlive(ctx))
}

// A tenantLog is a tenant's file.
type tenantLog struct{ tenant, path string }

// findLogs returns the logs of a folder, or makes some.
func findLogs(c *throwaway.Cluster, data, only string) (logs []tenantLog, err error) {
	if data == "" {
		for _, shape := range samplelog.Tenants(1) {
			path := c.Path(shape.Tenant + ".ndjson")
			f, err := os.Create(path)
			if err != nil {
				return nil, err
			}
			if err := errors.Join(shape.Write(f), f.Close()); err != nil {
				return nil, err
			}
			logs = append(logs, tenantLog{shape.Tenant, path})
		}
	} else {
		paths, err := filepath.Glob(filepath.Join(data, "*.ndjson*"))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			tenant, _, _ := strings.Cut(filepath.Base(path), ".")
			logs = append(logs, tenantLog{tenant, path})
		}
	}
	if only != "" {
		logs = slices.DeleteFunc(logs, func(l tenantLog) bool { return !slices.Contains(strings.Split(only, ","), l.tenant) })
	}
	if len(logs) == 0 {
		return nil, fmt.Errorf("there is no log in %q", data)
	}
	return logs, nil
}
