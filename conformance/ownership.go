package conformance

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// shardOne is the identity that the cases give to their store.
var shardOne = spi.Identity{Cluster: "cluster", Shard: "shard-1", Fingerprint: "placement/1", MinWriter: spi.Versions()[spi.Events]}

var ownership = topic{"ownership", []testCase{
	{
		"a store without an identity reports nothing, and its pages have no receipt",
		spi.CapChangeOwnership,
		func(f *fixture) {
			f.append("e", 0, "Noted")
			if shards := f.shards(); len(shards) > 0 {
				f.Errorf("it reports %v", shards)
			}
			res, err := spi.ListExecutions(f.ctx, f.store, spi.ListExecutionsRequest{Limit: 10, KnownOwnership: 1})
			if err != nil || len(res.Receipt) > 0 || len(res.Executions) != 1 {
				f.Errorf("the page is %+v, %v", res, err)
			}
		},
	},
	{
		"a store without an identity refuses every call that was routed",
		spi.CapChangeOwnership,
		func(f *fixture) {
			calls := f.routedCalls(spi.Route{})
			before := f.everything(spi.Route{})
			for _, route := range []spi.Route{{Slot: 0, Epoch: 1}, {Slot: 7, Epoch: 3}} {
				for _, c := range calls {
					f.wantMisrouted(c, route, spi.MisroutedError{Route: route})
				}
			}
			equal(f, "what the store holds", f.everything(spi.Route{}), before)
			f.wantAllAccepted(calls, spi.Route{})
		},
	},
	{
		"a store takes an identity, with its first slots",
		spi.CapChangeOwnership,
		func(f *fixture) {
			slots := []spi.SlotRecord{
				{Slot: spi.FirstPin + 1, State: spi.SlotReceiving, Epoch: 9, Peer: "shard-2", Tenant: "acme"},
				{Slot: 7, State: spi.SlotOwned, Epoch: 3},
				{Slot: 65535, State: spi.SlotOwned, Epoch: 1 << 53, Tenant: "é"},
				{Slot: 0, State: spi.SlotOwned, Epoch: 1, Peer: "nobody"},
			}
			now := f.own(slots...)
			if now.Version < 1 {
				f.Errorf("the version is %d", now.Version)
			}
			want := spi.ShardOwnership{Identity: shardOne, Version: now.Version, Slots: []spi.SlotRecord{slots[3], slots[1], slots[0], slots[2]}}
			equal(f, "the answer", fmt.Sprintf("%+v", now), fmt.Sprintf("%+v", want))
			f.wantOwnership(want)
		},
	},
	{
		"a store takes an identity once",
		spi.CapChangeOwnership,
		func(f *fixture) {
			f.own(slot(7, spi.SlotOwned, 3))
			f.refuseChange(spi.ChangeOwnershipRequest{Identity: shardOne})
			f.refuseChange(spi.ChangeOwnershipRequest{Identity: shardOne, Slots: []spi.SlotRecord{slot(8, spi.SlotOwned, 1)}})
		},
	},
	{
		"of eight who give a store its identity at once one does",
		spi.CapChangeOwnership,
		func(f *fixture) {
			var won [8]bool
			together(len(won), func(i int) {
				identity := shardOne
				identity.Shard = fmt.Sprintf("shard-%d", i)
				_, err := spi.ChangeOwnership(f.ctx, f.store, spi.ChangeOwnershipRequest{Identity: identity})
				won[i] = err == nil
			})
			equal(f, "the number of those who do", countTrue(won[:]), 1)
			equal(f, "the shard", f.shard().Identity.Shard, fmt.Sprintf("shard-%d", slices.Index(won[:], true)))
		},
	},
	{
		"a store that holds something takes no identity",
		spi.CapChangeOwnership,
		func(f *fixture) {
			f.append("e", 0, "Noted")
			f.refuseIdentity()
			f.append("e", 1, "Noted")
		},
	},
	{
		"a store that holds a timer takes no identity",
		spi.CapChangeOwnership | spi.CapTimers,
		func(f *fixture) {
			f.schedule("e", wakeNever)
			f.refuseIdentity()
		},
	},
	{
		"a store that holds a ref takes no identity",
		spi.CapChangeOwnership | spi.CapRefs,
		func(f *fixture) {
			f.putRef("main", "e", 1, 0)
			f.refuseIdentity()
		},
	},
	{
		"a store that holds a data key takes no identity",
		spi.CapChangeOwnership | spi.CapDataKeys,
		func(f *fixture) {
			f.createKey(newKey(acme, 1))
			f.refuseIdentity()
		},
	},
	{
		"nothing is changed of a store without an identity but to give it one",
		spi.CapChangeOwnership,
		func(f *fixture) {
			_, err := spi.ChangeOwnership(f.ctx, f.store, spi.ChangeOwnershipRequest{ExpectedVersion: 1, Slots: []spi.SlotRecord{slot(7, spi.SlotOwned, 1)}})
			equal(f, "the version", wantError[*spi.OwnershipError](f, err).Version, 0)
			if shards := f.shards(); len(shards) > 0 {
				f.Errorf("it reports %v", shards)
			}
		},
	},
	{
		"the version rises with each change",
		spi.CapChangeOwnership,
		func(f *fixture) {
			version := f.own(slot(7, spi.SlotOwned, 3)).Version
			for _, record := range []spi.SlotRecord{slot(7, spi.SlotFrozen, 3), slot(7, spi.SlotOwned, 3), slot(8, spi.SlotReceiving, 1)} {
				now := f.changeSlots(record)
				if now.Version <= version {
					f.Errorf("the version goes from %d to %d", version, now.Version)
				}
				version = now.Version
				f.wantOwnership(now)
			}
		},
	},
	{
		"a change is refused unless the version is the one that was seen",
		spi.CapChangeOwnership,
		func(f *fixture) {
			seen := f.own(slot(7, spi.SlotOwned, 3)).Version
			now := f.changeSlots(slot(7, spi.SlotFrozen, 3)).Version
			for _, version := range []int64{seen, now + 1, edges[len(edges)-1]} {
				f.refuseChange(spi.ChangeOwnershipRequest{ExpectedVersion: version, Slots: []spi.SlotRecord{slot(7, spi.SlotOwned, 3)}})
			}
		},
	},
	{
		"of eight changes of one version at once one is made",
		spi.CapChangeOwnership,
		func(f *fixture) {
			version := f.own(slot(7, spi.SlotOwned, 3)).Version
			var won [8]bool
			together(len(won), func(i int) {
				_, err := spi.ChangeOwnership(f.ctx, f.store, spi.ChangeOwnershipRequest{ExpectedVersion: version, Slots: []spi.SlotRecord{slot(spi.Slot(100+i), spi.SlotOwned, 1)}})
				won[i] = err == nil
			})
			equal(f, "the number of those made", countTrue(won[:]), 1)
			equal(f, "the number of slots", len(f.shard().Slots), 2)
		},
	},
	{
		"a shard never changes its name or its cluster",
		spi.CapChangeOwnership,
		func(f *fixture) {
			version := f.own(slot(7, spi.SlotOwned, 3)).Version
			shard, cluster := shardOne, shardOne
			shard.Shard, cluster.Cluster = "shard-2", "another"
			for _, identity := range []spi.Identity{shard, cluster} {
				f.refuseChange(spi.ChangeOwnershipRequest{ExpectedVersion: version, Identity: identity})
				f.refuseChange(spi.ChangeOwnershipRequest{ExpectedVersion: version, Identity: identity, Slots: []spi.SlotRecord{slot(8, spi.SlotOwned, 1)}})
			}
		},
	},
	{
		"the fingerprint and the least writer may change, and the slots stay",
		spi.CapChangeOwnership,
		func(f *fixture) {
			want := f.own(slot(7, spi.SlotOwned, 3))
			want.Identity.Fingerprint, want.Identity.MinWriter = "placement/2", spi.Version{Major: want.Identity.MinWriter.Major, Minor: 1}
			want.Version = f.change(spi.ChangeOwnershipRequest{ExpectedVersion: want.Version, Identity: want.Identity}).Version
			f.wantOwnership(want)
			want.Slots = append(want.Slots, slot(8, spi.SlotOwned, 1))
			want.Version = f.changeSlots(slot(8, spi.SlotOwned, 1)).Version
			f.wantOwnership(want)
		},
	},
	{
		"a slot goes from state to state as its records may follow, and in no other way",
		spi.CapChangeOwnership,
		proveTransitions,
	},
	{
		"a change is made whole or not at all",
		spi.CapChangeOwnership,
		func(f *fixture) {
			version := f.own(slot(7, spi.SlotOwned, 3), slot(8, spi.SlotOwned, 1)).Version
			legal, illegal := slot(7, spi.SlotFrozen, 3), slot(8, spi.SlotReleased, 2)
			identity := shardOne
			identity.Fingerprint = "placement/2"
			f.refuseChange(spi.ChangeOwnershipRequest{ExpectedVersion: version, Slots: []spi.SlotRecord{legal, illegal}})
			f.refuseChange(spi.ChangeOwnershipRequest{ExpectedVersion: version, Slots: []spi.SlotRecord{illegal, legal}})
			f.refuseChange(spi.ChangeOwnershipRequest{ExpectedVersion: version, Identity: identity, Slots: []spi.SlotRecord{illegal}})
		},
	},
	{
		"a pin's tenant never changes",
		spi.CapChangeOwnership,
		func(f *fixture) {
			pin := func(tenant spi.TenantName, state spi.SlotState, epoch int64) []spi.SlotRecord {
				return []spi.SlotRecord{{Slot: spi.FirstPin, Tenant: tenant, State: state, Epoch: epoch}}
			}
			version := f.own(pin("acme", spi.SlotOwned, 1)...).Version
			for _, slots := range [][]spi.SlotRecord{pin("other", spi.SlotOwned, 2), pin("Acme", spi.SlotFrozen, 1)} {
				f.refuseChange(spi.ChangeOwnershipRequest{ExpectedVersion: version, Slots: slots})
			}
			version = f.changeSlots(pin("acme", spi.SlotFrozen, 1)...).Version
			f.refuseChange(spi.ChangeOwnershipRequest{ExpectedVersion: version, Slots: pin("other", spi.SlotReleased, 2)})
			version = f.changeSlots(pin("acme", spi.SlotReleased, 2)...).Version
			f.refuseChange(spi.ChangeOwnershipRequest{ExpectedVersion: version, Slots: pin("other", spi.SlotReceiving, 2)})
			f.changeSlots(pin("acme", spi.SlotReceiving, 2)...)
		},
	},
	{
		"an ownership is shared neither with who brought it nor with who reads it",
		spi.CapChangeOwnership,
		func(f *fixture) {
			given := []spi.SlotRecord{slot(7, spi.SlotOwned, 3)}
			now := f.own(given...)
			want := fmt.Sprintf("%+v", now)
			given[0].State, now.Slots[0].Epoch = spi.SlotReleased, 99
			f.shard().Slots[0].Epoch = 98
			equal(f, "the ownership", fmt.Sprintf("%+v", f.shard()), want)
		},
	},

	{
		"a call that states the slot and its epoch is accepted, for every method",
		spi.CapChangeOwnership,
		func(f *fixture) {
			for i, s := range []spi.SlotRecord{slot(7, spi.SlotOwned, 3), {Slot: 65535, State: spi.SlotOwned, Epoch: edges[1], Tenant: "acme"}} {
				if i == 0 {
					f.own(s)
					f.wantAllAccepted(f.routedCalls(at(s)), at(s))
					continue
				}
				f.changeSlots(s)
				f.appendAt(at(s), "pinned")
			}
		},
	},
	{
		"every method refuses a call that nothing has routed, or that states what the shard does not own",
		spi.CapChangeOwnership,
		func(f *fixture) {
			f.own(slot(7, spi.SlotOwned, 3), slot(9, spi.SlotOwned, 1))
			home := spi.Route{Slot: 7, Epoch: 3}
			calls := f.routedCalls(home)
			before := f.everything(home)
			for _, bad := range []struct {
				route spi.Route
				epoch int64
			}{
				{spi.Route{}, 0},
				{spi.Route{Slot: 8, Epoch: 3}, 0},
				{spi.Route{Slot: spi.FirstPin, Epoch: 3}, 0},
				{spi.Route{Slot: 7, Epoch: 2}, 3},
				{spi.Route{Slot: 7, Epoch: 4}, 3},
				{spi.Route{Slot: 7, Epoch: edges[3]}, 3},
				{spi.Route{Slot: 9, Epoch: 3}, 1},
			} {
				for _, c := range calls {
					f.wantMisrouted(c, bad.route, spi.MisroutedError{Shard: shardOne.Shard, Route: bad.route, Epoch: bad.epoch})
				}
			}
			equal(f, "what the store holds", f.everything(home), before)
			f.wantAllAccepted(calls, home)
		},
	},
	{
		"every method refuses a slot that is on its way out",
		spi.CapChangeOwnership,
		func(f *fixture) {
			f.own(slot(7, spi.SlotOwned, 3))
			home := spi.Route{Slot: 7, Epoch: 3}
			calls := f.routedCalls(home)
			before := f.everything(home)
			f.changeSlots(slot(7, spi.SlotFrozen, 3))
			for _, c := range calls {
				f.wantMoving(c, home, spi.SlotFrozen)
			}
			f.changeSlots(slot(7, spi.SlotOwned, 3))
			equal(f, "what the store holds", f.everything(home), before)
			f.wantAllAccepted(calls, home)
		},
	},
	{
		"every method refuses a slot that is gone",
		spi.CapChangeOwnership,
		func(f *fixture) {
			f.own(slot(7, spi.SlotOwned, 3))
			calls := f.routedCalls(spi.Route{Slot: 7, Epoch: 3})
			f.changeSlots(slot(7, spi.SlotFrozen, 3))
			f.changeSlots(slot(7, spi.SlotReleased, 4))
			for _, c := range calls {
				f.wantMoving(c, spi.Route{Slot: 7, Epoch: 4}, spi.SlotReleased)
				if err := c.call(spi.Route{Slot: 7, Epoch: 3}); err == nil {
					f.Errorf("%s is accepted at the epoch before the release", c.name)
				}
			}
		},
	},
	{
		"every method refuses a slot that is on its way in",
		spi.CapChangeOwnership,
		func(f *fixture) {
			f.own(slot(7, spi.SlotOwned, 3))
			calls := f.routedCalls(spi.Route{Slot: 7, Epoch: 3})
			f.changeSlots(slot(8, spi.SlotReceiving, 5))
			before := f.everything(spi.Route{Slot: 7, Epoch: 3})
			for _, c := range calls {
				f.wantMoving(c, spi.Route{Slot: 8, Epoch: 5}, spi.SlotReceiving)
				if err := c.call(spi.Route{Slot: 8, Epoch: 6}); err == nil {
					f.Errorf("%s is accepted at the epoch to come", c.name)
				}
			}
			equal(f, "what the store holds", f.everything(spi.Route{Slot: 7, Epoch: 3}), before)
		},
	},
	{
		"a slot that was received serves calls at its new epoch only",
		spi.CapChangeOwnership,
		func(f *fixture) {
			f.own(slot(7, spi.SlotReceiving, 3))
			f.changeSlots(slot(7, spi.SlotOwned, 4))
			f.refuseAppendAt(spi.Route{Slot: 7, Epoch: 3}, "e")
			f.appendAt(spi.Route{Slot: 7, Epoch: 4}, "e")
		},
	},
	{
		"whoever states the epoch before it was raised is refused",
		spi.CapChangeOwnership,
		func(f *fixture) {
			f.own(slot(7, spi.SlotOwned, 3))
			f.appendAt(spi.Route{Slot: 7, Epoch: 3}, "e")
			f.changeSlots(slot(7, spi.SlotOwned, 4))
			f.refuseAppendAt(spi.Route{Slot: 7, Epoch: 3}, "e")
			f.refuseAppendAt(spi.Route{Slot: 7, Epoch: 3}, "new")
			f.appendAt(spi.Route{Slot: 7, Epoch: 4}, "e")
			f.wantNames("the executions", f.list("", 10), []string{"e"})
		},
	},
	{
		"what is there keeps its slot, and is refused under another that the shard owns",
		spi.CapChangeOwnership,
		func(f *fixture) {
			f.own(slot(7, spi.SlotOwned, 3), slot(9, spi.SlotOwned, 1))
			home, other := spi.Route{Slot: 7, Epoch: 3}, spi.Route{Slot: 9, Epoch: 1}
			calls := f.routedCalls(home)
			before := f.everything(home)
			for _, c := range calls {
				if c.creates {
					continue
				}
				if err := c.call(other); err == nil {
					f.Errorf("%s is accepted in another slot", c.name)
				} else {
					equal(f, "the route", wantError[*spi.MisroutedError](f, err).Route, other)
				}
			}
			equal(f, "what the store holds", f.everything(home), before)
		},
	},
	{
		"in a batch each append is judged by its route",
		spi.CapChangeOwnership | spi.CapAppendBatch,
		func(f *fixture) {
			f.own(slot(7, spi.SlotOwned, 3), slot(8, spi.SlotReceiving, 1), slot(9, spi.SlotOwned, 5))
			results := f.batch(
				spi.AppendRequest{Execution: "seven", Route: spi.Route{Slot: 7, Epoch: 3}, Events: events(1)},
				spi.AppendRequest{Execution: "old", Route: spi.Route{Slot: 7, Epoch: 2}, Events: events(1)},
				spi.AppendRequest{Execution: "moving", Route: spi.Route{Slot: 8, Epoch: 1}, Events: events(1)},
				spi.AppendRequest{Execution: "unrouted", Events: events(1)},
				spi.AppendRequest{Execution: "nine", Route: spi.Route{Slot: 9, Epoch: 5}, Events: events(2)},
			)
			for i, res := range results {
				switch i {
				case 1, 3:
					wantError[*spi.MisroutedError](f, res.Err)
				case 2:
					wantError[*spi.SlotMovingError](f, res.Err)
				default:
					if res.Err != nil {
						f.Errorf("append %d answers %v", i, res.Err)
					}
				}
			}
			f.wantNames("the executions", f.list("", 10), []string{"nine", "seven"})
		},
	},
	{
		"a copy goes from slot to slot of one shard",
		spi.CapChangeOwnership | spi.CapCopyPrefix,
		func(f *fixture) {
			f.own(slot(7, spi.SlotOwned, 3), slot(9, spi.SlotOwned, 1))
			from, to := spi.Route{Slot: 7, Epoch: 3}, spi.Route{Slot: 9, Epoch: 1}
			f.appendAt(from, "e")
			if _, err := spi.CopyPrefix(f.ctx, f.store, spi.CopyPrefixRequest{FromRoute: from, From: "e", Route: to, To: "copy", N: 1}); err != nil {
				f.Fatal(err)
			}
			equal(f, "the copy's head", f.headAt(to, "copy").Head, 1)
		},
	},

	{
		"pages hold the names of slots that list, and the receipt says which",
		spi.CapChangeOwnership,
		func(f *fixture) {
			f.ownEveryState()
			for _, c := range slotNames {
				f.appendAt(c.route, c.name)
			}
			f.moveEveryState()
			f.wantListed(func(after string, limit int, known int64) ([]string, string, spi.Receipt, error) {
				res, err := spi.ListExecutions(f.ctx, f.store, spi.ListExecutionsRequest{After: after, Limit: limit, KnownOwnership: known})
				return plain(res.Executions), res.Next, res.Receipt, err
			})
		},
	},
	{
		"pages of refs hold those of slots that list, and the receipt says which",
		spi.CapChangeOwnership | spi.CapRefs,
		func(f *fixture) {
			f.ownEveryState()
			for _, c := range slotNames {
				if _, err := spi.PutRef(f.ctx, f.store, spi.PutRefRequest{Route: c.route, Name: spi.RefName(c.name), Execution: "e"}); err != nil {
					f.Fatal(err)
				}
			}
			f.moveEveryState()
			f.wantListed(func(after string, limit int, known int64) (names []string, next string, _ spi.Receipt, _ error) {
				res, err := spi.ListRefs(f.ctx, f.store, spi.ListRefsRequest{After: after, Limit: limit, KnownOwnership: known})
				for _, ref := range res.Refs {
					names = append(names, string(ref.Name))
				}
				return names, res.Next, res.Receipt, err
			})
		},
	},
	{
		"pages of data keys hold those of slots that list, and the receipt says which",
		spi.CapChangeOwnership | spi.CapDataKeys,
		func(f *fixture) {
			f.ownEveryState()
			for _, c := range slotNames {
				if _, err := spi.CreateDataKey(f.ctx, f.store, spi.CreateDataKeyRequest{Route: c.route, Key: newKey(spi.KeyOwner(c.name), 1)}); err != nil {
					f.Fatal(err)
				}
			}
			f.moveEveryState()
			f.wantListed(func(after string, limit int, known int64) (names []string, next string, _ spi.Receipt, _ error) {
				res, err := spi.ListDataKeys(f.ctx, f.store, spi.ListDataKeysRequest{After: after, Limit: limit, KnownOwnership: known})
				for _, key := range res.Keys {
					names = append(names, string(key.Owner))
				}
				return names, res.Next, res.Receipt, err
			})
		},
	},
	{
		"due timers are those of slots that list, before the limit",
		spi.CapChangeOwnership | spi.CapTimers,
		func(f *fixture) {
			f.ownEveryState()
			for i, c := range slotNames {
				timer := spi.Timer{Execution: spi.ExecutionID(c.name), WakeAt: longAgo.Add(time.Duration(i) * time.Second)}
				if _, err := spi.ScheduleTimer(f.ctx, f.store, spi.ScheduleTimerRequest{Route: c.route, Timer: timer}); err != nil {
					f.Fatal(err)
				}
			}
			f.moveEveryState()
			for limit := range len(slotsListed) + 2 {
				var got []string
				for _, timer := range f.due(spi.DueTimersRequest{Limit: limit + 1}).Timers {
					got = append(got, string(timer.Execution))
				}
				f.wantNames("due", got, slotsListed[:min(limit+1, len(slotsListed))])
			}
		},
	},
	{
		"a page and its receipt are of one moment",
		spi.CapChangeOwnership,
		func(f *fixture) {
			const first, last = 11, 18
			var slots []spi.SlotRecord
			for s := spi.Slot(first); s <= last; s++ {
				slots = append(slots, slot(s, spi.SlotOwned, 1))
			}
			version := f.own(slots...).Version
			for _, s := range slots {
				f.appendAt(at(s), fmt.Sprintf("e%d", s.Slot))
			}
			var released atomic.Bool
			together(3, func(i int) {
				if i > 0 {
					for again := true; again && !f.Failed(); {
						again = !released.Load()
						f.checkReceipt(first, last)
					}
					return
				}
				defer released.Store(true)
				for _, s := range slots {
					for _, next := range []spi.SlotRecord{slot(s.Slot, spi.SlotFrozen, 1), slot(s.Slot, spi.SlotReleased, 2)} {
						res, err := spi.ChangeOwnership(f.ctx, f.store, spi.ChangeOwnershipRequest{ExpectedVersion: version, Slots: []spi.SlotRecord{next}})
						if err != nil {
							f.Error(err)
							return
						}
						version = res.Ownership.Version
					}
				}
			})
		},
	},

	{
		"no append slips past a change of ownership (invariant 1)",
		spi.CapChangeOwnership,
		func(f *fixture) {
			f.raceFreeze(func(name string, route spi.Route) error {
				_, err := spi.Append(f.ctx, f.store, spi.AppendRequest{Route: route, Execution: spi.ExecutionID(name), Events: events(1)})
				return err
			}, func() []string { return f.list("", spi.MaxLimit) })
		},
	},
	{
		"no append in a batch slips past a change of ownership (invariant 1)",
		spi.CapChangeOwnership | spi.CapAppendBatch,
		func(f *fixture) {
			f.raceFreeze(func(name string, route spi.Route) error {
				res, err := spi.AppendBatch(f.ctx, f.store, spi.AppendBatchRequest{Appends: []spi.AppendRequest{{Route: route, Execution: spi.ExecutionID(name), Events: events(1)}}})
				if err != nil {
					return err
				}
				return only(res)
			}, func() []string { return f.list("", spi.MaxLimit) })
		},
	},
	{
		"no ref slips past a change of ownership (invariant 1)",
		spi.CapChangeOwnership | spi.CapRefs,
		func(f *fixture) {
			f.raceFreeze(func(name string, route spi.Route) error {
				_, err := spi.PutRef(f.ctx, f.store, spi.PutRefRequest{Route: route, Name: spi.RefName(name), Execution: "e"})
				return err
			}, func() []string { return f.listRefs("", spi.MaxLimit) })
		},
	},
	{
		"no timer slips past a change of ownership (invariant 1)",
		spi.CapChangeOwnership | spi.CapTimers,
		func(f *fixture) {
			f.raceFreeze(func(name string, route spi.Route) error {
				_, err := spi.ScheduleTimer(f.ctx, f.store, spi.ScheduleTimerRequest{Route: route, Timer: spi.Timer{Execution: spi.ExecutionID(name), WakeAt: longAgo}})
				return err
			}, func() (names []string) {
				for _, t := range f.due(spi.DueTimersRequest{}).Timers {
					names = append(names, string(t.Execution))
				}
				return names
			})
		},
	},
	{
		"no data key slips past a change of ownership (invariant 1)",
		spi.CapChangeOwnership | spi.CapDataKeys,
		func(f *fixture) {
			f.raceFreeze(func(name string, route spi.Route) error {
				_, err := spi.CreateDataKey(f.ctx, f.store, spi.CreateDataKeyRequest{Route: route, Key: newKey(spi.KeyOwner(name), 1)})
				return err
			}, func() []string { return f.listOwners("", "", spi.MaxLimit) })
		},
	},

	{
		"ownership survives reopening",
		spi.CapChangeOwnership,
		func(f *fixture) {
			f.own(slot(7, spi.SlotOwned, 3), slot(8, spi.SlotOwned, 1), spi.SlotRecord{Slot: spi.FirstPin, State: spi.SlotReceiving, Epoch: 2, Peer: "shard-2", Tenant: "acme"})
			f.appendAt(spi.Route{Slot: 7, Epoch: 3}, "e")
			want := f.changeSlots(slot(8, spi.SlotFrozen, 1))
			f.reopen()
			f.wantOwnership(want)
			for _, route := range []spi.Route{{}, {Slot: 7, Epoch: 2}, {Slot: 8, Epoch: 1}} {
				f.refuseAppendAt(route, "new")
			}
			f.appendAt(spi.Route{Slot: 7, Epoch: 3}, "e")
			f.refuseChange(spi.ChangeOwnershipRequest{Identity: shardOne})
			f.changeSlots(slot(8, spi.SlotReleased, 2))
		},
	},
}}

func slot(n spi.Slot, state spi.SlotState, epoch int64) spi.SlotRecord {
	return spi.SlotRecord{Slot: n, State: state, Epoch: epoch}
}

// at returns the route of a slot at its epoch.
func at(s spi.SlotRecord) spi.Route { return spi.Route{Slot: s.Slot, Epoch: s.Epoch} }

func (f *fixture) shards() []spi.ShardOwnership {
	f.Helper()
	res, err := spi.GetOwnership(f.ctx, f.store, spi.GetOwnershipRequest{})
	if err != nil {
		f.Fatal(err)
	}
	return res.Shards
}

// shard returns what the one shard says of itself.
func (f *fixture) shard() spi.ShardOwnership {
	f.Helper()
	shards := f.shards()
	if len(shards) != 1 {
		f.Fatalf("%d shards say what they own, not 1", len(shards))
	}
	return shards[0]
}

func (f *fixture) wantOwnership(want spi.ShardOwnership) {
	f.Helper()
	equal(f, "the ownership", fmt.Sprintf("%+v", f.shard()), fmt.Sprintf("%+v", want))
}

func (f *fixture) change(req spi.ChangeOwnershipRequest) spi.ShardOwnership {
	f.Helper()
	res, err := spi.ChangeOwnership(f.ctx, f.store, req)
	if err != nil {
		f.Fatal(err)
	}
	return res.Ownership
}

// own gives the store its identity and its first slots.
func (f *fixture) own(slots ...spi.SlotRecord) spi.ShardOwnership {
	f.Helper()
	return f.change(spi.ChangeOwnershipRequest{Identity: shardOne, Slots: slots})
}

// changeSlots changes slots, whatever the version is.
func (f *fixture) changeSlots(slots ...spi.SlotRecord) spi.ShardOwnership {
	f.Helper()
	return f.change(spi.ChangeOwnershipRequest{ExpectedVersion: f.shard().Version, Slots: slots})
}

// refuseChange checks that a change is refused and changes nothing.
func (f *fixture) refuseChange(req spi.ChangeOwnershipRequest) {
	f.Helper()
	now := f.shard()
	_, err := spi.ChangeOwnership(f.ctx, f.store, req)
	e := wantError[*spi.OwnershipError](f, err)
	equal(f, "the error's shard", e.Shard, now.Identity.Shard)
	equal(f, "the error's version", e.Version, now.Version)
	if e.Reason == "" {
		f.Error("no reason is given")
	}
	f.wantOwnership(now)
}

// refuseIdentity checks that the store takes no identity.
func (f *fixture) refuseIdentity() {
	f.Helper()
	_, err := spi.ChangeOwnership(f.ctx, f.store, spi.ChangeOwnershipRequest{Identity: shardOne, Slots: []spi.SlotRecord{slot(7, spi.SlotOwned, 1)}})
	wantError[*spi.OwnershipError](f, err)
	if shards := f.shards(); len(shards) > 0 {
		f.Errorf("it reports %v", shards)
	}
}

// proveTransitions tries every step from every state, each with a slot of its own.
func proveTransitions(f *fixture) {
	const epoch = 5
	states := []spi.SlotState{0, spi.SlotOwned, spi.SlotFrozen, spi.SlotReleased, spi.SlotReceiving}
	type step struct{ now, next spi.SlotRecord }
	var steps []step
	var owned, frozen, released []spi.SlotRecord // how the slots get to where they are
	for _, from := range states {
		for _, to := range states[1:] {
			for e := int64(epoch - 1); e <= epoch+3; e++ {
				n := spi.Slot(100 + len(steps))
				now := slot(n, from, epoch)
				switch from {
				case 0:
					now = spi.SlotRecord{}
				case spi.SlotReceiving:
					owned = append(owned, now)
				default:
					owned = append(owned, slot(n, spi.SlotOwned, epoch))
				}
				if from == spi.SlotFrozen || from == spi.SlotReleased {
					frozen = append(frozen, slot(n, spi.SlotFrozen, epoch))
				}
				if from == spi.SlotReleased {
					now.Epoch++
					released = append(released, now)
				}
				steps = append(steps, step{now, slot(n, to, e)})
			}
		}
	}
	version := f.own(owned...).Version
	version = f.change(spi.ChangeOwnershipRequest{ExpectedVersion: version, Slots: frozen}).Version
	version = f.change(spi.ChangeOwnershipRequest{ExpectedVersion: version, Slots: released}).Version
	want := map[spi.Slot]spi.SlotRecord{}
	for _, s := range steps {
		if s.now.State != 0 {
			want[s.now.Slot] = s.now
		}
		res, err := spi.ChangeOwnership(f.ctx, f.store, spi.ChangeOwnershipRequest{ExpectedVersion: version, Slots: []spi.SlotRecord{s.next}})
		why := s.next.Follows(s.now)
		switch {
		case why == "" && err != nil:
			f.Errorf("from %v at %d to %v at %d: %v", s.now.State, s.now.Epoch, s.next.State, s.next.Epoch, err)
		case why != "" && err == nil:
			f.Errorf("it is accepted, though %s", why)
		case why != "":
			equal(f, "the error's version", wantError[*spi.OwnershipError](f, err).Version, version)
		}
		if err == nil {
			version = res.Ownership.Version
			want[s.next.Slot] = s.next
		}
	}
	slots := slices.Collect(maps.Values(want))
	slices.SortFunc(slots, func(a, b spi.SlotRecord) int { return int(a.Slot) - int(b.Slot) })
	f.wantOwnership(spi.ShardOwnership{Identity: shardOne, Version: version, Slots: slots})
}

// ownEveryState makes the store own the slots of slotNames.
func (f *fixture) ownEveryState() {
	f.Helper()
	f.own(slot(20, spi.SlotOwned, 1), slot(21, spi.SlotOwned, 1), slot(22, spi.SlotOwned, 1), slot(23, spi.SlotOwned, 1),
		slot(30, spi.SlotReceiving, 1), spi.SlotRecord{Slot: spi.FirstPin, State: spi.SlotOwned, Epoch: 1, Tenant: "acme"})
}

// moveEveryState brings them into the states that slotNames says.
func (f *fixture) moveEveryState() {
	f.Helper()
	f.changeSlots(slot(22, spi.SlotFrozen, 1), slot(23, spi.SlotFrozen, 1))
	f.changeSlots(slot(23, spi.SlotReleased, 2))
}

// wantListed checks the pages over slotNames in every size, and their receipts.
func (f *fixture) wantListed(page func(after string, limit int, known int64) ([]string, string, spi.Receipt, error)) {
	f.Helper()
	version := f.shard().Version
	for size := 1; size <= len(slotNames)+1; size++ {
		for _, known := range []int64{0, version - 1, version, version + 1} {
			want := listingSet
			if known == version {
				want = nil
			}
			var got []string
			for after := ""; ; {
				names, next, receipt, err := page(after, size, known)
				if err != nil {
					f.Fatal(err)
				}
				f.checkPage(names, after, next, size)
				f.checkAfter(names, after)
				got = append(got, names...)
				if len(receipt) != 1 || receipt[0].Shard != shardOne.Shard || receipt[0].Version != version || !slices.Equal(receipt[0].Slots, want) {
					f.Errorf("to one who knows version %d the receipt is %+v, not version %d of %q with slots %v", known, receipt, version, shardOne.Shard, want)
				}
				if after = next; after == "" {
					break
				}
			}
			f.wantNames(fmt.Sprintf("in pages of %d", size), got, slotsListed)
		}
	}
}

// checkReceipt checks that a page holds the executions, one a slot, of exactly the
// slots that its receipt says.
func (f *fixture) checkReceipt(first, last spi.Slot) {
	res, err := spi.ListExecutions(f.ctx, f.store, spi.ListExecutionsRequest{Limit: spi.MaxLimit})
	if err != nil || len(res.Receipt) != 1 {
		f.Errorf("the page answers %v with the receipt %+v", err, res.Receipt)
		return
	}
	for s := first; s <= last; s++ {
		listed := slices.Contains(res.Executions, id("e%d", int(s)))
		if covered := res.Receipt[0].Slots.Contains(s); covered != listed {
			f.Errorf("at version %d slot %d is covered: %t, and its execution listed: %t", res.Receipt[0].Version, s, covered, listed)
		}
	}
}
