// Package small holds two decorators that are just large enough to be right: one
// that puts a tenant's scope in front of every name, and one that splits a store
// over several. The conformance kit composes them with the decorator that it
// proves, in both orders, and a reader finds in them how a decorator is written.
package small
