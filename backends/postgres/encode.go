package postgres

import (
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/loomgate/loomgate/spi"
)

// lastName comes after every name: names have at most 1,024 bytes.
var lastName = func() string {
	b := make([]byte, 0, spi.MaxID+4)
	for len(b) <= spi.MaxID {
		b = append(b, "\U0010FFFF"...)
	}
	return string(b)
}()

// bounds returns a range as two comparisons, at or after the one and before the
// other: no name holds U+0000, so what follows a name begins with it and U+0001.
func bounds(r spi.Range) (from, before string) {
	from, inclusive := r.Start()
	if !inclusive && from != "" {
		from += "\u0001"
	}
	if r.End == "" {
		return from, lastName
	}
	return from, r.End
}

func keyUUID(id spi.KeyID) pgtype.UUID {
	return pgtype.UUID{Bytes: id, Valid: id != spi.KeyID{}}
}

// payloadOrNull stores an empty payload as none, which is how it comes back.
func payloadOrNull(p []byte) []byte {
	if len(p) == 0 {
		return nil
	}
	return p
}

func metadataJSON(m map[string]string) *string {
	if len(m) == 0 {
		return nil
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // a map of strings always has a JSON text
	}
	s := string(text)
	return &s
}

func metadataMap(text *string) (m map[string]string, err error) {
	if text != nil {
		err = json.Unmarshal([]byte(*text), &m)
	}
	return m, err
}

// ambiguousFor gives a transaction's error the name of one of its executions.
func ambiguousFor(id spi.ExecutionID, err error) error {
	if ambiguous, ok := errors.AsType[*spi.AmbiguousError](err); ok {
		return &spi.AmbiguousError{Execution: id, Cause: ambiguous.Cause}
	}
	return err
}

func isAmbiguous(err error) bool {
	_, ok := errors.AsType[*spi.AmbiguousError](err)
	return ok
}

var errBusy = errors.New("other transactions kept getting in the way")
