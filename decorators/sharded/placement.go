package sharded

import (
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/loomgate/loomgate/spi"
)

// A Placement says which part of a name its slot depends on. A name that no
// [spi.Scope] made is hashed whole under any.
type Placement uint8

const (
	// ByExecution spreads a tenant's executions, refs and leases over all shards.
	ByExecution Placement = iota

	// ByTenant keeps all that is a tenant's on one shard.
	ByTenant
)

func (p Placement) String() string {
	switch p {
	case ByExecution:
		return "execution"
	case ByTenant:
		return "tenant"
	}
	return fmt.Sprintf("placement %d", uint8(p))
}

// Fingerprint names the placement: hash, number of slots, rule and its version.
// Each shard has it in its identity, so that nobody places names otherwise than
// those who have filled it.
func (p Placement) Fingerprint() string {
	return fmt.Sprintf("xxhash64/%d/%v/1", spi.HashSlots, p)
}

// Slot returns the hash slot of a name as shared shards store it: with the scope of
// its tenant in front. It is where the name lies, unless its tenant is pinned.
func (p Placement) Slot(name string) spi.Slot {
	if p == ByTenant {
		if _, outer, scoped := spi.SplitScope(name); scoped {
			name = name[:len(name)-len(outer)]
		}
	}
	return slotOf(xxhash.Sum64String(name))
}

func slotOf(hash uint64) spi.Slot { return spi.Slot(hash % spi.HashSlots) }

// A placer places names as they reach the shards.
type placer struct {
	Placement

	// Where the shards are one tenant's views, the scope that the views put in
	// front counts too: tenant, a hash that has begun with the scope's prefix, and
	// the slot of the bare scope.
	tenant spi.TenantName
	begun  xxhash.Digest
	scope  spi.Slot
}

// newPlacer returns a placer; without a tenant names come with their scope.
func newPlacer(p Placement, tenant spi.TenantName) (placer, error) {
	if p > ByTenant {
		return placer{}, &spi.InvalidArgumentError{Field: "placement", Rule: "is none that there is"}
	}
	if tenant == "" {
		return placer{Placement: p}, nil
	}
	scope, err := spi.ScopeOf(tenant)
	if err != nil {
		return placer{}, err
	}
	placer := placer{Placement: p, tenant: tenant, scope: p.Slot(scope.Prefix())}
	placer.begun.Reset()
	_, _ = placer.begun.WriteString(scope.Prefix())
	return placer, nil
}

func (p *placer) hashSlot(name string) spi.Slot {
	switch {
	case p.tenant == "":
		return p.Slot(name)
	case p.Placement == ByTenant:
		return p.scope
	}
	hash := p.begun
	_, _ = hash.WriteString(name) // never fails
	return slotOf(hash.Sum64())
}
