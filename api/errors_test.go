package api_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"github.com/loomgate/loomgate/api"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// exampleErrors is one error of each type, with every field filled.
var exampleErrors = []error{
	&spi.OpError{Op: "Append", Err: &spi.ConflictError{Execution: "e", Head: 3}},
	&spi.ShardError{Shard: "s", Err: &spi.ConflictError{Execution: "e", Head: 3}},
	&spi.InvalidArgumentError{Field: "limit", Rule: "is 0"},
	&spi.UnsupportedError{Cap: spi.CapAcquireFence | spi.CapRefs},
	&spi.ConflictError{Execution: "e", Head: 7, Reused: true},
	&spi.StaleFenceError{Execution: "e", Current: 2},
	&spi.IncarnationError{Execution: "e", Current: 2},
	&spi.TruncatedError{Execution: "e", Floor: 4},
	&spi.AmbiguousError{Execution: "e", Cause: context.Canceled},
	&spi.UnavailableError{Cause: context.DeadlineExceeded},
	&spi.ThrottledError{Limit: "bytes a second", RetryAfter: 1500 * time.Millisecond},
	&spi.InternalError{Cause: &api.IncidentError{ID: "i1"}},
	&spi.NotFoundError{What: "ref", Name: "r"},
	&spi.RangeError{Execution: "e", Head: 4},
	&spi.TooLargeError{Execution: "e"},
	&spi.RefVersionError{Name: "r", Current: 3},
	&spi.LeaseHeldError{Name: "l", Holder: "h", ExpiresAt: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)},
	&spi.LeaseLostError{Name: "l"},
	&spi.ShreddedError{Owner: "e"},
	&spi.KeyMismatchError{Execution: "e"},
	&spi.MisroutedError{Shard: "s", Route: spi.Route{Slot: 65535, Epoch: 3}, Epoch: 4},
	&spi.SlotMovingError{Shard: "s", Slot: 9, State: spi.SlotFrozen},
	&spi.OwnershipError{Shard: "s", Version: 3, Reason: "why"},
	&spi.CoverageError{Missing: spi.SlotSet{{First: 1, Last: 4}}, Twice: spi.SlotSet{{First: 9, Last: 65535}}},
	&spi.CompatibilityError{Group: spi.Events, Have: spi.Version{Major: 1, Minor: 2}, Want: spi.Version{Major: 2, Minor: 1}},
	&spi.LayerOrderError{Outer: "o", Inner: "i", Reason: "why"},
	&spi.EmbeddingError{Decorator: "d", Embedded: "e", Method: "Append"},
}

// contextErrors are the errors that cross beside those of spi.
var contextErrors = []error{context.Canceled, context.DeadlineExceeded}

// operator is an audience that loses no name.
var operator = api.Audience{Operator: true, Incident: func(error) string { return "i1" }}

// TestEveryErrorOfSPICrosses finds an error type, or a kind of error on the wire,
// that has no counterpart.
func TestEveryErrorOfSPICrosses(t *testing.T) {
	types, kinds := map[string]bool{}, map[protoreflect.Name]bool{}
	for _, err := range exampleErrors {
		example := reflect.ValueOf(err).Elem()
		types[example.Type().Name()] = true
		for f, v := range example.Fields() {
			if v.IsZero() {
				t.Errorf("the example of %T has no %s", err, f.Name)
			}
		}
	}
	for _, err := range slices.Concat(exampleErrors, contextErrors) {
		m := api.EncodeError(err).ProtoReflect()
		kinds[m.WhichOneof(m.Descriptor().Oneofs().ByName("kind")).Name()] = true
		if got := api.DecodeError(api.EncodeError(err)); !reflect.DeepEqual(got, err) {
			t.Errorf("%#v becomes %#v", err, got)
		}
		got, answer := api.FromStatus(api.ErrorStatus(err, operator))
		if !answer || !reflect.DeepEqual(got, err) {
			t.Errorf("%#v is answered: %t, as %#v", err, answer, got)
		}
	}
	for _, name := range errorTypes(t) {
		if !types[name] {
			t.Errorf("%s does not cross", name)
		}
	}
	fields := (&pb.Error{}).ProtoReflect().Descriptor().Oneofs().ByName("kind").Fields()
	for i := range fields.Len() {
		if !kinds[fields.Get(i).Name()] {
			t.Errorf("nothing is a %s", fields.Get(i).Name())
		}
	}
}

// errorTypes returns the names of the error types of package spi.
func errorTypes(t *testing.T) []string {
	files, err := filepath.Glob("../spi/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.Name == "Error" {
				names = append(names, fn.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name)
			}
		}
	}
	if len(names) < 20 {
		t.Errorf("only %v were found", names)
	}
	return names
}

func TestAnyErrorComesBackTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawError(t, 5)
		wire, err := proto.Marshal(api.EncodeError(want))
		if err != nil {
			t.Fatal(err)
		}
		var m pb.Error
		if err := proto.Unmarshal(wire, &m); err != nil {
			t.Fatal(err)
		}
		if got := api.DecodeError(&m); !reflect.DeepEqual(got, want) {
			t.Fatalf("%#v becomes %#v", want, got)
		}
		if m.GetMessage() != want.Error() {
			t.Fatalf("%q is told as %q", want, m.GetMessage())
		}
	})
}

// TestCodesTellOtherClientsWhatToDo is about clients that know codes only: what may
// be sent again as it is has code Unavailable, and nothing else has.
func TestCodesTellOtherClientsWhatToDo(t *testing.T) {
	again := []string{"*spi.UnavailableError", "*spi.MisroutedError", "*spi.SlotMovingError", "*spi.CoverageError"}
	for _, err := range exampleErrors {
		code := api.ErrorStatus(err, operator).Code()
		if (code == codes.Unavailable) != slices.Contains(again, fmt.Sprintf("%T", err)) || code == codes.OK {
			t.Errorf("%T has the code %v", err, code)
		}
	}
	for _, c := range []struct {
		err  error
		code codes.Code
	}{
		{&spi.AmbiguousError{Cause: &spi.UnavailableError{Cause: context.Canceled}}, codes.Unknown},
		{&spi.OpError{Op: "Append", Err: &spi.ShardError{Shard: "s", Err: &spi.ConflictError{}}}, codes.Aborted},
		{fmt.Errorf("somewhere: %w", &spi.StaleFenceError{}), codes.FailedPrecondition},
		{&spi.NotFoundError{}, codes.NotFound},
		{&spi.InvalidArgumentError{}, codes.InvalidArgument},
		{&spi.UnsupportedError{}, codes.Unimplemented},
		{context.Canceled, codes.Canceled},
		{context.DeadlineExceeded, codes.DeadlineExceeded},
		{errors.New("disk"), codes.Internal},
	} {
		if got := api.ErrorStatus(c.err, operator).Code(); got != c.code {
			t.Errorf("%v has the code %v", c.err, got)
		}
	}
}

func TestAStatusWithoutAnErrorOfOursIsNoAnswer(t *testing.T) {
	unknown := &pb.Error{}
	unknown.ProtoReflect().SetUnknown(protoreflect.RawFields{0xfa, 0x06, 0}) // field 111
	newer, err := status.New(codes.Unavailable, "newer").WithDetails(unknown)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range []*status.Status{status.New(codes.Unavailable, "503"), newer} {
		err, answer := api.FromStatus(st)
		if _, unavailable := errors.AsType[*spi.UnavailableError](err); !unavailable || answer {
			t.Errorf("%v becomes %v, an answer: %t", st, err, answer)
		}
	}
	if err, answer := api.FromStatus(status.New(codes.Canceled, "")); !errors.Is(err, context.Canceled) || answer {
		t.Errorf("%v, an answer: %t", err, answer)
	}
	if err, answer := api.FromStatus(status.New(codes.DeadlineExceeded, "")); !errors.Is(err, context.DeadlineExceeded) || answer {
		t.Errorf("%v, an answer: %t", err, answer)
	}
	if err, answer := api.FromStatus(status.New(codes.PermissionDenied, "no")); status.Code(err) != codes.PermissionDenied || answer {
		t.Errorf("%v, an answer: %t", err, answer)
	}
}

func TestAnUnknownErrorInsideAnotherIsInternal(t *testing.T) {
	err := api.DecodeError(&pb.Error{Kind: &pb.Error_Op{Op: &pb.OpError{Op: "Append"}}})
	if _, internal := errors.AsType[*spi.InternalError](err); !internal || err.Error() != "Append: internal error" {
		t.Error(err)
	}
}

func TestErrorsNestedWithoutEndEnd(t *testing.T) {
	err := error(&spi.LeaseLostError{Name: "l"})
	m := &pb.Error{Kind: &pb.Error_LeaseLost{LeaseLost: &pb.LeaseLostError{Name: "l"}}}
	for range 1000 {
		err = &spi.OpError{Op: "o", Err: err}
		m = &pb.Error{Kind: &pb.Error_Op{Op: &pb.OpError{Op: "o", Error: m}}}
	}
	if n := proto.Size(api.EncodeError(err)); n > 1000 {
		t.Errorf("it has %d bytes", n)
	}
	for _, got := range []error{api.DecodeError(api.EncodeError(err)), api.DecodeError(m)} {
		if _, found := errors.AsType[*spi.InternalError](got); !found {
			t.Errorf("it is %.100v", got)
		}
	}
}
