package conformance

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// aLongLease does not expire while a case runs.
const aLongLease = time.Hour

var leases = topic{"leases", []testCase{
	{
		"a free lease is acquired",
		spi.CapLeases,
		func(f *fixture) {
			before := f.leaseClock()
			lease := f.acquireLease("poller", "ann", aLongLease)
			after := f.leaseClock()
			if lease.Token < 1 {
				f.Errorf("the token is %d", lease.Token)
			}
			if begin := lease.ExpiresAt.Add(-aLongLease); begin.Before(before.Add(-clockSpread)) || begin.After(after.Add(clockSpread)) {
				f.Errorf("a lease acquired between %v and %v begins at %v", before, after, begin)
			}
		},
	},
	{
		"a lease that somebody else holds is refused, and says whose it is until when",
		spi.CapLeases,
		func(f *fixture) {
			lease := f.acquireLease("poller", "ann", aLongLease)
			f.wantHeld("poller", "bob", "ann", lease.ExpiresAt)
			f.wantHeld("poller", "Ann", "ann", lease.ExpiresAt)
		},
	},
	{
		"a refused acquire leaves the lease to its holder",
		spi.CapLeases,
		func(f *fixture) {
			lease := f.acquireLease("poller", "ann", aLongLease)
			f.wantHeld("poller", "bob", "ann", lease.ExpiresAt)
			f.renewLease("poller", lease.Token, aLongLease)
			f.wantReleased("poller", lease.Token, true)
		},
	},
	{
		"a holder who acquires again gets the same token and a new end",
		spi.CapLeases,
		func(f *fixture) {
			lease := f.acquireLease("poller", "ann", aLongLease)
			longer := f.acquireLease("poller", "ann", 2*aLongLease)
			equal(f, "the token", longer.Token, lease.Token)
			if !longer.ExpiresAt.After(lease.ExpiresAt) {
				f.Errorf("twice the time ends at %v, and the time at %v", longer.ExpiresAt, lease.ExpiresAt)
			}
			shorter := f.acquireLease("poller", "ann", aLongLease/2)
			equal(f, "the token", shorter.Token, lease.Token)
			f.wantHeld("poller", "bob", "ann", shorter.ExpiresAt)
		},
	},
	{
		"a renewal sets a new end, later or earlier",
		spi.CapLeases,
		func(f *fixture) {
			lease := f.acquireLease("poller", "ann", aLongLease)
			longer := f.renewLease("poller", lease.Token, 2*aLongLease)
			if !longer.After(lease.ExpiresAt) {
				f.Errorf("twice the time ends at %v, and the time at %v", longer, lease.ExpiresAt)
			}
			f.wantHeld("poller", "bob", "ann", longer)
			shorter := f.renewLease("poller", lease.Token, aLongLease/2)
			if !shorter.Before(lease.ExpiresAt) {
				f.Errorf("half the time ends at %v, and the time at %v", shorter, lease.ExpiresAt)
			}
			f.wantHeld("poller", "bob", "ann", shorter)
		},
	},
	{
		"a lease that was never acquired cannot be renewed",
		spi.CapLeases,
		func(f *fixture) {
			f.wantLost("never", 1)
			f.acquireLease("never", "ann", aLongLease)
		},
	},
	{
		"a lease of another token cannot be renewed",
		spi.CapLeases,
		func(f *fixture) {
			lease := f.acquireLease("poller", "ann", aLongLease)
			for _, token := range []int64{lease.Token + 1, math.MaxInt64} {
				f.wantLost("poller", token)
			}
			f.wantHeld("poller", "bob", "ann", lease.ExpiresAt)
		},
	},
	{
		"a lease that was released cannot be renewed",
		spi.CapLeases,
		func(f *fixture) {
			lease := f.acquireLease("poller", "ann", aLongLease)
			f.wantReleased("poller", lease.Token, true)
			f.wantLost("poller", lease.Token)
			f.acquireLease("poller", "bob", aLongLease)
			f.wantLost("poller", lease.Token)
		},
	},
	{
		"a lease that was released goes to the next at once, under a new token",
		spi.CapLeases,
		func(f *fixture) {
			lease := f.acquireLease("poller", "ann", aLongLease)
			f.wantReleased("poller", lease.Token, true)
			next := f.acquireLease("poller", "bob", aLongLease)
			if next.Token == lease.Token {
				f.Errorf("both holders have the token %d", next.Token)
			}
			f.wantHeld("poller", "ann", "bob", next.ExpiresAt)
		},
	},
	{
		"to release what one no longer holds is no error and releases nothing",
		spi.CapLeases,
		func(f *fixture) {
			f.wantReleased("never", 1, false)
			lease := f.acquireLease("poller", "ann", aLongLease)
			f.wantReleased("poller", lease.Token+1, false)
			f.wantHeld("poller", "bob", "ann", lease.ExpiresAt)
			f.wantReleased("poller", lease.Token, true)
			f.wantReleased("poller", lease.Token, false)
			next := f.acquireLease("poller", "bob", aLongLease)
			f.wantReleased("poller", lease.Token, false)
			f.wantHeld("poller", "ann", "bob", next.ExpiresAt)
		},
	},
	{
		"a lease that has expired is lost, though nobody took it",
		spi.CapLeases,
		func(f *fixture) {
			lease := f.acquireLease("poller", "ann", spi.MinLeaseTTL)
			f.awaitLeaseClock(lease.ExpiresAt)
			f.wantLost("poller", lease.Token)
			f.wantReleased("poller", lease.Token, false)
		},
	},
	{
		"a lease that has expired goes to the next, and the old holder harms nobody",
		spi.CapLeases,
		func(f *fixture) {
			lease := f.acquireLease("poller", "ann", spi.MinLeaseTTL)
			f.awaitLeaseClock(lease.ExpiresAt)
			next := f.acquireLease("poller", "bob", aLongLease)
			if next.Token == lease.Token {
				f.Errorf("both holders have the token %d", next.Token)
			}
			f.wantLost("poller", lease.Token)
			f.wantReleased("poller", lease.Token, false)
			f.wantHeld("poller", "ann", "bob", next.ExpiresAt)
			f.renewLease("poller", next.Token, aLongLease)
		},
	},
	{
		"whoever lets a lease expire gets it again under a new token",
		spi.CapLeases,
		func(f *fixture) {
			lease := f.acquireLease("poller", "ann", spi.MinLeaseTTL)
			f.awaitLeaseClock(lease.ExpiresAt)
			again := f.acquireLease("poller", "ann", aLongLease)
			if again.Token == lease.Token {
				f.Errorf("two holdings have the token %d", again.Token)
			}
			f.wantLost("poller", lease.Token)
		},
	},
	{
		"a lease that was renewed ends when the renewal says",
		spi.CapLeases,
		func(f *fixture) {
			lease := f.acquireLease("poller", "ann", aLongLease)
			f.awaitLeaseClock(f.renewLease("poller", lease.Token, spi.MinLeaseTTL))
			f.wantLost("poller", lease.Token)
			f.acquireLease("poller", "bob", aLongLease)
		},
	},
	{
		"no token of a name is used again",
		spi.CapLeases,
		func(f *fixture) {
			seen := map[int64]bool{}
			for i := range 6 {
				holder := []string{"ann", "bob"}[i/2%2]
				lease := f.acquireLease("poller", holder, aLongLease)
				if lease.Token < 1 || seen[lease.Token] {
					f.Errorf("the token %d is below 1 or was used before", lease.Token)
				}
				for old := range seen {
					f.wantLost("poller", old)
				}
				seen[lease.Token] = true
				f.wantReleased("poller", lease.Token, true)
			}
		},
	},
	{
		"of eight who acquire a lease at once one wins",
		spi.CapLeases,
		func(f *fixture) {
			for round := range 4 {
				name := spi.LeaseName(id("poller-%d", round))
				var res [8]spi.AcquireLeaseResponse
				var errs [8]error
				together(len(res), func(i int) {
					res[i], errs[i] = f.tryLease(name, string(id("worker-%d", i)), aLongLease)
				})
				winner := slices.Index(errs[:], nil)
				if winner < 0 {
					f.Fatalf("nobody wins; the first is told %v", errs[0])
				}
				for i, err := range errs {
					if i != winner {
						f.wantHolder(err, name, string(id("worker-%d", winner)), res[winner].ExpiresAt)
					}
				}
				f.renewLease(name, res[winner].Token, aLongLease)
			}
		},
	},
	{
		"of eight who take over an expired lease at once one wins",
		spi.CapLeases,
		func(f *fixture) {
			old := f.acquireLease("poller", "ann", spi.MinLeaseTTL)
			f.awaitLeaseClock(old.ExpiresAt)
			var won [8]bool
			together(len(won), func(i int) {
				res, err := f.tryLease("poller", string(id("worker-%d", i)), aLongLease)
				if won[i] = err == nil; won[i] && res.Token == old.Token {
					f.Errorf("the token %d is used again", old.Token)
				}
			})
			equal(f, "the number of winners", countTrue(won[:]), 1)
		},
	},
	{
		"eight acquires of one holder get one token",
		spi.CapLeases,
		func(f *fixture) {
			var tokens [8]int64
			together(len(tokens), func(i int) {
				res, err := f.tryLease("poller", "ann", aLongLease)
				if err != nil {
					f.Error(err)
				}
				tokens[i] = res.Token
			})
			for _, token := range tokens {
				equal(f, "the token", token, tokens[0])
			}
		},
	},
	{
		"leases of different names have nothing to do with each other",
		spi.CapLeases,
		func(f *fixture) {
			names := []spi.LeaseName{"a", "A", "a ", "é", "e\u0301", "\U0001F600", spi.LeaseName(f.longest("n"))}
			var all []spi.AcquireLeaseResponse
			for i, name := range names {
				all = append(all, f.acquireLease(name, string(id("worker-%d", i)), aLongLease))
			}
			f.wantReleased(names[0], all[0].Token, true)
			for i, name := range names[1:] {
				f.wantHeld(name, "bob", string(id("worker-%d", i+1)), all[i+1].ExpiresAt)
			}
		},
	},
	{
		"a holder may have any name, up to the longest",
		spi.CapLeases,
		func(f *fixture) {
			for i, holder := range []string{" ", "Ann/é", "\U0001F600", strings.Repeat("h", spi.MaxDescription)} {
				name := spi.LeaseName(id("poller-%d", i))
				f.wantHeld(name, "bob", holder, f.acquireLease(name, holder, aLongLease).ExpiresAt)
			}
		},
	},
	{
		"the longest and the most exact lease end when they should",
		spi.CapLeases,
		func(f *fixture) {
			for i, ttl := range []time.Duration{spi.MaxLeaseTTL, 12_345_678_901 * time.Microsecond} {
				name := spi.LeaseName(id("poller-%d", i))
				before := f.leaseClock()
				begin := f.acquireLease(name, "ann", ttl).ExpiresAt.Add(-ttl)
				if after := f.leaseClock(); begin.Before(before.Add(-clockSpread)) || begin.After(after.Add(clockSpread)) {
					f.Errorf("a lease of %v acquired between %v and %v begins at %v", ttl, before, after, begin)
				}
			}
		},
	},
	{
		"a lease lists nothing",
		spi.CapLeases,
		func(f *fixture) {
			f.acquireLease("poller", "ann", aLongLease)
			f.wantNames("the executions", f.list("", 10), nil)
			equal(f, "the head", f.head("poller").Head, 0)
		},
	},
	{
		"leases survive reopening",
		spi.CapLeases,
		func(f *fixture) {
			lease, released := f.acquireLease("poller", "ann", aLongLease), f.acquireLease("other", "ann", aLongLease)
			f.wantReleased("other", released.Token, true)
			f.reopen()
			f.wantHeld("poller", "bob", "ann", lease.ExpiresAt)
			equal(f, "the token", f.acquireLease("poller", "ann", aLongLease).Token, lease.Token)
			if next := f.acquireLease("other", "bob", aLongLease); next.Token == released.Token {
				f.Errorf("the token %d is used again", next.Token)
			}
		},
	},
}}

func (f *fixture) tryLease(name spi.LeaseName, holder string, ttl time.Duration) (spi.AcquireLeaseResponse, error) {
	return spi.AcquireLease(f.ctx, f.store, spi.AcquireLeaseRequest{Name: name, Holder: holder, TTL: ttl})
}

func (f *fixture) acquireLease(name spi.LeaseName, holder string, ttl time.Duration) spi.AcquireLeaseResponse {
	f.Helper()
	res, err := f.tryLease(name, holder, ttl)
	if err != nil {
		f.Fatal(err)
	}
	return res
}

// renewLease renews a lease and returns its new end.
func (f *fixture) renewLease(name spi.LeaseName, token int64, ttl time.Duration) time.Time {
	f.Helper()
	res, err := spi.RenewLease(f.ctx, f.store, spi.RenewLeaseRequest{Name: name, Token: token, TTL: ttl})
	if err != nil {
		f.Fatal(err)
	}
	return res.ExpiresAt
}

// wantReleased checks whether a lease can be released under a token.
func (f *fixture) wantReleased(name spi.LeaseName, token int64, want bool) {
	f.Helper()
	res, err := spi.ReleaseLease(f.ctx, f.store, spi.ReleaseLeaseRequest{Name: name, Token: token})
	if err != nil {
		f.Fatal(err)
	}
	equal(f, "released", res.Released, want)
}

// wantHeld checks that a lease is refused to one who wants it, because another
// holds it.
func (f *fixture) wantHeld(name spi.LeaseName, wants, holder string, until time.Time) {
	f.Helper()
	_, err := f.tryLease(name, wants, aLongLease)
	f.wantHolder(err, name, holder, until)
}

func (f *fixture) wantHolder(err error, name spi.LeaseName, holder string, until time.Time) {
	f.Helper()
	e := wantError[*spi.LeaseHeldError](f, err)
	equal(f, "the lease", e.Name, name)
	equal(f, "its holder", e.Holder, holder)
	if !e.ExpiresAt.Equal(until) {
		f.Errorf("its end is %v, not %v", e.ExpiresAt, until)
	}
}

// wantLost checks that a lease cannot be renewed under a token.
func (f *fixture) wantLost(name spi.LeaseName, token int64) {
	f.Helper()
	_, err := spi.RenewLease(f.ctx, f.store, spi.RenewLeaseRequest{Name: name, Token: token, TTL: aLongLease})
	equal(f, "the lost lease", wantError[*spi.LeaseLostError](f, err).Name, name)
}

// clockSpread is how far the clocks of one store's shards may be apart.
const clockSpread = 50 * time.Millisecond

// leaseClock returns the store's time, by a lease of its own.
func (f *fixture) leaseClock() time.Time {
	f.Helper()
	return f.acquireLease("the clock", "the clock", aLongLease).ExpiresAt.Add(-aLongLease)
}

// awaitLeaseClock polls until the store's time is past an end.
func (f *fixture) awaitLeaseClock(end time.Time) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, 10*time.Second)
	defer cancel()
	for !f.leaseClock().After(end.Add(clockSpread)) {
		if ctx.Err() != nil {
			f.Fatalf("the store's time never gets past %v", end)
		}
	}
}
