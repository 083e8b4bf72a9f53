package transfer

import (
	"github.com/loomgate/loomgate/spi"
)

// A Format is how much of an event a line tells.
type Format string

// The formats. A file that is imported may hold lines of both.
const (
	// Simple lines tell execution, kind, time and payload.
	Simple Format = "simple"

	// Full lines tell everything: also id, sequence, kernel stamp, fence and metadata.
	Full Format = "full"
)

// Limits on what is imported, beside those of package spi.
const (
	// MaxLine is the longest line in bytes: enough for the largest payload in base64,
	// and for every other field with each character escaped.
	MaxLine = 12 << 20

	// MaxFence is the highest token of an event. An execution's token is raised by
	// acquiring it, one call a step.
	MaxFence = 100_000
)

// A Line is one event of a file.
type Line struct {
	Number    int64 // from 1
	Size      int   // bytes, with the end of the line
	Execution spi.ExecutionID

	// Event has the zero ID, Sequence or Fence where the line does not tell it.
	Event spi.Event

	// Floor is above 1 where the line's execution was truncated before it was
	// exported, and 0 where the line tells none.
	Floor int64

	offset int64   // of the line in the file
	fields members // where in the line everything is
}

// A field is one that a line can have.
type field int

const (
	executionID field = iota
	kind
	recordedAt
	payload
	payloadBase64
	eventID
	sequence
	kernel
	fence
	metadata
	floor

	fieldCount
)

var fieldNames = [fieldCount]string{
	"executionId", "kind", "recordedAt", "payload", "payloadBase64",
	"id", "sequence", "kernel", "fence", "metadata", "floor",
}

func (f field) String() string { return fieldNames[f] }

// fieldNamed returns the field of that name, and false if there is none.
func fieldNamed(name string) (field, bool) {
	for f, known := range fieldNames {
		if name == known {
			return field(f), true
		}
	}
	return 0, false
}
