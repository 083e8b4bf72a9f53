package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

func TestAfterAFailoverTheNewPrimaryIsFound(t *testing.T) {
	t.Run("from one that was killed", func(t *testing.T) {
		failOver(t, func(primary *pgtest.Cluster) { primary.Kill9(t) })
	})
	t.Run("from one that goes on, and only reads", func(t *testing.T) {
		failOver(t, func(primary *pgtest.Cluster) {
			execute(t, primary.DSN("postgres"), "ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
		})
	})
}

func execute(t *testing.T, dsn string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

func failOver(t *testing.T, demote func(primary *pgtest.Cluster)) {
	t.Helper()
	primary := pgtest.Private(t, pgtest.Options{})
	db := primary.Copy(t, pgtest.ICU, migrated)
	standby := primary.Standby(t)
	both := fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/%s?target_session_attrs=read-write", standby.Port, primary.Port, db.Name)
	d, err := postgres.Open(t.Context(), both)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	req := spi.AppendRequest{Execution: "e", Events: noted(1)}
	if _, err := spi.Append(t.Context(), d.Store(), req); err != nil {
		t.Fatal(err)
	}
	standby.CatchUp(t)
	demote(primary)
	execute(t, standby.DSN(db.Name), "SELECT pg_promote()")
	for end := time.Now().Add(time.Minute); ; {
		res, err := spi.Append(t.Context(), d.Store(), req)
		if err == nil {
			if !res.Duplicate || res.FirstSeq != 1 {
				t.Errorf("the same append again is %+v", res)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	next := spi.AppendRequest{Execution: "e", ExpectedHead: 1, Events: noted(1)}
	for end := time.Now().Add(time.Minute); ; {
		if _, err := spi.Append(t.Context(), d.Store(), next); err == nil {
			return
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
