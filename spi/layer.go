package spi

// A Layer describes one storey of a stack: its name, and what it does to what
// passes. [Wrap] reads it to refuse unsafe orders.
type Layer struct {
	Name string

	Isolates bool // gives each tenant a view of its own
	Encrypts bool // hides payloads from what is below
	Batches  bool // makes one call of several callers' calls
	Caches   bool // answers from what it has seen
}

// checkOrder returns a [LayerOrderError] if outer must not stand above inner.
func checkOrder(outer, inner Layer) error {
	switch {
	case outer.Batches && inner.Isolates:
		return &LayerOrderError{outer.Name, inner.Name, "one batch would hold the calls of several tenants above their isolation"}
	case outer.Caches && inner.Isolates:
		return &LayerOrderError{outer.Name, inner.Name, "the cache would answer one tenant with another's data"}
	case outer.Caches && inner.Encrypts:
		return &LayerOrderError{outer.Name, inner.Name, "the cache would hold in the clear what is encrypted below it"}
	case outer.Encrypts && inner.Encrypts:
		return &LayerOrderError{outer.Name, inner.Name, "both would keep their data keys in one place, and each destroy the other's"}
	}
	return nil
}
