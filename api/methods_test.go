package api_test

import (
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/loomgate/loomgate/api"
	"github.com/loomgate/loomgate/spi"
)

// A crossing is a method with its types put aside: what each direction takes and
// returns is a pointer, or a value, of request and response.
type crossing struct {
	path              string
	request, response side
}

// A side is one of a method's two messages.
type side struct {
	value   reflect.Type // in spi
	message func() proto.Message
	encode  func(value reflect.Value) proto.Message
	decode  func(proto.Message) (reflect.Value, error)
}

func cross[Q, R, MQ, MR any](m *api.Method[Q, R, MQ, MR]) crossing {
	return crossing{m.Path, sideOf(m.EncodeRequest, m.DecodeRequest), sideOf(m.EncodeResponse, m.DecodeResponse)}
}

func sideOf[V, M any](encode func(V) *M, decode func(*M) (V, error)) side {
	return side{
		value:   reflect.TypeFor[V](),
		message: func() proto.Message { return any(new(M)).(proto.Message) },
		encode: func(v reflect.Value) proto.Message {
			return any(encode(v.Interface().(V))).(proto.Message)
		},
		decode: func(m proto.Message) (reflect.Value, error) {
			v, err := decode(any(m).(*M))
			return reflect.ValueOf(v), err
		},
	}
}

// crossings is every method; TestInStep holds it to that.
var crossings = []crossing{
	cross(api.Append), cross(api.AppendBatch), cross(api.AppendIfUnchanged), cross(api.Read), cross(api.Head),
	cross(api.ListExecutions), cross(api.AcquireFence), cross(api.AcquireFenceIf), cross(api.CopyPrefix),
	cross(api.TruncatePrefixKeeping), cross(api.DeleteExecution), cross(api.SweepTombstones),
	cross(api.ScheduleTimer), cross(api.DueTimers), cross(api.CompleteTimer),
	cross(api.PutRef), cross(api.GetRef), cross(api.DeleteRef), cross(api.ListRefs), cross(api.PromoteRef), cross(api.RefLineage),
	cross(api.AcquireLease), cross(api.RenewLease), cross(api.ReleaseLease),
	cross(api.GetOwnership), cross(api.ChangeOwnership),
}

// services is which service has the methods of which group.
var services = map[protoreflect.Name]reflect.Type{
	"EventService":     reflect.TypeFor[spi.EventMethods](),
	"TimerService":     reflect.TypeFor[spi.TimerMethods](),
	"RefService":       reflect.TypeFor[spi.RefMethods](),
	"LeaseService":     reflect.TypeFor[spi.LeaseMethods](),
	"OwnershipService": reflect.TypeFor[spi.OwnershipMethods](),
}

// besides are the services that are no group.
var besides = map[protoreflect.Name]bool{"AppendStreamService": true, "StackService": true, "AdminService": true}

// TestInStep holds the services and the methods of spi together: whoever adds a
// method there is told what else to write. Data keys are never on the wire.
func TestInStep(t *testing.T) {
	known := map[string]bool{}
	for _, c := range crossings {
		known[c.path] = true
	}
	methods := 0
	for name, group := range services {
		service := find(t, name)
		for m := range group.Methods() {
			methods++
			if service.Methods().ByName(protoreflect.Name(m.Name)) == nil {
				t.Errorf("%s has no %s", name, m.Name)
			}
			if path := "/" + string(service.FullName()) + "/" + m.Name; !known[path] {
				t.Errorf("no Method has the path %s", path)
			}
		}
		if n := service.Methods().Len(); n != group.NumMethod() {
			t.Errorf("%s has %d methods, its group %d", name, n, group.NumMethod())
		}
	}
	if all := reflect.TypeFor[spi.Decorator]().NumMethod() - 2; methods+reflect.TypeFor[spi.DataKeyMethods]().NumMethod() != all {
		t.Errorf("%d of %d methods are on the wire", methods, all)
	}
	if len(known) != methods {
		t.Errorf("%d Methods for %d methods", len(known), methods)
	}
	decorator := reflect.TypeFor[spi.Decorator]()
	eachService(func(s protoreflect.ServiceDescriptor) {
		if _, group := services[s.Name()]; !group && !besides[s.Name()] {
			t.Errorf("nobody has decided about %s", s.FullName())
		}
		for m := range methodsOf(s) {
			if _, taken := decorator.MethodByName(string(m.Name())); taken && besides[s.Name()] {
				t.Errorf("%s has spi's %s", s.FullName(), m.Name())
			}
		}
	})
}

// TestAMethodCrossesInItsOwnMessages finds a Method with another one's messages.
func TestAMethodCrossesInItsOwnMessages(t *testing.T) {
	for _, c := range crossings {
		name := protoreflect.FullName(strings.ReplaceAll(c.path[1:], "/", "."))
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
		if err != nil {
			t.Fatal(err)
		}
		m := d.(protoreflect.MethodDescriptor)
		if got := c.request.message().ProtoReflect().Descriptor(); got != m.Input() {
			t.Errorf("%s asks with %s", c.path, got.FullName())
		}
		if got := c.response.message().ProtoReflect().Descriptor(); got != m.Output() {
			t.Errorf("%s answers with %s", c.path, got.FullName())
		}
		if got := c.request.value.Name(); got != string(m.Name())+"Request" {
			t.Errorf("%s asks for %s", c.path, got)
		}
	}
}

// offTheWire are the fields that a tenant neither states nor sees.
var offTheWire = map[string]bool{"Route": true, "FromRoute": true, "KeyID": true, "KnownOwnership": true, "Receipt": true}

// TestMessagesHaveTheFieldsOfSPI finds a field that is on one side only, or under
// another name.
func TestMessagesHaveTheFieldsOfSPI(t *testing.T) {
	for _, c := range crossings {
		compareFields(t, c.request.value, c.request.message().ProtoReflect().Descriptor())
		compareFields(t, c.response.value, c.response.message().ProtoReflect().Descriptor())
	}
}

func compareFields(t *testing.T, value reflect.Type, message protoreflect.MessageDescriptor) {
	onWire := map[string]protoreflect.FieldDescriptor{}
	for i := range message.Fields().Len() {
		f := message.Fields().Get(i)
		onWire[strings.ReplaceAll(string(f.Name()), "_", "")] = f
	}
	delete(onWire, "json") // Event's other way to write Payload
	for _, f := range reflect.VisibleFields(value) {
		if f.Anonymous || !f.IsExported() || offTheWire[f.Name] {
			continue
		}
		on, found := onWire[strings.ToLower(f.Name)]
		if !found {
			t.Errorf("%s has no field for %s of %s", message.FullName(), f.Name, value)
			continue
		}
		delete(onWire, strings.ToLower(f.Name))
		inner := f.Type
		if inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		nested := on.Message() != nil && !on.IsMap() && strings.HasPrefix(string(on.Message().FullName()), "loomgate.v1.")
		if nested && inner != reflect.TypeFor[spi.AppendResult]() {
			compareFields(t, inner, on.Message())
		}
	}
	for _, f := range onWire {
		t.Errorf("%s has no field for %s", value, f.FullName())
	}
}

// TestReadsSayThatTheyAreSafe compares what a service says of its methods, for
// clients that repeat calls, with what they do.
func TestReadsSayThatTheyAreSafe(t *testing.T) {
	safe := []string{"Read", "Head", "ListExecutions", "DueTimers", "GetRef", "ListRefs", "RefLineage", "GetOwnership"}
	for name := range services {
		for m := range methodsOf(find(t, name)) {
			level := m.Options().(*descriptorpb.MethodOptions).GetIdempotencyLevel()
			if reads := slices.Contains(safe, string(m.Name())); reads != (level == descriptorpb.MethodOptions_NO_SIDE_EFFECTS) {
				t.Errorf("%s has the level %v", m.FullName(), level)
			}
		}
	}
}

func methodsOf(s protoreflect.ServiceDescriptor) iter.Seq[protoreflect.MethodDescriptor] {
	return func(yield func(protoreflect.MethodDescriptor) bool) {
		for i := range s.Methods().Len() {
			if !yield(s.Methods().Get(i)) {
				return
			}
		}
	}
}

func find(t *testing.T, name protoreflect.Name) protoreflect.ServiceDescriptor {
	t.Helper()
	d, err := protoregistry.GlobalFiles.FindDescriptorByName("loomgate.v1." + protoreflect.FullName(name))
	if err != nil {
		t.Fatal(err)
	}
	return d.(protoreflect.ServiceDescriptor)
}

func eachService(do func(protoreflect.ServiceDescriptor)) {
	protoregistry.GlobalFiles.RangeFilesByPackage("loomgate.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			do(f.Services().Get(i))
		}
		return true
	})
}
