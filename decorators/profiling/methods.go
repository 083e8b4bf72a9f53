package profiling

import (
	"reflect"
	"runtime/pprof"
	"slices"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/loomgate/loomgate/spi"
)

// The labels of spans, metrics and profiles.
const (
	layerKey  = attribute.Key("loomgate.layer")
	methodKey = attribute.Key("loomgate.method")
)

func errorType(c class) attribute.KeyValue { return attribute.String("error.type", c.String()) }

// A method is what calls of one method of a layer have in common, made once so that a
// call makes nothing.
type method struct {
	span   string
	start  []trace.SpanStartOption
	labels pprof.LabelSet

	attributes []attribute.KeyValue
	byClass    []atomic.Pointer[labels]
}

// labels are a method's and a class's, as instruments take them.
type labels struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

func newMethods(layer string) map[string]*method {
	all := map[string]*method{}
	for m := range reflect.TypeFor[spi.Decorator]().Methods() {
		all[m.Name] = &method{
			span:       "loomgate." + m.Name,
			start:      []trace.SpanStartOption{trace.WithAttributes(layerKey.String(layer))},
			labels:     pprof.Labels(string(layerKey), layer, string(methodKey), m.Name),
			attributes: []attribute.KeyValue{layerKey.String(layer), methodKey.String(m.Name)},
			byClass:    make([]atomic.Pointer[labels], len(classNames)),
		}
	}
	return all
}

// labelled returns the labels of calls that ended in a class. Most classes never come
// from most methods, so each is made when it first does.
func (m *method) labelled(c class) *labels {
	if l := m.byClass[c].Load(); l != nil {
		return l
	}
	attributes := slices.Clone(m.attributes) // a set is made in place
	if c != succeeded {
		attributes = append(attributes, errorType(c))
	}
	set := metric.WithAttributeSet(attribute.NewSet(attributes...))
	l := &labels{[]metric.AddOption{set}, []metric.RecordOption{set}}
	m.byClass[c].Store(l)
	return l
}
