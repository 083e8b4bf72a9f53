package crypto_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/backends/sqlite"
	"github.com/loomgate/loomgate/decorators/crypto"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

// The marks stand in a payload, a key of metadata and a value. Those of the control are
// written without the layer.
var (
	marks   = []string{"payload-7f3a9c5e", "metakey-7f3a9c5e", "metavalue-7f3a9c5e"}
	control = []string{"payload-0b1d2e4f", "metakey-0b1d2e4f", "metavalue-0b1d2e4f"}
)

// writeMarks writes executions that hold the marks, by every way there is to write.
func writeMarks(t *testing.T, s *spi.Store, prefix spi.ExecutionID, marks []string) {
	t.Helper()
	event := func() spi.Event {
		return spi.Event{ID: spi.NewEventID(), Kind: "Noted", Payload: []byte("<" + marks[0] + ">"), Metadata: map[string]string{marks[1]: marks[2]}}
	}
	ctx := t.Context()
	for i := range 20 {
		id := prefix + spi.ExecutionID(fmt.Sprint(i))
		must[spi.AppendResponse](t)(spi.Append(ctx, s, spi.AppendRequest{Execution: id, Events: []spi.Event{event(), event()}}))
		must[spi.AppendIfUnchangedResponse](t)(spi.AppendIfUnchanged(ctx, s, spi.AppendIfUnchangedRequest{Execution: id, Head: 2, Events: []spi.Event{event()}}))
		res := must[spi.AppendBatchResponse](t)(spi.AppendBatch(ctx, s, spi.AppendBatchRequest{Appends: []spi.AppendRequest{
			{Execution: id, ExpectedHead: 3, Events: []spi.Event{event()}}, {Execution: id + "-batch", Events: []spi.Event{event()}},
		}}))
		for _, result := range res.Results {
			if result.Err != nil {
				t.Fatal(result.Err)
			}
		}
		must[spi.CopyPrefixResponse](t)(spi.CopyPrefix(ctx, s, spi.CopyPrefixRequest{From: id, To: id + "-copy", N: 4}))
	}
}

// found returns which marks are in files below a folder.
func found(t *testing.T, folder string, marks []string) (in []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		for _, mark := range marks {
			if bytes.Contains(content, []byte(mark)) {
				in = append(in, fmt.Sprintf("%s in %s", mark, filepath.Base(path)))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// wantHidden checks that the layer's marks are in no file, where those of the control
// all are in the files that count.
func wantHidden(t *testing.T, folder string, controls ...string) {
	t.Helper()
	if in := found(t, folder, marks); len(in) > 0 {
		t.Errorf("readable are %q", in)
	}
	for _, part := range controls {
		if in := found(t, filepath.Join(folder, part), control); len(in) < len(control) {
			t.Errorf("of the control only %q are found in %q: this proves nothing", in, part)
		}
	}
}

func TestNothingIsReadableInASQLiteFileAndItsLog(t *testing.T) {
	folder := t.TempDir()
	db := must[*sqlite.Database](t)(sqlite.Open(t.Context(), filepath.Join(folder, "store.db")))
	defer db.Close()
	writeMarks(t, db.Store(), "control", control)
	writeMarks(t, must[*spi.Store](t)(crypto.New(db.Store(), newKMS(t), crypto.Options{})), "4:acme/hidden", marks)
	// The log as it is with the store open, where all of this is, and apart from it.
	log := t.TempDir()
	content := must[[]byte](t)(os.ReadFile(filepath.Join(folder, "store.db-wal")))
	if err := os.WriteFile(filepath.Join(log, "store.db-wal"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	wantHidden(t, log, ".")
	wantHidden(t, folder)
	db.Close() // which brings all to the file
	wantHidden(t, folder, ".")
}

var migrated = pgtest.NewTemplate(postgres.Migrate)

func TestNothingIsReadableInAPostgresFolderAndItsLog(t *testing.T) {
	database := migrated.Fresh(t, pgtest.ICU)
	s := openPostgres(t, database)
	writeMarks(t, s, "control", control)
	writeMarks(t, must[*spi.Store](t)(crypto.New(s, newKMS(t), crypto.Options{})), "4:acme/hidden", marks)
	conn := must[*pgx.Conn](t)(pgx.Connect(t.Context(), database.Direct))
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "CHECKPOINT"); err != nil {
		t.Fatal(err)
	}
	var folder string
	if err := conn.QueryRow(t.Context(), "SHOW data_directory").Scan(&folder); err != nil {
		t.Fatal(err)
	}
	wantHidden(t, folder, "base", "pg_wal")
}

func openPostgres(t *testing.T, database pgtest.Database) *spi.Store {
	t.Helper()
	db := must[*postgres.Database](t)(postgres.Open(t.Context(), database.DSN))
	t.Cleanup(db.Close)
	return db.Store()
}
