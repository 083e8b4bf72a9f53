package transfer_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/loomgate/loomgate/cmd/gateway/internal/transfer"
	"github.com/loomgate/loomgate/spi"
)

// FuzzLine shows that whatever is taken for a line is written as one that says the same.
func FuzzLine(f *testing.F) {
	for _, c := range broken {
		if len(c.line) < 1_000 {
			f.Add(strings.Replace(c.line, "|", "", 1))
		}
	}
	f.Add(line("e", `"payload": {"a" : [1.0, "\ud834\udd1e"]}, "metadata": {"a": "\u0001"}, "kernel": true, "fence": 3, "sequence": 1, "id": "0190d2f6-6d2f-7cc1-8a1c-6f1d0e5b7a90"`))
	f.Add(line("e", `"payloadBase64":"AAE="`))
	f.Fuzz(func(t *testing.T, text string) {
		for l, err := range transfer.Lines(strings.NewReader(text)) {
			if err != nil {
				if wrong := want[*transfer.LineError](t, err); wrong.Offset > int64(len(text)) || wrong.Column < 1 {
					t.Errorf("%v, of %d bytes", err, len(text))
				}
				return
			}
			l.Event.Sequence = max(l.Event.Sequence, 1)
			if l.Event.ID == (spi.EventID{}) {
				l.Event.ID[0] = 1
			}
			written := transfer.AppendLine(nil, transfer.Full, l.Execution, &l.Event, l.Floor)
			for back, err := range transfer.Lines(bytes.NewReader(written)) {
				if err != nil || back.Execution != l.Execution || !reflect.DeepEqual(back.Event, l.Event) {
					t.Fatalf("%s says %+v, not %+v (%v)", written, back.Event, l.Event, err)
				}
			}
		}
	})
}

// FuzzImport shows that an import of any file stores what comes before the first broken
// line, and that a second one adds nothing.
func FuzzImport(f *testing.F) {
	f.Add([]byte(line("a", `"payload":1`)+"\n"+line("b", `"sequence":1,"payload":1`)+"\n"+line("a", `"fence":2,"payload":1`)), byte(3))
	f.Add(sample(13, 3, 20), byte(7))
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x01\x00\x00\xff\xff"), byte(1))
	f.Fuzz(func(t *testing.T, text []byte, window byte) {
		store, opts := inMemory(), options()
		opts.Window = int(window)
		first, err := transfer.Import(ctx, store, bytes.NewReader(text), opts)
		if _, ok := errors.AsType[*transfer.StoreError](err); ok {
			return // one id is two events', or a token goes back
		}
		again, err2 := transfer.Import(ctx, store, bytes.NewReader(text), options())
		if (err == nil) != (err2 == nil) || again.New != 0 || again.Present != first.New {
			t.Fatalf("%+v (%v), then %+v (%v)", first, err, again, err2)
		}
		wantSound(t, store)
		to := inMemory()
		if back := importAll(t, to, strings.NewReader(export(t, store, transfer.ExportOptions{Format: transfer.Full}))); back.New != first.New {
			t.Fatalf("%+v of %+v came back", back, first)
		}
	})
}
