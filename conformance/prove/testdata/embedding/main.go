// Command embedding tries decorators that embed their way out of deciding, and
// prints for each whether it was refused. All of them compile.
package main

import (
	"errors"
	"fmt"

	"github.com/loomgate/loomgate/spi"
)

// named is what a decorator still has to say for itself.
type named struct{}

func (named) Caps(inner spi.Caps) spi.Caps { return inner }
func (named) Layer() spi.Layer             { return spi.Layer{Name: "embedding"} }

type (
	// The interface: whatever it holds answers what comes.
	embedsInterface struct{ spi.Decorator }

	// The groups, one by one.
	embedsGroups struct {
		named
		spi.EventMethods
		spi.TimerMethods
		spi.RefMethods
		spi.LeaseMethods
		spi.DataKeyMethods
		spi.OwnershipMethods
	}

	// Another decorator, as a value and by a pointer.
	embedsDecorator        struct{ embedsGroups }
	embedsDecoratorPointer struct{ *embedsGroups }

	// A struct of the author's own, in which the embedding hides.
	base struct {
		note string
		spi.Decorator
	}
	embedsBase struct{ base }
)

func main() {
	inner, err := spi.Open(spi.Backend{Events: struct{ spi.EventBackend }{}})
	if err != nil {
		panic(err)
	}
	var groups embedsGroups
	for _, d := range []spi.Decorator{
		embedsInterface{groups}, groups, &groups, embedsDecorator{}, embedsDecoratorPointer{&groups}, embedsBase{base{"", groups}},
	} {
		_, err := spi.Wrap(d, inner)
		refused, ok := errors.AsType[*spi.EmbeddingError](err)
		if ok && refused.Embedded != "" {
			fmt.Printf("refused %T\n", d)
		} else {
			fmt.Printf("accepted %T (%v)\n", d, err)
		}
	}
}
