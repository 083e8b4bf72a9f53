package faults

import (
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// A Call is what the store is asked to do.
type Call struct {
	Method string // of package spi, such as "Append"

	// Name is what the call is about: an execution, of a copy the target; a ref, a
	// lease or a key's owner; of a listing the prefix. A batch has none.
	Name string

	N       int // it is the N-th call of the method, from 1
	Request any // the method's request, such as spi.AppendRequest
}

// A Plan decides what goes wrong with a call. It is asked about one call at a time.
type Plan func(Call) Fault

// A Fault is what goes wrong with a call, in the order of its fields. The zero Fault
// is nothing.
type Fault struct {
	// Delay lets the call wait so long first.
	Delay time.Duration

	// Hold holds the call before it is done.
	Hold *Gate

	// Hang lets the call wait until its context is done, and answers with the
	// context's error. It is not done.
	Hang bool

	// Refuse is answered, and the call is not done.
	Refuse error

	// HoldAnswer holds the answer when the call is done. If the context ends
	// meanwhile, it is lost.
	HoldAnswer *Gate

	// Lose does the call and loses what it has done: where it succeeds, a write
	// answers with an [spi.AmbiguousError] that has Lose as its cause, for each append
	// of a batch, and a read with an [spi.UnavailableError]. Errors come through: to
	// lose one, let Refuse be ambiguous.
	Lose error

	// Whole makes a lost batch one ambiguous error of the call.
	Whole bool

	// Only confines Refuse and Lose to some appends of a batch. The others are done
	// and answered.
	Only func(spi.ExecutionID) bool

	// Page is what becomes of the page that the call answers with.
	Page Page
}

// A Page is what becomes of a page: of executions, events, refs, keys or timers.
type Page int

const (
	// PageAsItIs leaves the page alone.
	PageAsItIs Page = iota

	// PageShort is the first half of the page and says that there is more, which
	// any store may answer. A page of one stays.
	PageShort

	// PageLieReversed is a lie: the page with its last item first. The cursor stays.
	PageLieReversed

	// PageLieEnded is a lie: the first half of the page, without a word of the rest.
	PageLieEnded
)

// Only confines a plan to some calls.
func (p Plan) Only(hits func(Call) bool) Plan {
	return func(c Call) Fault {
		if !hits(c) {
			return Fault{}
		}
		return p(c)
	}
}

// A Step is what goes wrong with the N-th call of a method.
type Step struct {
	Method string
	N      int // from 1
	Fault  Fault
}

// Script plans a fault for each step. Of two steps about one call the first counts.
func Script(steps ...Step) Plan {
	return func(c Call) Fault {
		for _, s := range steps {
			if s.Method == c.Method && s.N == c.N {
				return s.Fault
			}
		}
		return Fault{}
	}
}

// Err is the cause of the faults that [Random] plans.
var Err = errors.New("a planned fault")

// Rates say how often something goes wrong, from 0 (never) to 1. A call that is
// refused is not lost: the two together are at most 1.
type Rates struct {
	Refuse   float64 // an UnavailableError, and nothing done
	Lose     float64 // the answer
	Delay    float64
	MaxDelay time.Duration // of a delay, which is anything up to it
}

// Random plans faults at random. What becomes of the N-th call of a method depends on
// the seed, the method and N, and on nothing else.
func Random(seed uint64, rates Rates) Plan {
	return func(c Call) Fault {
		method := fnv.New64a()
		method.Write([]byte(c.Method))
		random := rand.New(rand.NewPCG(seed^method.Sum64(), uint64(c.N)))
		var f Fault
		switch dice := random.Float64(); {
		case dice < rates.Refuse:
			f.Refuse = &spi.UnavailableError{Cause: Err}
		case dice < rates.Refuse+rates.Lose:
			f.Lose = Err
		}
		if rates.MaxDelay > 0 && random.Float64() < rates.Delay {
			f.Delay = time.Duration(random.Int64N(int64(rates.MaxDelay))) + 1
		}
		return f
	}
}
