package postgres

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

// TestAParameterThatCannotBeEncodedChangesNothingAndIsNotRepeated is about pgx's own
// error, which says the parameter.
func TestAParameterThatCannotBeEncodedChangesNothingAndIsNotRepeated(t *testing.T) {
	for _, kind := range []pgtest.Kind{pgtest.ICU, pgtest.PgBouncer} {
		o := options{pooler: kind == pgtest.PgBouncer}
		config, err := pgxpool.ParseConfig(pgtest.Fresh(t, kind).DSN)
		if err != nil {
			t.Fatal(err)
		}
		o.configure(config.ConnConfig)
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		s := &store{pool: pool, begin: begins{write: o.begin().write[:1]}} // a barrier takes a schema
		err = s.write(t.Context(), "e", statement{sql: "SELECT $1::integer", args: []any{struct{ payload string }{"hunter2"}}})
		if unavailable, ok := errors.AsType[*spi.UnavailableError](err); !ok || !errors.Is(unavailable, errUnencoded) {
			t.Errorf("%s: the error is %v", kind, err)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error says the parameter: %v", kind, err)
		}
		var got int
		if err := s.write(t.Context(), "e", statement{sql: "SELECT $1::integer", args: []any{1}, rows: one(&got)}); err != nil || got != 1 {
			t.Errorf("%s: the next transaction: %d, %v", kind, got, err)
		}
	}
}
