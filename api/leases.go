package api

import (
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// AcquireLease carries [spi.AcquireLease].
var AcquireLease = &Method[spi.AcquireLeaseRequest, spi.AcquireLeaseResponse, pb.AcquireLeaseRequest, pb.AcquireLeaseResponse]{
	Path: pb.LeaseService_AcquireLease_FullMethodName,
	Call: spi.AcquireLease,
	EncodeRequest: func(r spi.AcquireLeaseRequest) *pb.AcquireLeaseRequest {
		return &pb.AcquireLeaseRequest{Name: string(r.Name), Holder: r.Holder, Ttl: durationpb.New(r.TTL)}
	},
	DecodeRequest: func(m *pb.AcquireLeaseRequest) (spi.AcquireLeaseRequest, error) {
		ttl, err := decodeDuration("ttl", m.GetTtl())
		if err != nil {
			return spi.AcquireLeaseRequest{}, err
		}
		return spi.AcquireLeaseRequest{Name: spi.LeaseName(m.GetName()), Holder: m.GetHolder(), TTL: ttl}, nil
	},
	EncodeResponse: func(r spi.AcquireLeaseResponse) *pb.AcquireLeaseResponse {
		return &pb.AcquireLeaseResponse{Token: r.Token, ExpiresAt: encodeTime(r.ExpiresAt)}
	},
	DecodeResponse: func(m *pb.AcquireLeaseResponse) (spi.AcquireLeaseResponse, error) {
		end, ok := decodeTime(m.GetExpiresAt())
		if !ok {
			return spi.AcquireLeaseResponse{}, invalid("expires at", noTime)
		}
		return spi.AcquireLeaseResponse{Token: m.GetToken(), ExpiresAt: end}, nil
	},
}

// RenewLease carries [spi.RenewLease].
var RenewLease = &Method[spi.RenewLeaseRequest, spi.RenewLeaseResponse, pb.RenewLeaseRequest, pb.RenewLeaseResponse]{
	Path: pb.LeaseService_RenewLease_FullMethodName,
	Call: spi.RenewLease,
	EncodeRequest: func(r spi.RenewLeaseRequest) *pb.RenewLeaseRequest {
		return &pb.RenewLeaseRequest{Name: string(r.Name), Token: r.Token, Ttl: durationpb.New(r.TTL)}
	},
	DecodeRequest: func(m *pb.RenewLeaseRequest) (spi.RenewLeaseRequest, error) {
		ttl, err := decodeDuration("ttl", m.GetTtl())
		if err != nil {
			return spi.RenewLeaseRequest{}, err
		}
		return spi.RenewLeaseRequest{Name: spi.LeaseName(m.GetName()), Token: m.GetToken(), TTL: ttl}, nil
	},
	EncodeResponse: func(r spi.RenewLeaseResponse) *pb.RenewLeaseResponse {
		return &pb.RenewLeaseResponse{ExpiresAt: encodeTime(r.ExpiresAt)}
	},
	DecodeResponse: func(m *pb.RenewLeaseResponse) (spi.RenewLeaseResponse, error) {
		end, ok := decodeTime(m.GetExpiresAt())
		if !ok {
			return spi.RenewLeaseResponse{}, invalid("expires at", noTime)
		}
		return spi.RenewLeaseResponse{ExpiresAt: end}, nil
	},
}

// ReleaseLease carries [spi.ReleaseLease].
var ReleaseLease = &Method[spi.ReleaseLeaseRequest, spi.ReleaseLeaseResponse, pb.ReleaseLeaseRequest, pb.ReleaseLeaseResponse]{
	Path: pb.LeaseService_ReleaseLease_FullMethodName,
	Call: spi.ReleaseLease,
	EncodeRequest: func(r spi.ReleaseLeaseRequest) *pb.ReleaseLeaseRequest {
		return &pb.ReleaseLeaseRequest{Name: string(r.Name), Token: r.Token}
	},
	DecodeRequest: func(m *pb.ReleaseLeaseRequest) (spi.ReleaseLeaseRequest, error) {
		return spi.ReleaseLeaseRequest{Name: spi.LeaseName(m.GetName()), Token: m.GetToken()}, nil
	},
	EncodeResponse: func(r spi.ReleaseLeaseResponse) *pb.ReleaseLeaseResponse {
		return &pb.ReleaseLeaseResponse{Released: r.Released}
	},
	DecodeResponse: func(m *pb.ReleaseLeaseResponse) (spi.ReleaseLeaseResponse, error) {
		return spi.ReleaseLeaseResponse{Released: m.GetReleased()}, nil
	},
}
