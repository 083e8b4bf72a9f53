package api

import (
	"fmt"
	"math"

	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// encodeIdentity leaves an identity that is none out.
func encodeIdentity(i spi.Identity) *pb.Identity {
	if i == (spi.Identity{}) {
		return nil
	}
	return &pb.Identity{
		Cluster:     i.Cluster,
		Shard:       i.Shard,
		Fingerprint: i.Fingerprint,
		MinWriter:   encodeVersion(i.MinWriter),
	}
}

func decodeIdentity(m *pb.Identity) spi.Identity {
	return spi.Identity{
		Cluster:     m.GetCluster(),
		Shard:       m.GetShard(),
		Fingerprint: m.GetFingerprint(),
		MinWriter:   decodeVersion(m.GetMinWriter()),
	}
}

// decodeState makes no state of one that it does not know.
func decodeState(s pb.SlotState) spi.SlotState {
	if _, known := pb.SlotState_name[int32(s)]; !known {
		return 0
	}
	return spi.SlotState(s)
}

func encodeSlot(s spi.SlotRecord) *pb.SlotRecord {
	return &pb.SlotRecord{
		Slot:   uint32(s.Slot),
		State:  pb.SlotState(s.State),
		Epoch:  s.Epoch,
		Peer:   s.Peer,
		Tenant: string(s.Tenant),
	}
}

func decodeSlot(m *pb.SlotRecord) (spi.SlotRecord, error) {
	if m.GetSlot() > math.MaxUint16 {
		return spi.SlotRecord{}, invalid("slots", fmt.Sprintf("has slot %d, more than %d", m.GetSlot(), math.MaxUint16))
	}
	return spi.SlotRecord{
		Slot:   spi.Slot(m.GetSlot()),
		State:  decodeState(m.GetState()),
		Epoch:  m.GetEpoch(),
		Peer:   m.GetPeer(),
		Tenant: spi.TenantName(m.GetTenant()),
	}, nil
}

func encodeOwnership(o spi.ShardOwnership) *pb.ShardOwnership {
	return &pb.ShardOwnership{
		Identity: encodeIdentity(o.Identity),
		Version:  o.Version,
		Slots:    each(o.Slots, encodeSlot),
	}
}

func decodeOwnership(m *pb.ShardOwnership) (spi.ShardOwnership, error) {
	slots, err := eachOf(m.GetSlots(), decodeSlot)
	if err != nil {
		return spi.ShardOwnership{}, err
	}
	return spi.ShardOwnership{
		Identity: decodeIdentity(m.GetIdentity()),
		Version:  m.GetVersion(),
		Slots:    slots,
	}, nil
}

// GetOwnership carries [spi.GetOwnership].
var GetOwnership = &Method[spi.GetOwnershipRequest, spi.GetOwnershipResponse, pb.GetOwnershipRequest, pb.GetOwnershipResponse]{
	Path:          pb.OwnershipService_GetOwnership_FullMethodName,
	Call:          spi.GetOwnership,
	EncodeRequest: func(spi.GetOwnershipRequest) *pb.GetOwnershipRequest { return &pb.GetOwnershipRequest{} },
	DecodeRequest: func(*pb.GetOwnershipRequest) (spi.GetOwnershipRequest, error) {
		return spi.GetOwnershipRequest{}, nil
	},
	EncodeResponse: func(r spi.GetOwnershipResponse) *pb.GetOwnershipResponse {
		return &pb.GetOwnershipResponse{Shards: each(r.Shards, encodeOwnership)}
	},
	DecodeResponse: func(m *pb.GetOwnershipResponse) (spi.GetOwnershipResponse, error) {
		shards, err := eachOf(m.GetShards(), decodeOwnership)
		return spi.GetOwnershipResponse{Shards: shards}, err
	},
}

// ChangeOwnership carries [spi.ChangeOwnership].
var ChangeOwnership = &Method[spi.ChangeOwnershipRequest, spi.ChangeOwnershipResponse, pb.ChangeOwnershipRequest, pb.ChangeOwnershipResponse]{
	Path: pb.OwnershipService_ChangeOwnership_FullMethodName,
	Call: spi.ChangeOwnership,
	EncodeRequest: func(r spi.ChangeOwnershipRequest) *pb.ChangeOwnershipRequest {
		return &pb.ChangeOwnershipRequest{
			ExpectedVersion: r.ExpectedVersion,
			Identity:        encodeIdentity(r.Identity),
			Slots:           each(r.Slots, encodeSlot),
		}
	},
	DecodeRequest: func(m *pb.ChangeOwnershipRequest) (spi.ChangeOwnershipRequest, error) {
		slots, err := eachOf(m.GetSlots(), decodeSlot)
		if err != nil {
			return spi.ChangeOwnershipRequest{}, err
		}
		return spi.ChangeOwnershipRequest{
			ExpectedVersion: m.GetExpectedVersion(),
			Identity:        decodeIdentity(m.GetIdentity()),
			Slots:           slots,
		}, nil
	},
	EncodeResponse: func(r spi.ChangeOwnershipResponse) *pb.ChangeOwnershipResponse {
		return &pb.ChangeOwnershipResponse{Ownership: encodeOwnership(r.Ownership)}
	},
	DecodeResponse: func(m *pb.ChangeOwnershipResponse) (spi.ChangeOwnershipResponse, error) {
		owned, err := decodeOwnership(m.GetOwnership())
		return spi.ChangeOwnershipResponse{Ownership: owned}, err
	},
}
