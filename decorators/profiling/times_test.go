package profiling

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/loomgate/loomgate/spi"
)

func TestACallsTimesAreEachLayersOwnWithThoseWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		layered := func(inner *spi.Store, name string) *spi.Store {
			s, err := New(inner, Options{Name: name, MeterProvider: noop.NewMeterProvider()})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		shard := layered(hooked(t, func(ctx context.Context) error {
			time.Sleep(3 * time.Second)
			AddTime(ctx, "sql", 2*time.Second)
			return nil
		}), "shard")
		twice := layered(hooked(t, func(ctx context.Context) error {
			for range 2 {
				if _, err := spi.Head(ctx, shard, spi.HeadRequest{Execution: "e"}); err != nil {
					return err
				}
			}
			time.Sleep(time.Second)
			return nil
		}), "above")
		ctx, times := CollectTimes(t.Context())
		if _, err := spi.Head(ctx, twice, spi.HeadRequest{Execution: "e"}); err != nil {
			t.Fatal(err)
		}
		want := []Spent{{"sql", 4 * time.Second}, {"shard", 6 * time.Second}, {"above", 7 * time.Second}}
		if got := times.Spent(); !slices.Equal(got, want) {
			t.Errorf("%v, not %v", got, want)
		}
		if _, err := spi.Head(t.Context(), twice, spi.HeadRequest{Execution: "e"}); err != nil {
			t.Fatal(err)
		}
		if got := times.Spent(); !slices.Equal(got, want) {
			t.Errorf("another call's times are added: %v", got)
		}
	})
}
