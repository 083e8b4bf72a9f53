package api_test

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/loomgate/loomgate/api"
	"github.com/loomgate/loomgate/spi"
)

// draw returns a random value of a type of spi, of those that can cross: fields that
// are off the wire are zero, and what is empty is nil.
func draw(t *rapid.T, typ reflect.Type) reflect.Value {
	v := reflect.New(typ).Elem()
	fill(t, v)
	return v
}

func fill(t *rapid.T, v reflect.Value) {
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = drawTime(t)
		return
	case *time.Duration:
		*p = time.Duration(rapid.Int64Range(math.MinInt64+1e9, math.MaxInt64-1e9).Draw(t, "duration"))
		return
	case *spi.EventID:
		copy(p[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		return
	case *spi.SlotState:
		*p = spi.SlotState(rapid.IntRange(0, 4).Draw(t, "state"))
		return
	case *spi.Caps:
		*p = spi.Caps(rapid.Uint64().Draw(t, "caps")) & spi.AllCaps
		return
	case *error:
		*p = drawError(t, 3)
		return
	case *spi.Event:
		fillFields(t, v)
		drawContent(t, p)
		return
	case *spi.AppendResult:
		if rapid.Bool().Draw(t, "failed") {
			p.Err = drawError(t, 3)
		} else {
			fill(t, v.FieldByName("AppendResponse"))
		}
		return
	case *spi.DueTimersResponse:
		fillFields(t, v)
		unname(p.Missing)
		return
	case *spi.ListExecutionsResponse:
		fillFields(t, v)
		unname(p.Missing)
		return
	case *spi.ListRefsResponse:
		fillFields(t, v)
		unname(p.Missing)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		fillFields(t, v)
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int:
		v.SetInt(int64(rapid.Int32().Draw(t, "int")))
	case reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int64"))
	case reflect.Uint16:
		v.SetUint(uint64(rapid.Uint16().Draw(t, "slot")))
	case reflect.Uint8:
		v.SetUint(uint64(rapid.Byte().Draw(t, "byte")))
	case reflect.String:
		v.SetString(rapid.String().Draw(t, "string"))
	case reflect.Slice:
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			v.Set(reflect.Append(v, draw(t, v.Type().Elem())))
		}
	case reflect.Map:
		for k, w := range rapid.MapOfN(rapid.String(), rapid.String(), 0, 3).Draw(t, "map") {
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			v.SetMapIndex(reflect.ValueOf(k), reflect.ValueOf(w))
		}
	default:
		t.Fatalf("nobody can draw a %s", v.Type())
	}
}

// unname leaves of shards how many they are.
func unname(shards []string) {
	for i := range shards {
		shards[i] = "unnamed"
	}
}

func fillFields(t *rapid.T, v reflect.Value) {
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() && !offTheWire[f.Name] {
			fill(t, v.Field(i))
		}
	}
}

func drawTime(t *rapid.T) time.Time {
	first := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	last := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).Unix()
	seconds, nanos := rapid.Int64Range(first, last).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanos")
	return time.Unix(seconds, nanos).UTC()
}

// drawContent makes some events say that they are JSON, whatever they hold.
func drawContent(t *rapid.T, e *spi.Event) {
	if len(e.Payload) == 0 || rapid.Bool().Draw(t, "plain") {
		return
	}
	if e.Metadata == nil {
		e.Metadata = map[string]string{}
	}
	e.Metadata["content-type"] = rapid.SampledFrom([]string{"application/json", "application/cloudevents+json", "text/plain"}).Draw(t, "content type")
	if rapid.Bool().Draw(t, "text") {
		e.Payload = []byte(rapid.StringN(1, -1, -1).Draw(t, "json"))
	}
}

// drawError returns a random error as it comes over the wire, with at most that
// many errors around one another.
func drawError(t *rapid.T, depth int) error {
	example := rapid.SampledFrom(slices.Concat(exampleErrors, contextErrors)).Draw(t, "error")
	if slices.Contains(contextErrors, example) {
		return example
	}
	if _, internal := errors.AsType[*spi.InternalError](example); internal {
		return &spi.InternalError{Cause: &api.IncidentError{ID: rapid.String().Draw(t, "incident")}}
	}
	err := reflect.New(reflect.TypeOf(example).Elem())
	for i := range err.Elem().NumField() {
		f := err.Elem().Field(i)
		switch {
		case f.Type() != reflect.TypeFor[error]():
			fillAll(t, f)
		case depth > 1:
			f.Set(reflect.ValueOf(drawError(t, depth-1)))
		default:
			f.Set(reflect.ValueOf(&spi.LeaseLostError{Name: "l"}))
		}
	}
	return err.Interface().(error)
}

// fillAll fills also what a request has off the wire: an operator's error tells of
// routes.
func fillAll(t *rapid.T, v reflect.Value) {
	if v.Type() == reflect.TypeFor[spi.Route]() {
		v.Set(reflect.ValueOf(spi.Route{Slot: spi.Slot(rapid.Uint16().Draw(t, "slot")), Epoch: rapid.Int64().Draw(t, "epoch")}))
		return
	}
	fill(t, v)
}
