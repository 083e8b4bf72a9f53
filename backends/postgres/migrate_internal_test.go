package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/internal/pgtest"
)

// TestMigrationRestoresTheCallersTimeouts looks at a step's settings while it works,
// in the rest of its transaction, and after it.
func TestMigrationRestoresTheCallersTimeouts(t *testing.T) {
	db := pgtest.Fresh(t, pgtest.ICU)
	s, err := Migration{LockTimeout: 1500 * time.Millisecond}.connect(t.Context(), db.Direct+"&lock_timeout=7000&statement_timeout=9000&search_path=public")
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	type queries interface {
		QueryRow(context.Context, string, ...any) pgx.Row
	}
	check := func(when string, q queries, want string) {
		t.Helper()
		var got string
		if err := q.QueryRow(t.Context(), "SELECT concat_ws(' ', current_setting('lock_timeout'), current_setting('statement_timeout'), current_setting('search_path'))").Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s: %s, not %s", when, got, want)
		}
	}
	const callers = "7s 9s public"
	err = pgx.BeginFunc(t.Context(), s.conn, func(tx pgx.Tx) error {
		err := s.bounded(t.Context(), tx, func() error {
			check("in a step", tx, "1500ms 0 pg_catalog")
			return nil
		})
		check("after its work", tx, callers)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.run(t.Context(), Step{Statements: []string{"SELECT"}}); err != nil {
		t.Fatal(err)
	}
	check("after a step", s.conn, callers)
	if err := s.run(t.Context(), Step{Statements: []string{"no SQL"}}); err == nil {
		t.Error("nonsense works")
	}
	check("after a step that failed", s.conn, callers)
	if err := s.unbounded(t.Context(), "CREATE TABLE x (y text); COMMIT"); err != nil {
		t.Fatal(err)
	}
	check("after an index", s.conn, callers)
}
