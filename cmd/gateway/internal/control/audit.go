package control

import (
	"context"
	"iter"
	"time"

	"github.com/loomgate/loomgate/spi"
)

// An Action is one entry of the audit trail. It never holds what proves an API key.
type Action struct {
	Sequence int64
	At       time.Time
	Kind     string // such as TenantCreated; also one that only a newer gateway knows
	By       Actor
	Tenant   spi.TenantName // whom it is about; "" if it is about no one tenant
	APIKey   string         // the id of the key that it is about; "" if it is about none
	Grant    Grant          // of a key that was created

	Execution spi.ExecutionID // that it is about; "" if it is about no one execution
	Shard     string          // that it is about; "" if it is about no one shard
}

// A NoteKind is the kind of an action that changes nothing of the records.
type NoteKind string

// Note leaves an action of an operator in the audit trail: before it is done, so that no
// action is without its record. The execution is "" if it is about the whole tenant, and so
// is the tenant if it is about no one tenant. The error is a [NotFoundError] if there is no
// such tenant.
func (r *Records) Note(ctx context.Context, by Actor, kind NoteKind, tenant spi.TenantName, execution spi.ExecutionID) error {
	_, err := r.change(ctx, by, func(s *state) (decision, error) {
		if _, found := s.tenants.Get(tenant); !found && tenant != "" {
			return decision{}, &NotFoundError{"tenant", string(tenant)}
		}
		return decision{kind: string(kind), record: record{Tenant: tenant, Execution: execution}}, nil
	})
	return err
}

// NoteShard is [Records.Note] of an action that is about a shard.
func (r *Records) NoteShard(ctx context.Context, by Actor, kind NoteKind, shard string) error {
	_, err := r.change(ctx, by, func(*state) (decision, error) {
		return decision{kind: string(kind), record: record{Shard: shard}}, nil
	})
	return err
}

// Audit goes through what happened after a sequence, from the log itself. A [RecordError]
// is about one record, and the next ones follow it; any other error is the end.
func (r *Records) Audit(ctx context.Context, after int64) iter.Seq2[Action, error] {
	return func(yield func(Action, error) bool) {
		for more := true; more; {
			page, err := r.readPage(ctx, after)
			if err != nil {
				yield(Action{}, err)
				return
			}
			for i := range page.Events {
				e := &page.Events[i]
				after = e.Sequence
				rec, _, err := decode(e)
				if !yield(Action{
					Sequence:  e.Sequence,
					At:        e.RecordedAt,
					Kind:      e.Kind,
					By:        Actor{rec.By, rec.From},
					Tenant:    rec.Tenant,
					APIKey:    rec.APIKey,
					Execution: rec.Execution,
					Shard:     rec.Shard,
					Grant:     Grant{rec.Tenants, rec.AllTenants, scopesOf(rec.Scopes), rec.ExpiresAt},
				}, err) {
					return
				}
			}
			more = page.More
		}
	}
}
