package crypto_test

import (
	"testing"

	"github.com/loomgate/loomgate/decorators/crypto"
	"github.com/loomgate/loomgate/spi"
)

// older is a rig with an execution that was written before there was the layer.
func older(t *testing.T, allowed bool) (r *rig, first spi.Event) {
	r = newRig(t)
	r.opts.AllowUnencrypted = allowed
	first = noted("readable")
	r.append(r.inner, "e", 0, first)
	return r, first
}

func TestWhatWasWrittenUnencryptedIsRefused(t *testing.T) {
	r, first := older(t, false)
	s := r.node()
	_, err := r.read(s, "e")
	want[*crypto.UnencryptedError](t, err)
	for _, head := range []int64{0, 1, spi.AnyHead} {
		_, err := spi.Append(t.Context(), s, spi.AppendRequest{Execution: "e", ExpectedHead: head, Events: []spi.Event{noted("more")}})
		if got := *want[*crypto.UnencryptedError](t, err); got.Execution != "e" {
			t.Errorf("it answers %+v", got)
		}
	}
	_, err = spi.CopyPrefix(t.Context(), s, spi.CopyPrefixRequest{From: "e", To: "f", N: 1})
	want[*crypto.UnencryptedError](t, err)
	again := must[spi.AppendResponse](t)(spi.Append(t.Context(), s, spi.AppendRequest{Execution: "e", Events: []spi.Event{first}}))
	if !again.Duplicate {
		t.Error("what was acknowledged is not recognised")
	}
	if head := must[spi.HeadResponse](t)(spi.Head(t.Context(), s, spi.HeadRequest{Execution: "e"})).Head; head != 1 {
		t.Errorf("the head is %d", head)
	}
}

func TestWhatWasWrittenUnencryptedGoesOnIfThatIsAllowed(t *testing.T) {
	r, _ := older(t, true)
	s := r.node()
	r.wantRead(s, "e", "readable")
	r.append(s, "e", 1, noted("also readable"))
	r.append(s, "e", 2, noted("and this"))
	r.wantRead(s, "e", "readable", "also readable", "and this")
	r.wantRead(r.inner, "e", "readable", "also readable", "and this")
	// A copy is encrypted, and so is what is new.
	must[spi.CopyPrefixResponse](t)(spi.CopyPrefix(t.Context(), s, spi.CopyPrefixRequest{From: "e", To: "f", N: 2}))
	r.append(s, "g", 0, noted("new"))
	r.wantRead(s, "f", "readable", "also readable")
	if string(r.sealedEvent("f", 1).Payload) == "readable" || string(r.sealedEvent("g", 1).Payload) == "new" {
		t.Error("they are readable")
	}
}

// TestAnotherIncarnationIsNotWrittenUnencrypted where a writer means one to come.
func TestAnotherIncarnationIsNotWrittenUnencrypted(t *testing.T) {
	r, _ := older(t, true)
	s := r.node()
	for range 2 { // before the layer knows the execution, and after
		_, err := spi.Append(t.Context(), s, spi.AppendRequest{Execution: "e", ExpectedHead: spi.AnyHead, Incarnation: 2, Events: []spi.Event{noted("secret")}})
		if got := want[*spi.IncarnationError](t, err); got.Current != 1 {
			t.Errorf("it answers %+v", got)
		}
		must[spi.AppendResponse](t)(spi.Append(t.Context(), s, spi.AppendRequest{Execution: "e", ExpectedHead: spi.AnyHead, Incarnation: 1, Events: []spi.Event{noted("readable")}}))
	}
	if head := must[spi.HeadResponse](t)(spi.Head(t.Context(), s, spi.HeadRequest{Execution: "e"})).Head; head != 3 {
		t.Errorf("the head is %d", head)
	}
}

// TestTheNextIncarnationIsEncrypted although a node remembers that the last was not.
func TestTheNextIncarnationIsEncrypted(t *testing.T) {
	for name, incarnation := range map[string]int64{"stated": 2, "not stated": 0} {
		t.Run(name, func(t *testing.T) {
			r, _ := older(t, true)
			s, other := r.node(), r.node()
			r.append(s, "e", 1, noted("more")) // remembered
			must[spi.DeleteExecutionResponse](t)(spi.DeleteExecution(t.Context(), other, spi.DeleteExecutionRequest{Execution: "e", Incarnation: 1}))
			req := spi.AppendRequest{Execution: "e", ExpectedHead: spi.AnyHead, Incarnation: incarnation, Events: []spi.Event{noted("secret")}}
			if incarnation == 0 {
				_, err := spi.Append(t.Context(), s, req)
				want[*spi.IncarnationError](t, err)
				must[spi.AppendResponse](t)(spi.Append(t.Context(), other, spi.AppendRequest{Execution: "e", Incarnation: 2, Events: []spi.Event{noted("first")}}))
			}
			must[spi.AppendResponse](t)(spi.Append(t.Context(), s, req))
			last := must[spi.HeadResponse](t)(spi.Head(t.Context(), s, spi.HeadRequest{Execution: "e"})).Head
			if string(r.sealedEvent("e", last).Payload) == "secret" {
				t.Error("it is readable")
			}
		})
	}
}
