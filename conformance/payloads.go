package conformance

import (
	"bytes"

	"github.com/loomgate/loomgate/spi"
)

var payloads = topic{"payloads", []testCase{
	{
		"a payload of 8 MiB comes back byte for byte",
		0,
		func(f *fixture) {
			large := make([]byte, spi.MaxPayload)
			for i := range large {
				large[i] = byte(i*7 + i>>8)
			}
			f.wantPayload(large)
		},
	},
	{
		"bytes that are no text come back byte for byte",
		0,
		func(f *fixture) {
			every := make([]byte, 256)
			for i := range every {
				every[i] = byte(i)
			}
			f.wantPayload(every)
			f.wantPayload([]byte{0})
			f.wantPayload([]byte("\xed\xa0\x80 a lone surrogate, \xc0\x80 an overlong zero, \xff\x00"))
			f.wantPayload([]byte(`\x00 \000 '; DROP TABLE events; --`))
		},
	},
	{
		"JSON comes back as it was, with its numbers, its repeated keys and its spaces",
		0,
		func(f *fixture) {
			f.wantPayload([]byte(`{"n":9007199254740993, "n" : 1.10e+3,"b":-0,"a":"\u00e9é\ud834\udd1e" , "a":[1e400]}`))
			f.wantPayload([]byte(" null\n"))
			f.wantPayload([]byte(`{"half":`))
		},
	},
	{
		"an empty payload and empty metadata come back as none",
		0,
		func(f *fixture) {
			e := event("Noted")
			e.Payload, e.Metadata = []byte{}, map[string]string{}
			f.mustAppend(spi.AppendRequest{Execution: "e", Events: []spi.Event{e}})
			if got := f.first("e"); got.Payload != nil || got.Metadata != nil {
				f.Errorf("they come back as %#v and %#v", got.Payload, got.Metadata)
			}
		},
	},
	{
		"the largest kind and metadata come back as they went in",
		0,
		func(f *fixture) {
			e := event(string(bytes.Repeat([]byte("k"), spi.MaxKind)))
			e.Metadata = map[string]string{"key": string(bytes.Repeat([]byte("v"), spi.MaxMetadata-3))}
			f.mustAppend(spi.AppendRequest{Execution: "e", Events: []spi.Event{e}})
			got := f.first("e")
			equal(f, "the kind", got.Kind, e.Kind)
			equal(f, "the metadata", got.Metadata["key"], e.Metadata["key"])
		},
	},
}}

// wantPayload checks that a payload comes back.
func (f *fixture) wantPayload(payload []byte) {
	f.Helper()
	e := event("Noted")
	e.Payload = bytes.Clone(payload)
	res := f.mustAppend(spi.AppendRequest{Execution: "e", ExpectedHead: spi.AnyHead, Events: []spi.Event{e}})
	read, err := spi.Read(f.ctx, f.store, spi.ReadRequest{Execution: "e", After: res.FirstSeq - 1, Limit: 1})
	if err != nil || len(read.Events) != 1 {
		f.Fatalf("the event at %d is read as %+v (%v)", res.FirstSeq, read.Events, err)
	}
	if got := read.Events[0].Payload; !bytes.Equal(got, payload) {
		f.Errorf("a payload of %d bytes comes back as %d others: %.60q, not %.60q", len(payload), len(got), got, payload)
	}
}
