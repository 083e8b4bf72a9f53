package events_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loomgate/loomgate/runtime/events"
	"github.com/loomgate/loomgate/spi"
)

func TestTheSchemaHasEachFieldAndNoOther(t *testing.T) {
	var schema struct {
		Defs map[string]struct {
			Required   []string       `json:"required"`
			Properties map[string]any `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(events.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	payloads := map[string]any{
		spi.KindExecutionStarted:   events.Started{},
		spi.KindExecutionSuspended: events.Suspended{},
		spi.KindExecutionResumed:   events.Resumed{},
		spi.KindMessageReceived:    events.Received{},
		spi.KindMessageConsumed:    events.Consumed{},
		"Parent":                   events.Parent{},
		"Wait":                     events.Wait{},
		"Child":                    events.Child{},
		"Woken":                    events.Woken{},
		"Outcome":                  events.Outcome{},
		"Message":                  events.Message{},
	}
	if len(schema.Defs) != len(payloads) {
		t.Errorf("%d definitions, not %d", len(schema.Defs), len(payloads))
	}
	for name, payload := range payloads {
		def, typ := schema.Defs[name], reflect.TypeOf(payload)
		if len(def.Properties) != typ.NumField() {
			t.Errorf("%s has %d properties, not %d", name, len(def.Properties), typ.NumField())
		}
		for i := range typ.NumField() {
			field, option, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if _, ok := def.Properties[field]; !ok {
				t.Errorf("%s has no %s", name, field)
			}
			if required := slices.Contains(def.Required, field); required != (option == "") {
				t.Errorf("%s of %s is required: %v", field, name, required)
			}
		}
	}
}

func TestAParkThatCannotBeWaitedForIsRefused(t *testing.T) {
	nap := events.Wait{ID: "a", Reason: events.ReasonTimer, WakeAt: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	fine := nap
	fine.WakeAt = fine.WakeAt.Add(time.Microsecond)
	for name, waits := range map[string][]events.Wait{
		"no waits":              {},
		"no id":                 {{Reason: events.ReasonExternal}},
		"an id twice":           {nap, nap},
		"no reason":             {{ID: "a"}},
		"a timer without time":  {{ID: "a", Reason: events.ReasonTimer}},
		"a time for no timer":   {{ID: "a", Reason: events.ReasonExternal, WakeAt: nap.WakeAt}},
		"a time too fine":       {fine},
		"a message of nowhere":  {{ID: "a", Reason: events.ReasonMessage}},
		"no children":           {{ID: "a", Reason: events.ReasonChildren}},
		"a child without a key": {{ID: "a", Reason: events.ReasonChildren, Children: []events.Child{{Execution: "c"}}}},
	} {
		if err := (events.Suspended{Waits: waits}).Validate(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := (events.Suspended{Waits: []events.Wait{nap}}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestAReaderIgnoresWhatANewerWriterAdds(t *testing.T) {
	event := spi.Event{Kind: spi.KindMessageReceived, Sequence: 3, Payload: []byte(`{"channel":"paid","priority":9}`)}
	if m, err := events.Decode[events.Received]("order-1", &event); err != nil || m.Channel != "paid" {
		t.Errorf("%+v %v", m, err)
	}
}

func TestAPayloadErrorNamesThePlaceAndNotThePayload(t *testing.T) {
	event := spi.Event{Kind: spi.KindMessageReceived, Sequence: 3, Payload: []byte(`{"channel":"secret`)}
	_, err := events.Decode[events.Received]("order-1", &event)
	if e, ok := errors.AsType[*events.PayloadError](err); !ok || e.Sequence != 3 || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}
