package transfer_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/loomgate/loomgate/cmd/gateway/internal/transfer"
	"github.com/loomgate/loomgate/spi"
)

// broken are lines in which one thing is wrong, after | where it is, and the reason.
var broken = []struct{ line, reason string }{
	{`{"executionId":"e","kind":"K","recordedAt":"2024-05-01T09:30:00Z","payload":{"a":1|`, "unexpected end of JSON input"},
	{`{"executionId":"e",|kind":"K"}`, "invalid character 'k'"},
	{`{"executionId":"e","payload":[1,|],"kind":"K"}`, "invalid character ']'"},
	{`{"executionId":"e"}|{`, "after top-level value"},
	{`{"executionId":"e` + "|\xff" + `"}`, "not well-formed UTF-8"},
	{"|\x00\x00\x00", "invalid character"},
	{`|"text"`, "no JSON object"},
	{` |[]`, "no JSON object"},
	{`|{}`, "executionId is missing"},
	{`|{"executionId":"e","kind":"K","payload":1}`, "recordedAt is missing"},
	{`|{"executionId":"e","kind":"K","recordedAt":"2024-05-01T09:30:00Z"}`, "payload is missing"},
	{`{"executionId":"e",|"Kind":"K"}`, `"Kind" is unknown`},
	{`{"executionId":"e","kind":"K",|"kind":"K"}`, "kind is there twice"},
	{`{|"\ud800":1}`, "lone surrogate"},
	{with(`"executionId":|7`), "executionId is no string"},
	{with(`"executionId":|""`), "executionId has 0 bytes"},
	{with(`"executionId":|"` + strings.Repeat("x", spi.MaxOuterID+1) + `"`), "executionId has 513 bytes, not 1 to 512"},
	{with(`"executionId":|"a\u0000"`), "executionId contains U+0000"},
	{with(`"executionId":|"\udd1e\ud834"`), "executionId has a lone surrogate"},
	{with(`"executionId":|"\ud834x\udd1e"`), "executionId has a lone surrogate"},
	{with(`"executionId":|"\ud834"`), "executionId has a lone surrogate"},
	{with(`"kind":|null`), "kind is no string"},
	{with(`"kind":|""`), "kind has 0 bytes"},
	{with(`"kind":|"` + strings.Repeat("k", spi.MaxKind+1) + `"`), "kind has 129 bytes, not 1 to 128"},
	{with(`"recordedAt":|1714555800`), "recordedAt is no string"},
	{with(`"recordedAt":|"2024-05-01 09:30:00Z"`), "recordedAt is no time as of RFC 3339"},
	{with(`"recordedAt":|"2024-02-30T09:30:00Z"`), "recordedAt is no time as of RFC 3339"},
	{with(`"recordedAt":|"2024-05-01T09:30:00"`), "recordedAt is no time as of RFC 3339"},
	{with(`"recordedAt":|"2024-05-01T09:30:00.1234567Z"`), "recordedAt is finer than a microsecond"},
	{with(`"recordedAt":|"0001-01-01T00:00:00Z"`), "recordedAt is the time that stands for none"},
	{with(`"recordedAt":|"0001-01-01T00:00:00+01:00"`), "recordedAt is not in the years 1 to 9999"},
	{with(`"payload":|"` + strings.Repeat("p", spi.MaxPayload) + `"`), "payload has 8388610 bytes, more than 8388608"},
	{with(`"payload":1,"payloadBase64":|""`), "payloadBase64 is there beside payload"},
	{with(`"payloadBase64":|1`), "payloadBase64 is no string"},
	{with(`"payloadBase64":|"a"`), "payloadBase64 is no base64"},
	{with(`"id":|"0190d2f6-6d2f-7cc1-8a1c-6f1d0e5b7a9"`), "id is no UUID"},
	{with(`"id":|"0190d2f6-6d2f-7cc1-8a1c-6f1d0e5b7a9x"`), "id is no UUID"},
	{with(`"id":|"0190d2f606d2f-7cc1-8a1c-6f1d0e5b7a90"`), "id is no UUID"},
	{with(`"id":|"00000000-0000-0000-0000-000000000000"`), "id is no UUID"},
	{with(`"sequence":|1.0`), "sequence is no whole number from 1 on"},
	{with(`"sequence":|0`), "sequence is no whole number from 1 on"},
	{with(`"sequence":|99999999999999999999`), "sequence is no whole number from 1 on"},
	{with(`"sequence":|"1"`), "sequence is no whole number from 1 on"},
	{with(`"kernel":|1`), "kernel is neither true nor false"},
	{with(`"fence":|-1`), "fence is no whole number from 0 on"},
	{with(`"fence":|100001`), "fence is above 100000"},
	{with(`"metadata":|[]`), "metadata is no object"},
	{with(`"metadata":|{"a":1}`), "metadata has a value that is no string"},
	{with(`"metadata":|{"a":"1","a":"2"}`), "metadata has a name twice"},
	{with(`"metadata":|{"\udd1e":""}`), "metadata has a name that has a lone surrogate"},
	{with(`"metadata":|{"a":"\u0000"}`), "metadata contains U+0000"},
	{with(`"floor":|0`), "floor is no whole number from 1 on"},
	{with(`"floor":|2`), "was truncated below 2"},
	{with(`"sequence":|2`), `the sequence is 2, but the file has 0 events of execution "e" before it`},
}

// with returns a sound line with some fields put in, in place of those of their names.
func with(fields string) string {
	for _, field := range []string{`"executionId":"e"`, `"kind":"K"`, `"recordedAt":"2024-05-01T09:30:00Z"`, `"payload":1`} {
		name, _, _ := strings.Cut(strings.TrimSuffix(field, ":1"), ":")
		if !strings.Contains(fields, strings.TrimSuffix(name, `"`)) {
			fields += "," + field
		}
	}
	return "{" + fields + "}"
}

func TestABrokenLineIsNamedAndWhatCameBeforeItStays(t *testing.T) {
	before := line("before", `"payload":0`)
	for _, c := range broken {
		head, rest, _ := strings.Cut(c.line, "|")
		name := fmt.Sprintf("%.40q", c.line)
		store := inMemory()
		report, err := transfer.Import(ctx, store, file(before, before, head+rest, line("after", `"payload":1`)), options())
		wrong, ok := errors.AsType[*transfer.LineError](err)
		if !ok {
			t.Errorf("%s: the error is %v", name, err)
			continue
		}
		column := min(len(head)+1, len(head+rest))
		if offset := int64(2*(len(before)+1) + column - 1); wrong.Line != 3 || wrong.Column != column || wrong.Offset != offset {
			t.Errorf("%s: line 3, byte %d (offset %d) is meant by %v", name, column, offset, err)
		}
		if !strings.Contains(wrong.Reason, c.reason) {
			t.Errorf("%s: the reason is %q, not %q", name, wrong.Reason, c.reason)
		}
		if report.New != 2 {
			t.Errorf("%s: %+v", name, report)
		}
		wantIDs(t, store, "before")
	}
}

func TestAMendedFileGoesOnWhereTheBrokenOneEnded(t *testing.T) {
	onEach(t, func(t *testing.T, store *spi.Store) {
		log := sample(2, 40, 600)
		lines := bytes.SplitAfter(log, []byte("\n"))
		for at := 0; at < len(lines)-1; at += 97 {
			wrecked := bytes.Join([][]byte{bytes.Join(lines[:at], nil), []byte("{\n"), bytes.Join(lines[at:], nil)}, nil)
			report, err := transfer.Import(ctx, store, bytes.NewReader(wrecked), options())
			if wrong := want[*transfer.LineError](t, err); wrong.Line != int64(at+1) || report.Lines != int64(at) {
				t.Errorf("line %d is meant by %v, after %+v", at+1, err, report)
			}
			wantSame(t, strings.NewReader(export(t, store, transfer.ExportOptions{})), bytes.NewReader(bytes.Join(lines[:at], nil)))
		}
		importAll(t, store, bytes.NewReader(log))
		wantSame(t, strings.NewReader(export(t, store, transfer.ExportOptions{})), bytes.NewReader(log))
	})
}

func TestAHalfWrittenFileIsReadUpToItsLastWholeLine(t *testing.T) {
	text := line("a", `"payload":1`) + "\n" + line("b", `"payload":2`)
	for cut := range len(text) + 1 {
		store := inMemory()
		report, err := transfer.Import(ctx, store, strings.NewReader(text[:cut]), options())
		whole := int64(strings.Count(text[:cut]+"\n", "}\n")) // a line that lacks only its end is whole
		if report.New != whole {
			t.Errorf("of %d bytes: %+v", cut, report)
		}
		if half := cut > 0 && !strings.HasSuffix(text[:cut], "\n") && !strings.HasSuffix(text[:cut], "}"); half {
			if wrong := want[*transfer.LineError](t, err); wrong.Line != whole+1 || !strings.Contains(wrong.Reason, "the file ends here") {
				t.Errorf("of %d bytes: %v", cut, err)
			}
		} else if err != nil {
			t.Errorf("of %d bytes: %v", cut, err)
		}
	}
}

func TestACutGzipIsReadUpToItsLastWholeLine(t *testing.T) {
	log := sample(3, 20, 400)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	must(z.Write(log))
	z.Close()
	for cut := 2; cut < packed.Len(); cut += 113 {
		store := inMemory()
		report, err := transfer.Import(ctx, store, bytes.NewReader(packed.Bytes()[:cut]), options())
		if wrong := want[*transfer.LineError](t, err); wrong.Line != report.Lines+1 || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("of %d bytes: %v, after %+v", cut, err, report)
		}
		stored := bytes.Join(bytes.SplitAfter(log, []byte("\n"))[:report.Lines], nil)
		wantSame(t, strings.NewReader(export(t, store, transfer.ExportOptions{})), bytes.NewReader(stored))
	}
}

func TestADamagedGzipIsFoundAtItsEnd(t *testing.T) {
	packed := []byte(export(t, must(filled(t)), transfer.ExportOptions{Gzip: true}))
	packed[len(packed)-8] ^= 1 // of the checksum
	_, err := transfer.Import(ctx, inMemory(), bytes.NewReader(packed), options())
	if !errors.Is(err, gzip.ErrChecksum) {
		t.Error(err)
	}
	_, err = transfer.Import(ctx, inMemory(), strings.NewReader("\x1f\x8b no gzip"), options())
	if wrong := want[*transfer.LineError](t, err); wrong.Line != 1 || !errors.Is(err, gzip.ErrHeader) {
		t.Error(err)
	}
}

func filled(t fatal) (*spi.Store, error) {
	store := inMemory()
	_, err := transfer.Import(ctx, store, file(line("a", `"payload":1`), line("b", `"payload":2`)), options())
	return store, err
}

func TestAReaderThatFailsIsTold(t *testing.T) {
	failure := errors.New("the disk is gone")
	store := inMemory()
	_, err := transfer.Import(ctx, store, io.MultiReader(file(line("a", `"payload":1`)), strings.NewReader(`{"exe`), iotest.ErrReader(failure)), options())
	if wrong := want[*transfer.LineError](t, err); wrong.Line != 2 || wrong.Column != 6 || !errors.Is(err, failure) {
		t.Error(err)
	}
	wantIDs(t, store, "a")
}

func TestALineWithoutEndIsNotReadToItsEnd(t *testing.T) {
	endless := &counting{}
	_, err := transfer.Import(ctx, inMemory(), io.MultiReader(file(line("a", `"payload":1`)), endless), options())
	if wrong := want[*transfer.LineError](t, err); wrong.Line != 2 || !strings.Contains(wrong.Reason, "longer than") {
		t.Error(err)
	}
	if endless.n > transfer.MaxLine+1<<20 {
		t.Errorf("%d bytes were read of it", endless.n)
	}
}

// counting is a reader without end.
type counting struct{ n int }

func (c *counting) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '['
	}
	c.n += len(p)
	return len(p), nil
}

func TestTheLongestLineFits(t *testing.T) {
	e := spi.Event{
		ID: spi.NewEventID(), Sequence: 1, Kind: strings.Repeat("\x01", spi.MaxKind), RecordedAt: events(t, must(filled(t)), "a")[0].RecordedAt,
		Metadata: map[string]string{"a": strings.Repeat("\x01", spi.MaxMetadata-1)}, Payload: bytes.Repeat([]byte{0xff}, spi.MaxPayload),
	}
	text := transfer.AppendLine(nil, transfer.Full, spi.ExecutionID(strings.Repeat("\x01", spi.MaxOuterID)), &e, 1)
	if report := importAll(t, inMemory(), bytes.NewReader(text)); report.New != 1 {
		t.Errorf("%+v", report)
	}
}
