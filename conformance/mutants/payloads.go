package mutants

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/loomgate/loomgate/spi"
)

var payloads = []Mutant{
	{
		"payload through JSON",
		"A payload that is JSON is decoded and encoded again: numbers lose digits, repeated keys are gone.",
		"payloads/JSON comes back as it was, with its numbers, its repeated keys and its spaces",
		store(func(s sound) methods { return throughJSON{s} }),
	},
	{
		"payload as text",
		"Bytes that are no UTF-8 are replaced.",
		"payloads/bytes that are no text come back byte for byte",
		store(func(s sound) methods { return asUTF8{s} }),
	},
	{
		"payload in a small column",
		"A payload is cut at 64 KiB.",
		"payloads/a payload of 8 MiB comes back byte for byte",
		store(func(s sound) methods { return smallColumn{s} }),
	},
	{
		"empty metadata",
		"No metadata comes back as an empty map.",
		"payloads/an empty payload and empty metadata come back as none",
		store(func(s sound) methods { return emptyMetadata{s} }),
	},
	{
		"payload shared with the caller",
		"The store keeps the caller's slice, and gives it out.",
		"appends/what becomes of a request or a response changes nothing that is stored",
		store(func(s sound) methods { return &sharedPayload{sound: s} }),
	},
}

// rewrite returns events with other payloads.
func rewrite(events []spi.Event, payload func([]byte) []byte) []spi.Event {
	events = slices.Clone(events)
	for i := range events {
		events[i].Payload = payload(events[i].Payload)
	}
	return events
}

type throughJSON struct{ sound }

func (m throughJSON) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	req.Events = rewrite(req.Events, func(payload []byte) []byte {
		var v any
		if json.Unmarshal(payload, &v) != nil {
			return payload
		}
		again, _ := json.Marshal(v)
		return again
	})
	return m.sound.Append(ctx, req)
}

type asUTF8 struct{ sound }

func (m asUTF8) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	req.Events = rewrite(req.Events, func(payload []byte) []byte { return []byte(strings.ToValidUTF8(string(payload), "\ufffd")) })
	return m.sound.Append(ctx, req)
}

type smallColumn struct{ sound }

func (m smallColumn) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	req.Events = rewrite(req.Events, func(payload []byte) []byte { return payload[:min(len(payload), 64<<10)] })
	return m.sound.Append(ctx, req)
}

type emptyMetadata struct{ sound }

func (m emptyMetadata) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	res, err := m.sound.Read(ctx, req)
	for i := range res.Events {
		if res.Events[i].Metadata == nil {
			res.Events[i].Metadata = map[string]string{}
		}
	}
	return res, err
}

type sharedPayload struct {
	sound
	payloads sync.Map // by event id
}

func (m *sharedPayload) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	for _, e := range req.Events {
		m.payloads.Store(e.ID, e.Payload)
	}
	return m.sound.Append(ctx, req)
}

func (m *sharedPayload) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	res, err := m.sound.Read(ctx, req)
	for i, e := range res.Events {
		if payload, kept := m.payloads.Load(e.ID); kept {
			res.Events[i].Payload = payload.([]byte)
		}
	}
	return res, err
}
