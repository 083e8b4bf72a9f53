package api_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/loomgate/loomgate/api"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// texts are JSON texts of which a detour over a parsed value loses something.
var texts = []string{
	`{"n":12345678901234567890.10,"big":1e400,"small":0.1000}`,
	`{"z":1,"a":2,"z":3}`,
	" {\n\t\"space\" :  [ 1 ,2]\r\n} ",
	`"é\u00e9\ud83d\ude00😀\/\u0000"`,
	`"\ud800"`,
	`null`, `0`, `-0`, `[]`, `""`,
}

// sent returns what an append with that event is to spi.
func sent(e *pb.Event) (spi.Event, error) {
	req, err := api.Append.DecodeRequest(&pb.AppendRequest{Execution: "e", Events: []*pb.Event{e}})
	if err != nil {
		return spi.Event{}, err
	}
	return req.Events[0], nil
}

// received returns how a read shows an event.
func received(e spi.Event) *pb.Event {
	return api.Read.EncodeResponse(spi.ReadResponse{Events: []spi.Event{e}}).GetEvents()[0]
}

func TestJSONTextComesBackAsItWas(t *testing.T) {
	for _, text := range texts {
		e, err := sent(&pb.Event{Kind: "k", Content: &pb.Event_Json{Json: text}})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if string(e.Payload) != text {
			t.Errorf("%s is stored as %s", text, e.Payload)
		}
		if got := received(e).GetJson(); got != text {
			t.Errorf("%s comes back as %s", text, got)
		}
	}
}

func TestBytesComeBackAsBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Map(rapid.SampledFrom(texts), func(s string) []byte { return []byte(s) })).Draw(t, "payload")
		e, err := sent(&pb.Event{Kind: "k", Content: &pb.Event_Payload{Payload: want}})
		if err != nil {
			t.Fatal(err)
		}
		back := received(e)
		if got := back.GetPayload(); string(got) != string(want) || back.GetJson() != "" {
			t.Fatalf("%q comes back as %v", want, back)
		}
	})
}

func TestWhatIsNoJSONTextIsRefused(t *testing.T) {
	for _, text := range []string{"", " ", "{", `{"a":1,}`, "NaN", "01", "1 2", "'a'", "\ufeff1", "\"\x01\"", strings.Repeat("[", 20_000)} {
		_, err := sent(&pb.Event{Kind: "k", Content: &pb.Event_Json{Json: text}})
		if refused, ok := errors.AsType[*spi.InvalidArgumentError](err); !ok || refused.Field != "events[0].json" {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

func TestAContentTypeIsNotChanged(t *testing.T) {
	for given, want := range map[string]string{"application/cloudevents+json": "application/cloudevents+json", "": "application/json"} {
		m := &pb.Event{Kind: "k", Content: &pb.Event_Json{Json: "1"}}
		if given != "" {
			m.Metadata = map[string]string{"content-type": given}
		}
		e, err := sent(m)
		if err != nil || e.Metadata["content-type"] != want || received(e).GetJson() != "1" {
			t.Errorf("%q becomes %v, %v", given, e.Metadata, err)
		}
	}
	_, err := sent(&pb.Event{Kind: "k", Metadata: map[string]string{"content-type": "text/plain"}, Content: &pb.Event_Json{Json: "1"}})
	if refused, ok := errors.AsType[*spi.InvalidArgumentError](err); !ok || refused.Field != "events[0].metadata" {
		t.Errorf("text/plain: %v", err)
	}
}

// TestAStoreThatIsRemoteChecksNoPayload is about a payload that says to be JSON and is
// not: a backend takes any bytes.
func TestAStoreThatIsRemoteChecksNoPayload(t *testing.T) {
	want := []spi.Event{{ID: spi.NewEventID(), Kind: "k", Metadata: map[string]string{"content-type": "application/json"}, Payload: []byte("{")}}
	got, err := api.Append.DecodeRequest(api.Append.EncodeRequest(spi.AppendRequest{Execution: "e", Events: want}))
	if err != nil || !reflect.DeepEqual(got.Events, want) {
		t.Errorf("%+v, %v", got.Events, err)
	}
}

func TestAnEventIDIsUUIDText(t *testing.T) {
	id := spi.NewEventID()
	for text, want := range map[string]spi.EventID{id.String(): id, strings.ToUpper(id.String()): id, "": {}} {
		if e, err := sent(&pb.Event{Id: text}); err != nil || e.ID != want {
			t.Errorf("%q becomes %v, %v", text, e.ID, err)
		}
	}
	for _, text := range []string{"x", id.String()[1:], id.String() + "0", "{" + id.String()[1:], strings.ReplaceAll(id.String(), "-", "0"), strings.Repeat("-", 36), "g" + id.String()[1:], id.String()[:35] + "é"[:1]} {
		_, err := sent(&pb.Event{Id: text})
		if refused, ok := errors.AsType[*spi.InvalidArgumentError](err); !ok || refused.Field != "events[0].id" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAFaultInABatchNamesItsPlace(t *testing.T) {
	_, err := api.AppendBatch.DecodeRequest(&pb.AppendBatchRequest{Appends: []*pb.AppendRequest{
		{Events: []*pb.Event{{}}},
		{Events: []*pb.Event{{}, {Id: "x"}}},
	}})
	if refused, ok := errors.AsType[*spi.InvalidArgumentError](err); !ok || refused.Field != "appends[1].events[1].id" {
		t.Error(err)
	}
}

// TestJSONIsWhatTheStandardLibrarySays keeps the texts above honest.
func TestJSONIsWhatTheStandardLibrarySays(t *testing.T) {
	for _, text := range texts {
		if !json.Valid([]byte(text)) {
			t.Errorf("%s is no JSON text", text)
		}
	}
}

func TestATimeOrDurationThatGoDoesNotHoldIsRefused(t *testing.T) {
	_, err := sent(&pb.Event{RecordedAt: &timestamppb.Timestamp{Seconds: 1 << 60}})
	if refused, ok := errors.AsType[*spi.InvalidArgumentError](err); !ok || refused.Field != "events[0].recordedAt" {
		t.Error(err)
	}
	for _, d := range []*durationpb.Duration{{Seconds: 1 << 40}, {Seconds: -1 << 40}, {Seconds: 1, Nanos: -1}} {
		_, err := api.SweepTombstones.DecodeRequest(&pb.SweepTombstonesRequest{OlderThan: d})
		if refused, ok := errors.AsType[*spi.InvalidArgumentError](err); !ok || refused.Field != "older than" {
			t.Errorf("%v: %v", d, err)
		}
	}
}
