package spi

import "cmp"

// A Layer describes one storey of a stack: its name, and what it does to what
// passes. [Wrap] reads it to refuse unsafe orders.
type Layer struct {
	Name string

	Isolates bool // gives each tenant a view of its own
	Encrypts bool // hides payloads from what is below
	Batches  bool // makes one call of several callers' calls
	Caches   bool // answers from what it has seen
}

// hides is what the layers of a stack keep from those above it: one layer of each sort
// that is in it, or nil. A handle a request is then checked without a walk through what
// all of them share.
type hides struct{ isolation, encryption *Layer }

// under returns what a stack hides whose outermost layer is outer.
func (h hides) under(outer *Layer) hides {
	if outer.Isolates {
		h.isolation = outer
	}
	if outer.Encrypts {
		h.encryption = outer
	}
	return h
}

// and returns what two stacks hide together.
func (h hides) and(other hides) hides {
	return hides{cmp.Or(h.isolation, other.isolation), cmp.Or(h.encryption, other.encryption)}
}

// checkOrder returns a [LayerOrderError] if outer must not stand above a stack.
func (h hides) checkOrder(outer *Layer) error {
	refuse := func(inner *Layer, reason string) error { return &LayerOrderError{outer.Name, inner.Name, reason} }
	switch {
	case outer.Batches && h.isolation != nil:
		return refuse(h.isolation, "one batch would hold the calls of several tenants above their isolation")
	case outer.Caches && h.isolation != nil:
		return refuse(h.isolation, "the cache would answer one tenant with another's data")
	case outer.Caches && h.encryption != nil:
		return refuse(h.encryption, "the cache would hold in the clear what is encrypted below it")
	case outer.Encrypts && h.encryption != nil:
		return refuse(h.encryption, "both would keep their data keys in one place, and each destroy the other's")
	}
	return nil
}
