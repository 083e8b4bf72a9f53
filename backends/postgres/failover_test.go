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
	primary.Kill9(t)
	conn, err := pgx.Connect(t.Context(), standby.DSN(db.Name))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "SELECT pg_promote()"); err != nil {
		t.Fatal(err)
	}
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
	if _, err := spi.Append(t.Context(), d.Store(), spi.AppendRequest{Execution: "e", ExpectedHead: 1, Events: noted(1)}); err != nil {
		t.Error(err)
	}
}
