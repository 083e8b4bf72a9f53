package fair

import (
	"slices"

	"github.com/loomgate/loomgate/spi"
)

// A line is the calls of a class: how many are under way, and whose wait.
type line struct {
	under   int
	tenants map[spi.TenantName]*party // that have a call under way, or waiting
	turns   []*party                  // that have one waiting, in the order of their turns
}

// A party is a tenant's calls.
type party struct {
	tenant  spi.TenantName
	under   int
	waiting []*waiter
}

// A waiter is a call that wants to be done.
type waiter struct{ entered chan struct{} } // closed when it may

// of returns a tenant's calls.
func (l *line) of(tenant spi.TenantName) *party {
	p := l.tenants[tenant]
	if p == nil {
		p = &party{tenant: tenant}
		l.tenants[tenant] = p
	}
	return p
}

// put makes a call wait behind those of its tenant.
func (l *line) put(p *party) *waiter {
	w := &waiter{make(chan struct{})}
	if len(p.waiting) == 0 {
		l.turns = append(l.turns, p)
	}
	p.waiting = append(p.waiting, w)
	return w
}

// admit lets in the next call of the tenant that has the fewest under way, of those the
// one whose turn it is, and puts the tenant behind the others.
func (l *line) admit() {
	turn := 0
	for i, p := range l.turns {
		if p.under < l.turns[turn].under {
			turn = i
		}
	}
	p := l.turns[turn]
	l.turns = slices.Delete(l.turns, turn, turn+1)
	w := p.waiting[0]
	p.waiting[0] = nil // the array stays for a while
	if p.waiting = p.waiting[1:]; len(p.waiting) > 0 {
		l.turns = append(l.turns, p)
	}
	l.enter(p)
	close(w.entered)
}

func (l *line) enter(p *party) {
	l.under++
	p.under++
}

func (l *line) leave(p *party) {
	l.under--
	p.under--
	l.forget(p)
}

// remove takes out a call that gives up. It reports false if it has entered already.
func (l *line) remove(p *party, w *waiter) bool {
	i := slices.Index(p.waiting, w)
	if i < 0 {
		return false
	}
	if p.waiting = slices.Delete(p.waiting, i, i+1); len(p.waiting) == 0 {
		i := slices.Index(l.turns, p)
		l.turns = slices.Delete(l.turns, i, i+1)
		l.forget(p)
	}
	return true
}

// forget drops a tenant that has nothing here.
func (l *line) forget(p *party) {
	if p.under == 0 && len(p.waiting) == 0 {
		delete(l.tenants, p.tenant)
	}
}
