package api_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/loomgate/loomgate/api"
	"github.com/loomgate/loomgate/spi"
)

// TestTheLargestAppendAndReadFitIntoAMessage builds the events that take the most
// room around what counts against the limits.
func TestTheLargestAppendAndReadFitIntoAMessage(t *testing.T) {
	metadata := map[string]string{}
	for i := range spi.MaxMetadataPairs {
		metadata[string(rune('0'+i))] = ""
	}
	events := make([]spi.Event, spi.MaxEvents)
	size := 0
	for i := range events {
		events[i] = spi.Event{
			ID: spi.NewEventID(), Kind: "k", Kernel: true, Metadata: metadata,
			RecordedAt: time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
		}
		size += events[i].Size()
	}
	const share = spi.MaxAppendBytes / spi.MaxEvents
	for i := range events {
		events[i].Payload = make([]byte, share-events[i].Size())
	}
	req := spi.AppendRequest{Execution: spi.ExecutionID(strings.Repeat("e", spi.MaxID)), ExpectedHead: spi.AnyHead, Events: events}
	if err := req.Validate(); err != nil {
		t.Fatal(err)
	}
	if n := proto.Size(api.Append.EncodeRequest(req)); n > api.MaxMessageBytes {
		t.Errorf("an append has %d bytes", n)
	}
	for i := range events {
		events[i].Sequence, events[i].Fence = math.MaxInt64, math.MaxInt64
	}
	if n := proto.Size(api.Read.EncodeResponse(spi.ReadResponse{Events: events})); n > api.MaxMessageBytes {
		t.Errorf("a read has %d bytes", n)
	}
}

// TestTheLargestPagesFitIntoAMessage does the same for names.
func TestTheLargestPagesFitIntoAMessage(t *testing.T) {
	long := strings.Repeat("n", spi.MaxID)
	refs := make([]spi.Ref, spi.MaxLimit)
	timers := make([]spi.Timer, spi.MaxLimit)
	for i := range refs {
		refs[i] = spi.Ref{Name: spi.RefName(long), Execution: spi.ExecutionID(long), Sequence: math.MaxInt64, Version: math.MaxInt64}
		timers[i] = spi.Timer{Execution: spi.ExecutionID(long), WakeAt: time.Now(), Redrive: true, Attempt: math.MaxInt32, Version: math.MaxInt64}
	}
	slots := make([]spi.SlotRecord, math.MaxUint16+1)
	for i := range slots {
		slots[i] = spi.SlotRecord{Slot: spi.Slot(i), State: spi.SlotOwned, Epoch: math.MaxInt64, Peer: "shard-12", Tenant: spi.TenantName(long[:spi.MaxTenantName])}
	}
	for name, m := range map[string]proto.Message{
		"refs":      api.ListRefs.EncodeResponse(spi.ListRefsResponse{Refs: refs}),
		"timers":    api.DueTimers.EncodeResponse(spi.DueTimersResponse{Timers: timers}),
		"ownership": api.GetOwnership.EncodeResponse(spi.GetOwnershipResponse{Shards: []spi.ShardOwnership{{Slots: slots}}}),
	} {
		if n := proto.Size(m); n > api.MaxMessageBytes {
			t.Errorf("%s have %d bytes", name, n)
		}
	}
}
