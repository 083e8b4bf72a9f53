package faults

import (
	"errors"
	"reflect"
	"testing"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/spi"
)

var errPlanned = errors.New("planned")

func TestAPlanHearsOfEveryMethodByItsNameWithItsRequest(t *testing.T) {
	inner, err := memory.New()
	if err != nil {
		t.Fatal(err)
	}
	var last Call
	f := &faults{inner: inner, calls: map[string]int{}, plan: func(c Call) Fault {
		last = c
		return Fault{Refuse: errPlanned}
	}}
	for m := range reflect.TypeFor[spi.Decorator]().Methods() {
		if m.Name == "Caps" || m.Name == "Layer" {
			continue
		}
		answer := reflect.ValueOf(f).MethodByName(m.Name).Call([]reflect.Value{reflect.ValueOf(t.Context()), reflect.Zero(m.Type.In(1))})
		err, _ := answer[1].Interface().(error)
		if last.Method != m.Name || last.N != 1 || !errors.Is(err, errPlanned) {
			t.Errorf("%s is call %d of %q and answers %v", m.Name, last.N, last.Method, err)
		}
		if reflect.TypeOf(last.Request) != m.Type.In(1) {
			t.Errorf("%s has a %T", m.Name, last.Request)
		}
	}
}
