package api_test

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// TestWhatIsEncodedComesBackTheSame sends every request and every response through
// the bytes of both encodings.
func TestWhatIsEncodedComesBackTheSame(t *testing.T) {
	for _, c := range crossings {
		for _, s := range []side{c.request, c.response} {
			t.Run(s.value.Name(), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					want := draw(t, s.value)
					m := s.encode(want)
					for name, travel := range travels {
						arrived := s.message()
						if err := travel(m, arrived); err != nil {
							t.Fatalf("as %s: %v", name, err)
						}
						got, err := s.decode(arrived)
						if err != nil {
							t.Fatalf("as %s: %v", name, err)
						}
						if !reflect.DeepEqual(got.Interface(), want.Interface()) {
							t.Fatalf("as %s\n %+v\nbecomes\n %+v", name, want, got)
						}
					}
				})
			})
		}
	}
}

var travels = map[string]func(from, to proto.Message) error{
	"protobuf": func(from, to proto.Message) error {
		wire, err := proto.Marshal(from)
		if err != nil {
			return err
		}
		return proto.Unmarshal(wire, to)
	},
	"JSON": func(from, to proto.Message) error {
		wire, err := protojson.Marshal(from)
		if err != nil {
			return err
		}
		return protojson.Unmarshal(wire, to)
	},
}
