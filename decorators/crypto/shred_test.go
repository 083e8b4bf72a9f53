package crypto_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/decorators/crypto"
	"github.com/loomgate/loomgate/spi"
)

const life = crypto.DefaultCacheLife

// lagging is a replica that does not show what happens after it is frozen.
func (r *rig) lagging(id spi.ExecutionID) (node *spi.Store, freeze func()) {
	r.Helper()
	var frozen *spi.ReadResponse
	s := r.nodeOver(&below{read: func(res *spi.ReadResponse) {
		if frozen != nil {
			*res = *frozen
			res.Events = slices.Clone(res.Events)
		}
	}})
	return s, func() {
		res := must[spi.ReadResponse](r)(spi.Read(r.Context(), r.inner, spi.ReadRequest{Execution: id, Limit: 100}))
		frozen = &res
	}
}

// TestAfterAnAcknowledgedShredNoNodeDecrypts lets a second node read on from a replica
// that lags: with the key that it has in memory, until the key's life ends.
func TestAfterAnAcknowledgedShredNoNodeDecrypts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		const id = "4:acme/order-1"
		first := r.node()
		r.append(first, id, 0, noted("secret"))
		second, freeze := r.lagging(id)
		r.wantRead(second, id, "secret")
		freeze()
		begun := time.Now()
		acknowledged := make(chan error)
		go func() { acknowledged <- r.keys().ShredExecution(t.Context(), id) }()
		synctest.Wait() // the key is destroyed

		_, err := r.read(first, id)
		want[*spi.ShreddedError](t, err) // the store tells
		time.Sleep(life - 1)
		r.wantRead(second, id, "secret") // as stated: within its life
		select {
		case err := <-acknowledged:
			t.Errorf("it is acknowledged after %v (%v)", time.Since(begun), err)
		default:
		}
		if err := <-acknowledged; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took < life || took > 2*life {
			t.Errorf("it is acknowledged after %v", took)
		}
		for _, node := range []*spi.Store{first, second, r.node()} {
			_, err := r.read(node, id)
			if got := *want[*spi.ShreddedError](t, err); got != (spi.ShreddedError{Owner: id}) {
				t.Errorf("it answers %+v", got)
			}
		}
	})
}

func TestAKeyLeavesMemoryAtTheEndOfItsLifeAndNotLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.append(r.node(), "e", 0, noted("secret"))
		node, freeze := r.lagging("e")
		r.wantRead(node, "e", "secret")
		freeze()
		must[spi.DestroyDataKeyResponse](t)(spi.DestroyDataKey(t.Context(), r.inner, spi.DestroyDataKeyRequest{Owner: "e", Version: 1}))
		for range 10 { // use does not lengthen it
			time.Sleep(life/10 - 1)
			r.wantRead(node, "e", "secret")
		}
		time.Sleep(10 * time.Nanosecond)
		_, err := r.read(node, "e")
		want[*spi.ShreddedError](t, err)
	})
}

// TestNoAppendUnderAKeyInMemoryIsAcknowledgedAfterAShred needs no life to end: the store
// refuses the key.
func TestNoAppendUnderAKeyInMemoryIsAcknowledgedAfterAShred(t *testing.T) {
	r := newRig(t)
	s := r.node()
	sent := spi.AppendRequest{Execution: "e", Events: []spi.Event{noted("secret")}}
	must[spi.AppendResponse](t)(spi.Append(t.Context(), s, sent))
	must[spi.DestroyDataKeyResponse](t)(spi.DestroyDataKey(t.Context(), r.inner, spi.DestroyDataKeyRequest{Owner: "e", Version: 1}))
	for _, node := range []*spi.Store{s, r.node()} {
		for _, head := range []int64{0, 1, spi.AnyHead} {
			_, err := spi.Append(t.Context(), node, spi.AppendRequest{Execution: "e", ExpectedHead: head, Events: []spi.Event{noted("more")}})
			want[*spi.ShreddedError](t, err)
		}
		_, err := spi.AppendIfUnchanged(t.Context(), node, spi.AppendIfUnchangedRequest{Execution: "e", Head: 1, Events: []spi.Event{noted("more")}})
		want[*spi.ShreddedError](t, err)
		res := must[spi.AppendBatchResponse](t)(spi.AppendBatch(t.Context(), node, spi.AppendBatchRequest{Appends: []spi.AppendRequest{
			{Execution: "e", ExpectedHead: 1, Events: []spi.Event{noted("more")}},
			{Execution: "f", ExpectedHead: spi.AnyHead, Events: []spi.Event{noted("other")}},
		}}))
		want[*spi.ShreddedError](t, res.Results[0].Err)
		if res.Results[1].Err != nil {
			t.Errorf("another append of the batch answers %v", res.Results[1].Err)
		}
		// What was acknowledged before stays acknowledged, whoever asks.
		again := must[spi.AppendResponse](t)(spi.Append(t.Context(), node, sent))
		if !again.Duplicate || again.FirstSeq != 1 {
			t.Errorf("a retry answers %+v", again)
		}
		_, err = spi.CopyPrefix(t.Context(), node, spi.CopyPrefixRequest{From: "e", To: "g", N: 1})
		want[*spi.ShreddedError](t, err)
	}
	if head := must[spi.HeadResponse](t)(spi.Head(t.Context(), r.inner, spi.HeadRequest{Execution: "e"})).Head; head != 1 {
		t.Errorf("the head is %d", head)
	}
}

// TestAShredAndAppendsRace counts what was acknowledged.
func TestAShredAndAppendsRace(t *testing.T) {
	r := newRig(t)
	r.opts.CacheLife = time.Hour // the store has to refuse
	for round := range 20 {
		id := spi.ExecutionID(fmt.Sprintf("e%d", round))
		nodes := []*spi.Store{r.node(), r.node()}
		r.append(nodes[0], id, 0, noted("first"))
		var work sync.WaitGroup
		acknowledged := make([]int, len(nodes))
		for i, node := range nodes {
			work.Go(func() {
				for range 200 {
					_, err := spi.Append(t.Context(), node, spi.AppendRequest{Execution: id, ExpectedHead: spi.AnyHead, Events: []spi.Event{noted("more")}})
					if err != nil {
						if !errors.As(err, new(*spi.ShreddedError)) {
							t.Error(err)
						}
						return
					}
					acknowledged[i]++
				}
			})
		}
		must[spi.DestroyDataKeyResponse](t)(spi.DestroyDataKey(t.Context(), r.inner, spi.DestroyDataKeyRequest{Owner: spi.KeyOwner(id), Version: 1}))
		at := must[spi.HeadResponse](t)(spi.Head(t.Context(), r.inner, spi.HeadRequest{Execution: id})).Head
		work.Wait()
		end := must[spi.HeadResponse](t)(spi.Head(t.Context(), r.inner, spi.HeadRequest{Execution: id})).Head
		if stored := int64(1 + acknowledged[0] + acknowledged[1]); at != end || stored != end {
			t.Errorf("the head is %d when the key is destroyed and %d in the end; %d events are acknowledged", at, end, stored)
		}
	}
}

func TestAShredThatIsCutOffPromisesNothingAndMayBeRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.append(r.node(), "e", 0, noted("secret"))
		ctx, cancel := context.WithTimeout(t.Context(), life/2)
		defer cancel()
		if err := r.keys().ShredExecution(ctx, "e"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it answers %v", err)
		}
		begun := time.Now()
		if err := r.keys().ShredExecution(t.Context(), "e"); err != nil || time.Since(begun) < life {
			t.Errorf("again, it answers %v after %v", err, time.Since(begun))
		}
	})
}

func TestOnlyWhatHasAKeyIsShredded(t *testing.T) {
	r := newRig(t)
	must[spi.AppendResponse](t)(spi.Append(t.Context(), r.inner, spi.AppendRequest{Execution: "plain", Events: []spi.Event{noted("readable")}}))
	want[*spi.NotFoundError](t, r.keys().ShredExecution(t.Context(), "absent"))
	if got := *want[*crypto.UnencryptedError](t, r.keys().ShredExecution(t.Context(), "plain")); got.Execution != "plain" {
		t.Errorf("it answers %+v", got)
	}
	_, err := r.keys().ShredTenant(t.Context(), "acme")
	want[*spi.NotFoundError](t, err)
	_, err = r.keys().ShredTenant(t.Context(), "")
	want[*spi.InvalidArgumentError](t, err)
}

func TestACopyOutlivesTheShredOfItsSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		s := r.node()
		r.append(s, "from", 0, noted("one"), noted("two"), noted("three"))
		copied := must[spi.CopyPrefixResponse](t)(spi.CopyPrefix(t.Context(), s, spi.CopyPrefixRequest{From: "from", To: "to", N: 2}))
		if copied.Head != 2 {
			t.Errorf("it answers %+v", copied)
		}
		if a, b := r.sealedEvent("from", 1), r.sealedEvent("to", 1); a.ID != b.ID || slices.Equal(a.Payload, b.Payload) {
			t.Error("the copy is not encrypted anew")
		}
		if r.dataKey("from", 1).ID == r.dataKey("to", 1).ID {
			t.Error("the copy has its source's key")
		}
		if err := r.keys().ShredExecution(t.Context(), "from"); err != nil {
			t.Fatal(err)
		}
		r.wantRead(r.node(), "to", "one", "two")
		_, err := r.read(r.node(), "from")
		want[*spi.ShreddedError](t, err)
	})
}

// TestAShreddedTenantIsGoneOnEveryNodeAndItsNeighboursAreNot also meets what is written
// while the shred is under way.
func TestAShreddedTenantIsGoneOnEveryNodeAndItsNeighboursAreNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		nodes := []*spi.Store{r.node(), r.node()}
		for i := range 20 {
			for _, tenant := range []string{"4:acme/", "4:bolt/", ""} {
				r.append(nodes[i%2], spi.ExecutionID(fmt.Sprintf("%sorder-%d", tenant, i)), 0, noted("secret"))
			}
		}
		must[int64](t)(r.keys().RotateTenant(t.Context(), "acme"))
		begun := time.Now()
		var report crypto.Report
		acknowledged := make(chan error)
		go func() {
			var err error
			report, err = r.keys().ShredTenant(t.Context(), "acme")
			acknowledged <- err
		}()
		synctest.Wait() // the tenant's keys are destroyed; nodes have them in memory
		r.append(nodes[0], "4:acme/late", 0, noted("secret"))
		starting := r.node() // which has not
		_, read := r.read(starting, "4:acme/order-7")
		_, appended := spi.Append(t.Context(), starting, spi.AppendRequest{Execution: "4:acme/new", Events: []spi.Event{noted("more")}})
		for _, err := range []error{read, appended} {
			want[*spi.ShreddedError](t, err)
		}
		if err := <-acknowledged; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took < 2*life {
			t.Errorf("it is acknowledged after %v", took)
		}
		if !report.Undecryptable() || report.Executions[crypto.Shredded] != 21 || len(report.TenantKeys) != 0 {
			t.Errorf("it reports %+v", report)
		}
		left := must[spi.ListDataKeysResponse](t)(spi.ListDataKeys(t.Context(), r.inner, spi.ListDataKeysRequest{Prefix: "4:acme/", Limit: 100}))
		if len(left.Keys) != 0 {
			t.Errorf("left are %d keys, the first of them %q", len(left.Keys), left.Keys[0].Owner)
		}
		for _, node := range append(nodes, r.node()) {
			for _, id := range []spi.ExecutionID{"4:acme/order-7", "4:acme/late"} {
				_, err := r.read(node, id)
				if got := want[*spi.ShreddedError](t, err); got.Owner != spi.KeyOwner(id) {
					t.Errorf("it answers %+v", got)
				}
			}
			_, err := spi.Append(t.Context(), node, spi.AppendRequest{Execution: "4:acme/new", Events: []spi.Event{noted("more")}})
			if got := want[*spi.ShreddedError](t, err); got.Owner != "4:acme/new" {
				t.Errorf("a new execution answers %+v", got)
			}
			r.wantRead(node, "4:bolt/order-7", "secret")
			r.wantRead(node, "order-7", "secret")
		}
		_, err := r.keys().RotateTenant(t.Context(), "acme")
		want[*spi.ShreddedError](t, err)
		if _, err := r.keys().ShredTenant(t.Context(), "acme"); err != nil {
			t.Errorf("again, it answers %v", err)
		}
	})
}

// TestTheDefaultTenantIsShreddedByItself owns all names that no scope made.
func TestTheDefaultTenantIsShreddedByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		s := r.node()
		for _, id := range []spi.ExecutionID{"order-1", "zzz", "4:acme/order-1"} {
			r.append(s, id, 0, noted("secret"))
		}
		report := must[crypto.Report](t)(r.keys().ShredTenant(t.Context(), crypto.DefaultTenant))
		if report.Executions[crypto.Shredded] != 2 || !report.Undecryptable() {
			t.Errorf("it reports %+v", report)
		}
		r.wantRead(s, "4:acme/order-1", "secret")
		_, err := r.read(s, "zzz")
		want[*spi.ShreddedError](t, err)
	})
}

func TestAReportTellsWhatIsLeft(t *testing.T) {
	r := newRig(t)
	s := r.node()
	for _, id := range []spi.ExecutionID{"4:acme/kept", "4:acme/shredded", "4:acme/lost", "4:bolt/kept"} {
		r.append(s, id, 0, noted("secret"))
	}
	must[spi.AppendResponse](t)(spi.Append(t.Context(), r.inner, spi.AppendRequest{Execution: "4:acme/plain", Events: []spi.Event{noted("readable")}}))
	must[spi.DestroyDataKeyResponse](t)(spi.DestroyDataKey(t.Context(), r.inner, spi.DestroyDataKeyRequest{Owner: "4:acme/shredded", Version: 1}))
	// A key that the tenant's does not open is as good as none.
	must[spi.RewrapDataKeyResponse](t)(spi.RewrapDataKey(t.Context(), r.inner, spi.RewrapDataKeyRequest{
		Owner: "4:acme/lost", Version: 1, OldWrappedBy: "tenant/2", WrappedBy: "tenant/2", Wrapped: []byte("damaged"),
	}))
	report := must[crypto.Report](t)(r.keys().Verify(t.Context(), "acme"))
	for state, n := range map[crypto.State]int{crypto.Encrypted: 1, crypto.Shredded: 1, crypto.Lost: 1, crypto.Unencrypted: 1} {
		if report.Executions[state] != n {
			t.Errorf("%v are %d, not %d", state, report.Executions[state], n)
		}
	}
	if !slices.Equal(report.TenantKeys, []int64{2}) || report.Undecryptable() {
		t.Errorf("it reports %+v", report)
	}
	if state := must[crypto.State](t)(r.keys().VerifyExecution(t.Context(), "absent")); state != crypto.Absent {
		t.Errorf("what is not there is %v", state)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.keys().Verify(ctx, "acme"); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled, it answers %v", err)
	}
}

func TestWhoeverDeletesForgetsTheKeyAtOnce(t *testing.T) {
	r := newRig(t)
	r.append(r.node(), "e", 0, noted("secret"))
	s, freeze := r.lagging("e")
	r.wantRead(s, "e", "secret")
	freeze()
	must[spi.DeleteExecutionResponse](t)(spi.DeleteExecution(t.Context(), s, spi.DeleteExecutionRequest{Execution: "e", Incarnation: 1}))
	_, err := r.read(s, "e")
	want[*crypto.KeyLostError](t, err)
}

// TestALogThatEndsWhileItIsReadIsReadAnew deletes it after the events were read and before
// their key is.
func TestALogThatEndsWhileItIsReadIsReadAnew(t *testing.T) {
	for _, anew := range []bool{false, true} {
		r := newRig(t)
		other := r.node()
		r.append(other, "e", 0, noted("old"))
		reads := 0
		s := r.nodeOver(&below{after: func(op string) {
			if op != "Read" {
				return
			}
			if reads++; reads > 1 {
				return
			}
			must[spi.DeleteExecutionResponse](r)(spi.DeleteExecution(r.Context(), other, spi.DeleteExecutionRequest{Execution: "e", Incarnation: 1}))
			if anew {
				must[spi.AppendResponse](r)(spi.Append(r.Context(), other, spi.AppendRequest{Execution: "e", Incarnation: 2, Events: []spi.Event{noted("new")}}))
			}
		}})
		if anew {
			r.wantRead(s, "e", "new")
		} else {
			r.wantRead(s, "e")
		}
	}
}

func TestADeletionDropsTheKeyAndTheNextIncarnationHasItsOwn(t *testing.T) {
	r := newRig(t)
	s, other := r.node(), r.node()
	r.append(s, "e", 0, noted("old"))
	r.wantRead(other, "e", "old") // it has the key in memory
	old := r.dataKey("e", 1)
	must[spi.DeleteExecutionResponse](t)(spi.DeleteExecution(t.Context(), s, spi.DeleteExecutionRequest{Execution: "e", Incarnation: 1}))
	_, err := spi.GetDataKey(t.Context(), r.inner, spi.GetDataKeyRequest{Owner: "e", Version: 1})
	want[*spi.NotFoundError](t, err)
	r.wantRead(other, "e")
	must[spi.AppendResponse](t)(spi.Append(t.Context(), other, spi.AppendRequest{Execution: "e", Incarnation: 2, Events: []spi.Event{noted("new")}}))
	if r.dataKey("e", 1).ID == old.ID {
		t.Error("the key has come back")
	}
	r.wantRead(s, "e", "new")
	r.wantRead(other, "e", "new")
}
