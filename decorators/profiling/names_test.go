package profiling

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/loomgate/loomgate/conformance/small"
	"github.com/loomgate/loomgate/spi"
)

// mark is in every name, and in everything else that a caller brings.
const mark = "zebra"

// fill gives every part of a request a value: strings with the mark, each another, and
// numbers n.
func fill(v reflect.Value, n int64, strings *int) {
	marked := func() string {
		*strings++
		return fmt.Sprint(mark, *strings)
	}
	switch at := v.Addr().Interface().(type) {
	case *spi.Route: // nothing here routes
	case *time.Time:
		*at = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	case *time.Duration:
		*at = time.Hour
	case *[]byte:
		*at = []byte(marked())
	case *map[string]string:
		*at = map[string]string{marked(): marked()}
	default:
		switch v.Kind() {
		case reflect.String:
			v.SetString(marked())
		case reflect.Int64, reflect.Int:
			v.SetInt(n)
		case reflect.Bool:
			v.SetBool(n > 0)
		case reflect.Array:
			v.Index(0).SetUint(1)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), n, strings)
		case reflect.Struct:
			for i := range v.NumField() {
				switch field := v.Type().Field(i); {
				case !field.IsExported():
				case field.Name == "Limit" || field.Name == "N" || field.Name == "Before":
					v.Field(i).SetInt(1)
				case field.Name == "Sequence" && v.Type() == reflect.TypeFor[spi.Event](), field.Name == "Fence", field.Name == "SinceSeq",
					field.Name == "Version" && v.Type() == reflect.TypeFor[spi.Timer](), field.Name == "After" && field.Type.Kind() == reflect.String,
					field.Name == "Prefix", field.Name == "KeyID": // the store's, or more likely to find something where it is empty
				default:
					fill(v.Field(i), n, strings)
				}
			}
		}
	}
}

// TestNothingOfATenantIsShown makes every method work on marked names, above and below
// tenants and shards, so that it succeeds, fails and fails below, and looks for the mark
// in all that is exported.
func TestNothingOfATenantIsShown(t *testing.T) {
	e := newExporter()
	split, err := small.Split(t.Context(), e.over(t, inMemory(t), "shard-a"), e.over(t, inMemory(t), "shard-b"))
	if err != nil {
		t.Fatal(err)
	}
	view, err := small.Prefix(mark, e.over(t, split, "above shards"))
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := newMetrics(e.meters.Meter(scope))
	if err != nil {
		t.Fatal(err)
	}
	l := &layer{"above tenants", view, newSpans(e.traces), metrics, newMethods("above tenants")}
	told, answered := 0, 0
	for _, ctx := range []context.Context{t.Context(), canceledContext()} {
		for _, n := range []int64{0, -1, 1, 0} {
			eachMethod(l, func(_ string, method reflect.Value) {
				req := reflect.New(method.Type().In(1)).Elem()
				fill(req, n, new(int))
				answer := method.Call([]reflect.Value{reflect.ValueOf(ctx), req})
				switch err, _ := answer[1].Interface().(error); {
				case err == nil:
					answered++
				case strings.Contains(err.Error(), mark):
					told++
				}
			})
		}
	}
	_ = head(t.Context(), e.over(t, hooked(t, func(context.Context) error { return fmt.Errorf("the row of %s is locked", mark) }), "shard-a"))
	func() {
		defer func() { _ = recover() }()
		_ = head(t.Context(), e.over(t, hooked(t, func(context.Context) error { panic(mark) }), "shard-a"))
	}()
	if told < 5 || answered < 15 {
		t.Errorf("%d calls were answered, and %d errors told a name: too few to show anything", answered, told)
	}

	var measured metricdata.ResourceMetrics
	if err := e.reader.Collect(t.Context(), &measured); err != nil {
		t.Fatal(err)
	}
	exported := fmt.Sprintf("%+v\n%+v", e.spans.GetSpans(), measured)
	for _, there := range []string{"above tenants", "above shards", "shard-b", "loomgate.PutRef", "conflict", "panic", "other"} {
		if !strings.Contains(exported, there) {
			t.Errorf("%q is not exported: the test looks in the wrong place", there)
		}
	}
	if at := strings.Index(exported, mark); at >= 0 {
		t.Errorf("exported is …%.200s", exported[max(0, at-100):])
	}
}
