// Command drill shows what outages do: two gateways over three Postgres shards are under
// load while a shard, a gateway and connections are killed, again and again. In the end
// every append that was acknowledged has to be stored, once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/loomgate/loomgate/internal/throwaway"
)

const (
	shards  = 3
	tenants = 12 // each has a shard, and a worker
)

func main() {
	span := flag.Duration("for", 2*time.Minute, "how long there is load")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	report, err := run(ctx, os.Stdout, *span, 3*time.Second)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "drill:", err)
		os.Exit(1)
	}
	fmt.Print(report)
	if report.lost > 0 || report.duplicated > 0 {
		os.Exit(1)
	}
}

// run does the drill, and tells progress what is killed.
func run(ctx context.Context, progress io.Writer, span, outage time.Duration) (report, error) {
	d := &drill{progress: progress, outage: outage}
	for i := range d.gateways {
		g := &d.gateways[i]
		for _, addr := range []*string{&g.grpc, &g.http} {
			var err error
			if *addr, err = throwaway.FreeAddress(); err != nil {
				return report{}, err
			}
		}
	}
	var err error
	d.Cluster, err = throwaway.Start(ctx, throwaway.Options{
		Shards: shards, GRPC: d.gateways[0].grpc, HTTP: d.gateways[0].http, Settings: "placement: tenant\n",
	})
	if err != nil {
		return report{}, err
	}
	defer d.Close()
	if d.log, err = os.Create(d.Path("gateways.log")); err != nil {
		return report{}, err
	}
	defer d.log.Close()
	r, err := d.play(ctx, span)
	return r, errors.Join(err, d.stop())
}
