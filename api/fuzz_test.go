package api_test

import (
	"errors"
	"reflect"
	"testing"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/loomgate/loomgate/api"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// FuzzDecodeRequest gives every method what its peer may send: it is refused with a
// field and a rule, or means the same once encoded again.
func FuzzDecodeRequest(f *testing.F) {
	fuzzDecode(f, func(c crossing) side { return c.request })
}

// FuzzDecodeResponse is the same of answers.
func FuzzDecodeResponse(f *testing.F) {
	fuzzDecode(f, func(c crossing) side { return c.response })
}

func fuzzDecode(f *testing.F, pick func(crossing) side) {
	for i, c := range crossings {
		s := pick(c)
		wire, err := proto.Marshal(s.encode(reflect.New(s.value).Elem()))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(i), wire)
	}
	event, err := proto.Marshal(&pb.AppendRequest{Execution: "e", Events: []*pb.Event{{Id: spi.NewEventID().String(), Kind: "k", Content: &pb.Event_Json{Json: "{}"}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(byte(0), event)
	f.Fuzz(func(t *testing.T, which byte, wire []byte) {
		s := pick(crossings[int(which)%len(crossings)])
		m := s.message()
		if proto.Unmarshal(wire, m) != nil {
			return
		}
		v, err := s.decode(m)
		if err != nil {
			if _, ok := errors.AsType[*spi.InvalidArgumentError](err); !ok {
				t.Fatalf("%v is refused with %v", m, err)
			}
			return
		}
		// Times that are out of range, or empty but there, do not look the same again;
		// once decoded, they do.
		again, err := s.decode(s.encode(v))
		if err != nil {
			t.Fatalf("%+v does not cross again: %v", v, err)
		}
		if twice, err := s.decode(s.encode(again)); err != nil || !reflect.DeepEqual(twice.Interface(), again.Interface()) {
			t.Fatalf("%+v becomes %+v, %v", again, twice, err)
		}
	})
}

// FuzzFromStatus gives a client any status.
func FuzzFromStatus(f *testing.F) {
	for _, err := range exampleErrors {
		wire, err := proto.Marshal(api.EncodeError(err))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(int32(2), "type.googleapis.com/loomgate.v1.Error", wire)
	}
	f.Fuzz(func(t *testing.T, code int32, name string, wire []byte) {
		st := status.FromProto(&spb.Status{Code: code, Details: []*anypb.Any{{TypeUrl: name, Value: wire}}})
		if st.Code() == 0 {
			return
		}
		err, answer := api.FromStatus(st)
		if err == nil {
			t.Fatal("a failed call has no error")
		}
		_ = err.Error()
		again, _ := api.FromStatus(api.ErrorStatus(err, operator))
		if answer && again.Error() != err.Error() {
			t.Fatalf("%v becomes %v", err, again)
		}
	})
}
