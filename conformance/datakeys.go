package conformance

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/loomgate/loomgate/spi"
)

var dataKeys = topic{"data keys", []testCase{
	{
		"a new key comes back as it was created",
		spi.CapDataKeys,
		func(f *fixture) {
			key := newKey("order-1", 1)
			res := f.createKey(key)
			equal(f, "created", res.Created, true)
			f.wantSameKey("created", res.Key, key)
			f.wantKey(key, 1)
			f.wantKey(key, 0)
		},
	},
	{
		"a second creator gets the key of the first",
		spi.CapDataKeys,
		func(f *fixture) {
			key := newKey("order-1", 1)
			f.createKey(key)
			for _, rival := range []spi.DataKey{newKey("order-1", 1), key} {
				res := f.createKey(rival)
				equal(f, "created", res.Created, false)
				f.wantSameKey("created", res.Key, key)
			}
			f.wantKey(key, 1)
		},
	},
	{
		"of eight creators at once all get one key",
		spi.CapDataKeys,
		func(f *fixture) {
			for round := range 4 {
				owner := spi.KeyOwner(id("order-%d", round))
				var res [8]spi.CreateDataKeyResponse
				var created [8]bool
				together(len(res), func(i int) {
					var err error
					if res[i], err = spi.CreateDataKey(f.ctx, f.store, spi.CreateDataKeyRequest{Key: newKey(owner, 1)}); err != nil {
						f.Error(err)
					}
					created[i] = res[i].Created
				})
				for i := range res {
					f.wantSameKey("created", res[i].Key, res[0].Key)
				}
				equal(f, "the number of creators", countTrue(created[:]), 1)
				f.wantKey(res[0].Key, 1)
			}
		},
	},
	{
		"a key comes back byte for byte, up to the longest",
		spi.CapDataKeys,
		func(f *fixture) {
			every := make([]byte, 256)
			for i := range every {
				every[i] = byte(i)
			}
			for i, wrapped := range [][]byte{{0}, every, []byte("{\"n\": 9007199254740993}"), bytes.Repeat([]byte{0xff, 0}, spi.MaxWrappedKey/2)} {
				key := newKey(spi.KeyOwner(id("order-%d", i)), 1)
				key.Wrapped = wrapped
				key.WrappedBy = strings.Repeat("é", spi.MaxDescription/2)
				f.createKey(key)
				f.wantKey(key, 1)
			}
			all := spi.KeyID(bytes.Repeat([]byte{0xff}, 16))
			f.createKey(spi.DataKey{Owner: "all ones", Version: 1, ID: all, WrappedBy: "kms", Wrapped: []byte{1}})
			equal(f, "the key id", f.getKey("all ones", 1).ID, all)
		},
	},
	{
		"a key is shared neither with who brought it nor with who reads it",
		spi.CapDataKeys,
		func(f *fixture) {
			key, given := newKey("order-1", 1), newKey("order-1", 1)
			given.ID, given.Wrapped = key.ID, slices.Clone(key.Wrapped)
			res := f.createKey(given)
			clear(given.Wrapped)
			clear(res.Key.Wrapped)
			f.wantKey(key, 1)
			clear(f.createKey(newKey("order-1", 1)).Key.Wrapped)
			clear(f.getKey("order-1", 1).Wrapped)
			clear(f.keyPage("", "", 10).Keys[0].Wrapped)
			f.wantKey(key, 1)
		},
	},
	{
		"a key that never was is not found",
		spi.CapDataKeys,
		func(f *fixture) {
			f.wantNoKey("order-1", 0)
			f.wantNoKey("order-1", 1)
			f.createKey(newKey("order-1", 1))
			f.wantNoKey("order-1", 2)
			f.wantNoKey("order-2", 1)
			f.wantNoKey("ORDER-1", 1)
		},
	},
	{
		"a tenant's keys count versions, and the newest is the highest",
		spi.CapDataKeys,
		func(f *fixture) {
			f.wantNoKey(acme, 0)
			var keys []spi.DataKey
			for _, v := range append([]int64{1, 3, 2}, edges...) {
				key := newKey(acme, v)
				equal(f, "created", f.createKey(key).Created, true)
				keys = append(keys, key)
			}
			for _, key := range keys {
				f.wantKey(key, key.Version)
			}
			f.wantKey(keys[len(keys)-1], 0)
		},
	},
	{
		"a destroyed key is shredded for whoever gets or creates it",
		spi.CapDataKeys,
		func(f *fixture) {
			key := newKey("order-1", 1)
			f.createKey(key)
			equal(f, "destroyed", f.destroyKey("order-1", 1), true)
			for _, version := range []int64{0, 1} {
				_, err := spi.GetDataKey(f.ctx, f.store, spi.GetDataKeyRequest{Owner: "order-1", Version: version})
				f.wantShredded(err, "order-1")
			}
			for _, again := range []spi.DataKey{key, newKey("order-1", 1)} {
				_, err := spi.CreateDataKey(f.ctx, f.store, spi.CreateDataKeyRequest{Key: again})
				f.wantShredded(err, "order-1")
			}
		},
	},
	{
		"to destroy what is destroyed already is no error",
		spi.CapDataKeys,
		func(f *fixture) {
			f.createKey(newKey("order-1", 1))
			equal(f, "destroyed", f.destroyKey("order-1", 1), true)
			equal(f, "destroyed", f.destroyKey("order-1", 1), false)
		},
	},
	{
		"of eight who destroy a key at once one did it",
		spi.CapDataKeys,
		func(f *fixture) {
			f.createKey(newKey("order-1", 1))
			var destroyed [8]bool
			together(len(destroyed), func(i int) {
				res, err := spi.DestroyDataKey(f.ctx, f.store, spi.DestroyDataKeyRequest{Owner: "order-1", Version: 1})
				if err != nil {
					f.Error(err)
				}
				destroyed[i] = res.Destroyed
			})
			equal(f, "the number of destroyers", countTrue(destroyed[:]), 1)
		},
	},
	{
		"a key that never was cannot be destroyed, and can be created later",
		spi.CapDataKeys,
		func(f *fixture) {
			_, err := spi.DestroyDataKey(f.ctx, f.store, spi.DestroyDataKeyRequest{Owner: "order-1", Version: 1})
			f.wantKeyNotFound(err, "order-1")
			key := newKey("order-1", 1)
			f.createKey(key)
			f.wantKey(key, 1)
		},
	},
	{
		"to destroy one version, or one owner's key, spares the others",
		spi.CapDataKeys,
		func(f *fixture) {
			one, two, order := newKey(acme, 1), newKey(acme, 2), newKey("order-1", 1)
			for _, key := range []spi.DataKey{one, two, order, newKey("order-2", 1)} {
				f.createKey(key)
			}
			f.destroyKey(acme, 1)
			f.destroyKey("order-2", 1)
			f.wantKey(two, 2)
			f.wantKey(two, 0)
			f.wantKey(order, 1)
			_, err := spi.GetDataKey(f.ctx, f.store, spi.GetDataKeyRequest{Owner: acme, Version: 1})
			f.wantShredded(err, acme)
		},
	},

	{
		"an append under the execution's own key lands",
		spi.CapDataKeys,
		func(f *fixture) {
			key := newKey("order-1", 1)
			f.createKey(key)
			for head := range int64(3) {
				f.mustAppend(spi.AppendRequest{Execution: "order-1", ExpectedHead: head, KeyID: key.ID, Events: events(1)})
			}
			f.mustAppend(spi.AppendRequest{Execution: "order-1", ExpectedHead: spi.AnyHead, KeyID: key.ID, Events: events(1)})
			f.wantLog("order-1", upTo(4)...)
		},
	},
	{
		"an append under another key, or under none, is refused and stores nothing",
		spi.CapDataKeys,
		func(f *fixture) {
			key, other := newKey("order-1", 1), newKey("order-2", 1)
			f.createKey(key)
			f.createKey(other)
			f.createKey(newKey(acme, 1))
			wrong := []spi.KeyID{{}, other.ID, f.getKey(acme, 1).ID, newKey(acme, 1).ID}
			for _, keyID := range wrong {
				f.refuseKey(spi.AppendRequest{Execution: "order-1", KeyID: keyID, Events: events(2)})
			}
			f.wantNothing("order-1")
			f.mustAppend(spi.AppendRequest{Execution: "order-1", KeyID: key.ID, Events: events(1)})
			for _, keyID := range wrong {
				f.refuseKey(spi.AppendRequest{Execution: "order-1", ExpectedHead: 1, KeyID: keyID, Events: events(2)})
				f.refuseKey(spi.AppendRequest{Execution: "order-1", ExpectedHead: spi.AnyHead, KeyID: keyID, Events: events(2)})
			}
			f.wantLog("order-1", 1)
		},
	},
	{
		"an append under a key is refused where the execution has none",
		spi.CapDataKeys,
		func(f *fixture) {
			f.refuseKey(spi.AppendRequest{Execution: "order-1", KeyID: newKey(acme, 1).ID, Events: events(1)})
			f.wantNothing("order-1")
			f.append("order-1", 0, "Noted")
			f.refuseKey(spi.AppendRequest{Execution: "order-1", ExpectedHead: 1, KeyID: newKey(acme, 1).ID, Events: events(1)})
			f.wantLog("order-1", 1)
		},
	},
	{
		"the key is judged before the head",
		spi.CapDataKeys,
		func(f *fixture) {
			f.createKey(newKey("order-1", 1))
			f.refuseKey(spi.AppendRequest{Execution: "order-1", ExpectedHead: 7, Events: events(1)})
		},
	},
	{
		"the key is judged before the fence",
		spi.CapDataKeys | spi.CapAcquireFence,
		func(f *fixture) {
			f.createKey(newKey("order-1", 1))
			token := f.acquire("order-1")
			f.acquire("order-1")
			f.refuseKey(spi.AppendRequest{Execution: "order-1", Fence: token, Events: events(1)})
		},
	},
	{
		"an append in a batch is judged by its key",
		spi.CapDataKeys | spi.CapAppendBatch,
		func(f *fixture) {
			var keys []spi.DataKey
			for i := range 4 {
				keys = append(keys, newKey(spi.KeyOwner(id("order-%d", i)), 1))
				f.createKey(keys[i])
			}
			f.destroyKey("order-3", 1)
			results := f.batch(
				spi.AppendRequest{Execution: "order-0", KeyID: keys[0].ID, Events: events(1)},
				spi.AppendRequest{Execution: "order-1", Events: events(1)},
				spi.AppendRequest{Execution: "order-2", KeyID: keys[0].ID, Events: events(1)},
				spi.AppendRequest{Execution: "order-3", KeyID: keys[3].ID, Events: events(1)},
				spi.AppendRequest{Execution: "keyless", KeyID: keys[0].ID, Events: events(1)},
				spi.AppendRequest{Execution: "plain", Events: events(1)},
			)
			for i, e := range []spi.ExecutionID{1: "order-1", 2: "order-2", 4: "keyless"} {
				if e != "" {
					equal(f, "the execution", wantError[*spi.KeyMismatchError](f, results[i].Err).Execution, e)
				}
			}
			f.wantShredded(results[3].Err, "order-3")
			f.wantNames("the executions", f.list("", 10), []string{"order-0", "plain"})
		},
	},
	{
		"a conditional append is judged by its key",
		spi.CapDataKeys | spi.CapAppendIfUnchanged,
		func(f *fixture) {
			key := newKey("order-1", 1)
			f.createKey(key)
			do := func(e spi.ExecutionID, keyID spi.KeyID, head int64) error {
				_, err := spi.AppendIfUnchanged(f.ctx, f.store, spi.AppendIfUnchangedRequest{Execution: e, Head: head, KeyID: keyID, Events: events(1)})
				return err
			}
			for _, keyID := range []spi.KeyID{{}, newKey(acme, 1).ID} {
				wantError[*spi.KeyMismatchError](f, do("order-1", keyID, 0))
			}
			wantError[*spi.KeyMismatchError](f, do("keyless", key.ID, 0))
			if err := do("order-1", key.ID, 0); err != nil {
				f.Error(err)
			}
			f.destroyKey("order-1", 1)
			f.wantShredded(do("order-1", key.ID, 1), "order-1")
			f.wantLog("order-1", 1)
			f.wantNothing("keyless")
		},
	},
	{
		"an execution whose key was destroyed takes no more events (invariant 13)",
		spi.CapDataKeys,
		func(f *fixture) {
			key := newKey("order-1", 1)
			f.createKey(key)
			f.createKey(newKey("unwritten", 1))
			f.mustAppend(spi.AppendRequest{Execution: "order-1", KeyID: key.ID, Events: events(2)})
			f.destroyKey("order-1", 1)
			f.destroyKey("unwritten", 1)
			for _, keyID := range []spi.KeyID{key.ID, {}, newKey(acme, 1).ID} {
				for _, head := range []int64{2, 7, spi.AnyHead} {
					_, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: "order-1", ExpectedHead: head, KeyID: keyID, Events: events(1)})
					f.wantShredded(err, "order-1")
				}
				_, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: "unwritten", KeyID: keyID, Events: events(1)})
				f.wantShredded(err, "unwritten")
			}
			f.wantLog("order-1", 1, 2)
			f.wantNothing("unwritten")
		},
	},
	{
		"no append lands after the destruction of its key was acknowledged (invariant 13)",
		spi.CapDataKeys,
		func(f *fixture) {
			key := newKey("order-1", 1)
			f.createKey(key)
			f.raceWriters(
				func(int, int) (string, error) {
					res, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: "order-1", ExpectedHead: spi.AnyHead, KeyID: key.ID, Events: events(1)})
					return strconv.FormatInt(res.FirstSeq, 10), err
				},
				func(err error) { f.wantShredded(err, "order-1") },
				func() { f.destroyKey("order-1", 1) },
				func() (names []string) {
					for _, e := range f.read("order-1") {
						names = append(names, strconv.FormatInt(e.Sequence, 10))
					}
					return names
				},
			)
		},
	},
	{
		"no first append in a batch lands after the destruction of its key was acknowledged (invariant 13)",
		spi.CapDataKeys | spi.CapAppendBatch,
		func(f *fixture) {
			for round := range raceRounds / 4 {
				e := id("order-%d", round)
				key := newKey(spi.KeyOwner(e), 1)
				f.createKey(key)
				var head int64
				var appended error
				together(2, func(i int) {
					if i == round%2 {
						res, err := spi.AppendBatch(f.ctx, f.store, spi.AppendBatchRequest{Appends: []spi.AppendRequest{{Execution: e, KeyID: key.ID, Events: events(1)}}})
						if appended = err; err == nil {
							appended = only(res)
						}
						return
					}
					if _, err := spi.DestroyDataKey(f.ctx, f.store, spi.DestroyDataKeyRequest{Owner: key.Owner, Version: 1}); err != nil {
						f.Error(err)
					}
					res, err := spi.Head(f.ctx, f.store, spi.HeadRequest{Execution: e})
					if err != nil {
						f.Error(err)
					}
					head = res.Head
				})
				if appended != nil {
					f.wantShredded(appended, key.Owner)
				}
				if landed := appended == nil; landed != (head == 1) || f.head(e).Head != head {
					f.Errorf("the append answers %v; the head is %d after the destruction, and %d in the end", appended, head, f.head(e).Head)
				}
			}
		},
	},
	{
		"a first key and a first event without one never both succeed",
		spi.CapDataKeys,
		func(f *fixture) {
			for round := range raceRounds / 4 {
				e := id("order-%d", round)
				var created, appended error
				together(2, func(i int) {
					if i == round%2 {
						_, created = spi.CreateDataKey(f.ctx, f.store, spi.CreateDataKeyRequest{Key: newKey(spi.KeyOwner(e), 1)})
						return
					}
					_, appended = spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: e, Events: events(1)})
				})
				if (created == nil) == (appended == nil) {
					f.Errorf("they answer %v and %v", created, appended)
				}
			}
		},
	},
	{
		"an execution that has events gets no first key",
		spi.CapDataKeys,
		func(f *fixture) {
			f.appendN("order-1", 0, 3)
			_, err := spi.CreateDataKey(f.ctx, f.store, spi.CreateDataKeyRequest{Key: newKey("order-1", 1)})
			equal(f, "the error", *wantError[*spi.ConflictError](f, err), spi.ConflictError{Execution: "order-1", Head: 3})
			f.wantNoKey("order-1", 1)
			f.appendN("order-1", 3, 1)
		},
	},
	{
		"an execution that has events under its key still has the key",
		spi.CapDataKeys,
		func(f *fixture) {
			key := newKey("order-1", 1)
			f.createKey(key)
			f.mustAppend(spi.AppendRequest{Execution: "order-1", KeyID: key.ID, Events: events(1)})
			res := f.createKey(newKey("order-1", 1))
			equal(f, "created", res.Created, false)
			f.wantSameKey("created", res.Key, key)
		},
	},
	{
		"a key alone lists no execution",
		spi.CapDataKeys,
		func(f *fixture) {
			f.createKey(newKey("order-1", 1))
			f.createKey(newKey(acme, 1))
			f.wantNothing("order-1")
			f.wantNames("the executions", f.list("", 10), nil)
		},
	},
	{
		"a deletion takes the key, and the next incarnation has one of its own",
		spi.CapDataKeys | spi.CapDeleteExecution,
		func(f *fixture) {
			old, other := newKey("order-1", 1), newKey("order-1/2", 1)
			f.createKey(old)
			f.createKey(other)
			f.mustAppend(spi.AppendRequest{Execution: "order-1", KeyID: old.ID, Events: events(1)})
			incarnation := f.delete("order-1").Incarnation
			f.wantNoKey("order-1", 0)
			f.wantNoKey("order-1", 1)
			f.wantKey(other, 1)
			f.refuseKey(spi.AppendRequest{Execution: "order-1", Incarnation: incarnation, KeyID: old.ID, Events: events(1)})
			next := newKey("order-1", 1)
			equal(f, "created", f.createKey(next).Created, true)
			f.refuseKey(spi.AppendRequest{Execution: "order-1", Incarnation: incarnation, KeyID: old.ID, Events: events(1)})
			f.wantNothing("order-1")
			f.mustAppend(spi.AppendRequest{Execution: "order-1", Incarnation: incarnation, KeyID: next.ID, Events: events(1)})
			f.wantLog("order-1", 1)
		},
	},
	{
		"a deleted execution may begin anew without a key",
		spi.CapDataKeys | spi.CapDeleteExecution,
		func(f *fixture) {
			key := newKey("order-1", 1)
			f.createKey(key)
			f.mustAppend(spi.AppendRequest{Execution: "order-1", KeyID: key.ID, Events: events(1)})
			f.mustAppend(spi.AppendRequest{Execution: "order-1", Incarnation: f.delete("order-1").Incarnation, Events: events(2)})
			f.wantLog("order-1", 1, 2)
		},
	},

	{
		"owners are listed in code point order, each once, whatever the size of a page",
		spi.CapDataKeys,
		func(f *fixture) {
			f.fillKeys(awkwardNames)
			for _, size := range []int{1, 2, 3, 7, len(awkwardNames) - 1, len(awkwardNames), len(awkwardNames) + 1, spi.MaxLimit} {
				f.wantNames(fmt.Sprintf("in pages of %d", size), f.listOwners("", "", size), awkwardNames)
			}
		},
	},
	{
		"a page of owners begins strictly after its cursor, also one that no store returned",
		spi.CapDataKeys,
		func(f *fixture) {
			f.fillKeys(awkwardNames)
			for _, cursor := range awkwardCursors() {
				f.wantNames(fmt.Sprintf("after %.40q", cursor), f.listOwners("", cursor, spi.MaxLimit), matching(awkwardNames, "", cursor))
			}
		},
	},
	{
		"a prefix lists the owners that start with it, and nothing after them",
		spi.CapDataKeys,
		func(f *fixture) {
			f.fillKeys(awkwardNames)
			for _, prefix := range append([]string{"absent", "A", "c", "\ud7ff"}, awkwardNames...) {
				f.wantNames(fmt.Sprintf("with prefix %q", prefix), f.listOwners(prefix, "", 3), matching(awkwardNames, prefix, ""))
			}
		},
	},
	{
		"an owner is listed with all its versions on one page, and the limit counts owners",
		spi.CapDataKeys,
		func(f *fixture) {
			first, last := newKey("0", 1), newKey("order-1", 1)
			for _, key := range []spi.DataKey{last, newKey(acme, 1), newKey(acme, 3), newKey(acme, 2), first} {
				f.createKey(key)
			}
			for _, limit := range []int{1, 2, 3} {
				var got []spi.KeyOwner
				var versions []int64
				for after := ""; ; {
					page := f.keyPage("", after, limit)
					for _, key := range page.Keys {
						f.wantKey(key, key.Version)
						got = append(got, key.Owner)
						versions = append(versions, key.Version)
					}
					if after = page.Next; after == "" {
						break
					}
				}
				if !slices.Equal(got, []spi.KeyOwner{"0", acme, acme, acme, "order-1"}) || !slices.Equal(versions, []int64{1, 1, 2, 3, 1}) {
					f.Errorf("by pages of %d, versions %v of %q are listed", limit, versions, got)
				}
			}
		},
	},
	{
		"destroyed keys are not listed",
		spi.CapDataKeys,
		func(f *fixture) {
			kept := newKey("b", 1)
			for _, key := range []spi.DataKey{newKey("a", 1), kept, newKey("c", 1)} {
				f.createKey(key)
			}
			newest := newKey(acme, 2)
			f.createKey(newKey(acme, 1))
			f.createKey(newest)
			f.destroyKey("a", 1)
			f.destroyKey("c", 1)
			f.destroyKey(acme, 1)
			page := f.keyPage("", "", 10)
			if len(page.Keys) != 2 {
				f.Fatalf("listed are %v", page.Keys)
			}
			f.wantSameKey("listed", page.Keys[0], newest)
			f.wantSameKey("listed", page.Keys[1], kept)
			f.wantNames("in pages of 1", f.listOwners("", "", 1), []string{string(acme), "b"})
		},
	},

	{
		"a key is rewrapped if it is still wrapped by what was seen",
		spi.CapDataKeys | spi.CapRewrapDataKey,
		func(f *fixture) {
			key := newKey("order-1", 1)
			f.createKey(key)
			equal(f, "rewrapped", f.rewrap("order-1", "another", "kms/2", []byte("no")), false)
			f.wantKey(key, 1)
			equal(f, "rewrapped", f.rewrap("order-1", key.WrappedBy, "kms/2", []byte{0, 0xff}), true)
			old := key.WrappedBy
			key.WrappedBy, key.Wrapped = "kms/2", []byte{0, 0xff}
			f.wantKey(key, 1)
			equal(f, "rewrapped", f.rewrap("order-1", old, "kms/3", []byte("no")), false)
			f.wantKey(key, 1)
			f.wantSameKey("listed", f.keyPage("", "", 1).Keys[0], key)
		},
	},
	{
		"a rewrapped key is the same key for appends",
		spi.CapDataKeys | spi.CapRewrapDataKey,
		func(f *fixture) {
			key := newKey("order-1", 1)
			f.createKey(key)
			f.mustAppend(spi.AppendRequest{Execution: "order-1", KeyID: key.ID, Events: events(1)})
			f.rewrap("order-1", key.WrappedBy, "kms/2", []byte{2})
			f.mustAppend(spi.AppendRequest{Execution: "order-1", ExpectedHead: 1, KeyID: key.ID, Events: events(1)})
			f.wantLog("order-1", 1, 2)
		},
	},
	{
		"a rewrapping keeps no slice of the caller's",
		spi.CapDataKeys | spi.CapRewrapDataKey,
		func(f *fixture) {
			key := newKey("order-1", 1)
			f.createKey(key)
			wrapped := []byte{1, 2, 3}
			f.rewrap("order-1", key.WrappedBy, "kms/2", wrapped)
			clear(wrapped)
			key.WrappedBy, key.Wrapped = "kms/2", []byte{1, 2, 3}
			f.wantKey(key, 1)
		},
	},
	{
		"of eight who rewrap a key at once one did it",
		spi.CapDataKeys | spi.CapRewrapDataKey,
		func(f *fixture) {
			key := newKey("order-1", 1)
			f.createKey(key)
			var rewrapped [8]bool
			together(len(rewrapped), func(i int) {
				res, err := spi.RewrapDataKey(f.ctx, f.store, spi.RewrapDataKeyRequest{
					Owner: "order-1", Version: 1, OldWrappedBy: key.WrappedBy, WrappedBy: string(id("kms/%d", i+2)), Wrapped: []byte{byte(i)},
				})
				if err != nil {
					f.Error(err)
				}
				rewrapped[i] = res.Rewrapped
			})
			equal(f, "the number of those who did", countTrue(rewrapped[:]), 1)
			winner := slices.Index(rewrapped[:], true)
			key.WrappedBy, key.Wrapped = string(id("kms/%d", winner+2)), []byte{byte(winner)}
			f.wantKey(key, 1)
		},
	},
	{
		"a rewrapping brings back no key that was destroyed",
		spi.CapDataKeys | spi.CapRewrapDataKey,
		func(f *fixture) {
			key := newKey("order-1", 1)
			f.createKey(key)
			f.destroyKey("order-1", 1)
			res, err := spi.RewrapDataKey(f.ctx, f.store, spi.RewrapDataKeyRequest{Owner: "order-1", Version: 1, OldWrappedBy: key.WrappedBy, WrappedBy: "kms/2", Wrapped: []byte{2}})
			if err == nil && res.Rewrapped {
				f.Error("the destroyed key is rewrapped")
			}
			_, err = spi.GetDataKey(f.ctx, f.store, spi.GetDataKeyRequest{Owner: "order-1"})
			f.wantShredded(err, "order-1")
		},
	},

	{
		"keys survive reopening, and so does their destruction",
		spi.CapDataKeys,
		func(f *fixture) {
			kept, own := newKey("order-1", 1), newKey(acme, math.MaxInt64)
			f.createKey(kept)
			f.createKey(own)
			f.createKey(newKey("order-2", 1))
			f.mustAppend(spi.AppendRequest{Execution: "order-1", KeyID: kept.ID, Events: events(1)})
			f.destroyKey("order-2", 1)
			f.reopen()
			f.wantKey(kept, 1)
			f.wantKey(own, 0)
			f.refuseKey(spi.AppendRequest{Execution: "order-1", ExpectedHead: 1, Events: events(1)})
			_, err := spi.CreateDataKey(f.ctx, f.store, spi.CreateDataKeyRequest{Key: newKey("order-2", 1)})
			f.wantShredded(err, "order-2")
			_, err = spi.Append(f.ctx, f.store, spi.AppendRequest{Execution: "order-2", Events: events(1)})
			f.wantShredded(err, "order-2")
		},
	},
}}

// acme is a tenant as the owner of keys: its bare scope.
const acme spi.KeyOwner = "4:acme/"

// newKey returns a key with an id of its own.
func newKey(owner spi.KeyOwner, version int64) spi.DataKey {
	unique := spi.KeyID(spi.NewEventID())
	return spi.DataKey{Owner: owner, Version: version, ID: unique, WrappedBy: "kms/1", Wrapped: append([]byte{0, 0x80, 0xff}, unique[:]...)}
}

// createKey creates a key unless there is one.
func (f *fixture) createKey(key spi.DataKey) spi.CreateDataKeyResponse {
	f.Helper()
	res, err := spi.CreateDataKey(f.ctx, f.store, spi.CreateDataKeyRequest{Key: key})
	if err != nil {
		f.Fatal(err)
	}
	return res
}

func (f *fixture) getKey(owner spi.KeyOwner, version int64) spi.DataKey {
	f.Helper()
	res, err := spi.GetDataKey(f.ctx, f.store, spi.GetDataKeyRequest{Owner: owner, Version: version})
	if err != nil {
		f.Fatal(err)
	}
	return res.Key
}

// destroyKey reports whether it destroyed a key.
func (f *fixture) destroyKey(owner spi.KeyOwner, version int64) bool {
	f.Helper()
	res, err := spi.DestroyDataKey(f.ctx, f.store, spi.DestroyDataKeyRequest{Owner: owner, Version: version})
	if err != nil {
		f.Fatal(err)
	}
	return res.Destroyed
}

// rewrap reports whether it rewrapped version 1 of a key.
func (f *fixture) rewrap(owner spi.KeyOwner, old, by string, wrapped []byte) bool {
	f.Helper()
	res, err := spi.RewrapDataKey(f.ctx, f.store, spi.RewrapDataKeyRequest{Owner: owner, Version: 1, OldWrappedBy: old, WrappedBy: by, Wrapped: wrapped})
	if err != nil {
		f.Fatal(err)
	}
	return res.Rewrapped
}

// wantKey checks what is there as a version of a key; 0 is the newest.
func (f *fixture) wantKey(want spi.DataKey, version int64) {
	f.Helper()
	f.wantSameKey("there", f.getKey(want.Owner, version), want)
}

func (f *fixture) wantSameKey(what string, got, want spi.DataKey) {
	f.Helper()
	if got.Owner != want.Owner || got.Version != want.Version || got.ID != want.ID || got.WrappedBy != want.WrappedBy || !bytes.Equal(got.Wrapped, want.Wrapped) {
		f.Errorf("%s is version %d of %q, %v, wrapped by %.20q as %.40x, not version %d of %q, %v, wrapped by %.20q as %.40x", what,
			got.Version, got.Owner, got.ID, got.WrappedBy, got.Wrapped, want.Version, want.Owner, want.ID, want.WrappedBy, want.Wrapped)
	}
}

func (f *fixture) wantNoKey(owner spi.KeyOwner, version int64) {
	f.Helper()
	_, err := spi.GetDataKey(f.ctx, f.store, spi.GetDataKeyRequest{Owner: owner, Version: version})
	f.wantKeyNotFound(err, owner)
}

func (f *fixture) wantKeyNotFound(err error, owner spi.KeyOwner) {
	f.Helper()
	equal(f, "the error", *wantError[*spi.NotFoundError](f, err), spi.NotFoundError{What: "data key", Name: string(owner)})
}

func (f *fixture) wantShredded(err error, owner spi.KeyOwner) {
	f.Helper()
	equal(f, "the owner", wantError[*spi.ShreddedError](f, err).Owner, owner)
}

// refuseKey checks that an append is refused for its key.
func (f *fixture) refuseKey(req spi.AppendRequest) {
	f.Helper()
	_, err := spi.Append(f.ctx, f.store, req)
	equal(f, "the execution", wantError[*spi.KeyMismatchError](f, err).Execution, req.Execution)
}

// fillKeys makes a key of each owner, in another order than their own.
func (f *fixture) fillKeys(owners []string) {
	f.Helper()
	for _, i := range rand.New(rand.NewPCG(7, 8)).Perm(len(owners)) {
		f.createKey(newKey(spi.KeyOwner(owners[i]), 1))
	}
}

// keyPage returns one page of keys, and checks its cursor.
func (f *fixture) keyPage(prefix, after string, size int) spi.ListDataKeysResponse {
	f.Helper()
	res, err := spi.ListDataKeys(f.ctx, f.store, spi.ListDataKeysRequest{Prefix: prefix, After: after, Limit: size})
	if err != nil {
		f.Fatal(err)
	}
	var owners []string
	for _, key := range res.Keys {
		owners = append(owners, string(key.Owner))
	}
	owners = slices.Compact(owners)
	f.checkPage(owners, after, res.Next, size)
	f.checkAfter(owners, after)
	return res
}

// listOwners returns the owner of each key after a cursor, in pages of a size.
func (f *fixture) listOwners(prefix, after string, size int) []string {
	f.Helper()
	var all []string
	for {
		page := f.keyPage(prefix, after, size)
		for _, key := range page.Keys {
			all = append(all, string(key.Owner))
		}
		if after = page.Next; after == "" {
			return all
		}
	}
}
