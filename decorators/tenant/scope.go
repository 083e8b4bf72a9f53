package tenant

import (
	"errors"
	"fmt"

	"github.com/loomgate/loomgate/spi"
)

// What a name is, in errors.
const (
	executionID = "execution id"
	refName     = "ref name"
	leaseName   = "lease name"
	keyOwner    = "key owner"
	cursor      = "cursor"
	anyName     = "name"
)

// A ForeignNameError says that the shared store answered with a name that is not of
// the tenant that asked: the store does not keep to what it is asked for, or its
// names were not written through views. It does not say the name.
type ForeignNameError struct {
	What string // such as "execution id"
}

func (e *ForeignNameError) Error() string {
	return "the shared store answered with somebody else's " + e.What
}

// in puts the scope in front of a name that the tenant chose, once it is one.
func in[N ~string](v *view, what string, name *N) (err error) {
	*name, err = spi.Scoped(v.scope, what, *name)
	return err
}

// inPrefix puts the scope in front of a prefix of the tenant's names, and so also
// ends what is listed where the tenant's range ends. A prefix longer than any name
// is refused, for what is left of [spi.MaxID] is not every tenant's to know.
func (v *view) inPrefix(prefix *string) error {
	if len(*prefix) > spi.MaxOuterID {
		return &spi.InvalidArgumentError{Field: "prefix", Rule: fmt.Sprintf("has %d bytes, not 0 to %d", len(*prefix), spi.MaxOuterID)}
	}
	*prefix = v.scope.Prefix() + *prefix
	return nil
}

// inPage puts the scope in front of a listing's prefix and cursor. The empty cursor
// becomes the bare scope, which comes right before the tenant's first name.
func (v *view) inPage(prefix, after *string) error {
	*after = v.scope.Prefix() + *after
	return v.inPrefix(prefix)
}

// out takes the scope off a name that the shared store answered.
func out[N ~string](v *view, what string, name *N) error {
	outer, own := spi.Unscoped(v.scope, *name)
	if !own || outer == "" {
		return &ForeignNameError{what}
	}
	*name = outer
	return nil
}

// outNext takes the scope off the cursor of the next page, if there is one.
func (v *view) outNext(next *string) error {
	if *next == "" {
		return nil
	}
	return out(v, cursor, next)
}

// unsure is the error of a write whose answer cannot be given out: the write may
// well have happened.
func unsure(err error) error {
	if err == nil {
		return nil
	}
	return &spi.AmbiguousError{Cause: err}
}

// outError takes the scope out of an error. The bare scope is the tenant itself, as
// the owner of its keys, and has no name here.
func (v *view) outError(err error) error {
	if err == nil {
		return nil
	}
	foreign := false
	err = spi.RenameError(err, func(name string) string {
		outer, own := spi.Unscoped(v.scope, name)
		foreign = foreign || !own
		return outer
	})
	if !foreign {
		return withoutPins(err)
	}
	if _, ambiguous := errors.AsType[*spi.AmbiguousError](err); ambiguous {
		return unsure(&ForeignNameError{anyName})
	}
	return &ForeignNameError{anyName}
}
