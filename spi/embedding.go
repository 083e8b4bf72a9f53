package spi

import (
	"reflect"
	"sync"
)

// embeddingChecked caches checkEmbedding: reflect.Type to error, or to nil.
var embeddingChecked sync.Map

// checkEmbedding returns an [EmbeddingError] if a decorator's type has an embedded
// field with a method of the interface. Such a field would answer a method that
// the decorator never decided about, and keep doing so for every method to come.
func checkEmbedding(decorator reflect.Type) error {
	if err, ok := embeddingChecked.Load(decorator); ok {
		if err == nil {
			return nil
		}
		return err.(error)
	}
	err := findEmbedding(decorator, decorator, map[reflect.Type]bool{})
	if err == nil {
		embeddingChecked.Store(decorator, nil)
		return nil
	}
	embeddingChecked.Store(decorator, err)
	return err
}

// findEmbedding looks into what t embeds, and once into what embeds itself.
func findEmbedding(decorator, t reflect.Type, seen map[reflect.Type]bool) error {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return nil
	}
	seen[t] = true
	for i := range t.NumField() {
		field := t.Field(i)
		if !field.Anonymous {
			continue
		}
		set := field.Type
		if set.Kind() != reflect.Pointer && set.Kind() != reflect.Interface {
			set = reflect.PointerTo(set) // also the methods of the pointer are promoted
		}
		for m := range reflect.TypeFor[methods]().Methods() {
			if _, has := set.MethodByName(m.Name); has {
				return &EmbeddingError{decorator.String(), field.Type.String(), m.Name}
			}
		}
		if err := findEmbedding(decorator, field.Type, seen); err != nil {
			return err
		}
	}
	return nil
}
