package api

import (
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

func encodeRef(r spi.Ref) *pb.Ref {
	return &pb.Ref{Name: string(r.Name), Execution: string(r.Execution), Sequence: r.Sequence, Version: r.Version}
}

func decodeRef(m *pb.Ref) spi.Ref {
	return spi.Ref{
		Name:      spi.RefName(m.GetName()),
		Execution: spi.ExecutionID(m.GetExecution()),
		Sequence:  m.GetSequence(),
		Version:   m.GetVersion(),
	}
}

// PutRef carries [spi.PutRef].
var PutRef = &Method[spi.PutRefRequest, spi.PutRefResponse, pb.PutRefRequest, pb.PutRefResponse]{
	Path: pb.RefService_PutRef_FullMethodName,
	Call: spi.PutRef,
	EncodeRequest: func(r spi.PutRefRequest) *pb.PutRefRequest {
		return &pb.PutRefRequest{
			Name:            string(r.Name),
			Execution:       string(r.Execution),
			Sequence:        r.Sequence,
			ExpectedVersion: r.ExpectedVersion,
		}
	},
	DecodeRequest: func(m *pb.PutRefRequest) (spi.PutRefRequest, error) {
		return spi.PutRefRequest{
			Name:            spi.RefName(m.GetName()),
			Execution:       spi.ExecutionID(m.GetExecution()),
			Sequence:        m.GetSequence(),
			ExpectedVersion: m.GetExpectedVersion(),
		}, nil
	},
	EncodeResponse: func(r spi.PutRefResponse) *pb.PutRefResponse { return &pb.PutRefResponse{Ref: encodeRef(r.Ref)} },
	DecodeResponse: func(m *pb.PutRefResponse) (spi.PutRefResponse, error) {
		return spi.PutRefResponse{Ref: decodeRef(m.GetRef())}, nil
	},
}

// GetRef carries [spi.GetRef].
var GetRef = &Method[spi.GetRefRequest, spi.GetRefResponse, pb.GetRefRequest, pb.GetRefResponse]{
	Path:          pb.RefService_GetRef_FullMethodName,
	Call:          spi.GetRef,
	EncodeRequest: func(r spi.GetRefRequest) *pb.GetRefRequest { return &pb.GetRefRequest{Name: string(r.Name)} },
	DecodeRequest: func(m *pb.GetRefRequest) (spi.GetRefRequest, error) {
		return spi.GetRefRequest{Name: spi.RefName(m.GetName())}, nil
	},
	EncodeResponse: func(r spi.GetRefResponse) *pb.GetRefResponse { return &pb.GetRefResponse{Ref: encodeRef(r.Ref)} },
	DecodeResponse: func(m *pb.GetRefResponse) (spi.GetRefResponse, error) {
		return spi.GetRefResponse{Ref: decodeRef(m.GetRef())}, nil
	},
}

// DeleteRef carries [spi.DeleteRef].
var DeleteRef = &Method[spi.DeleteRefRequest, spi.DeleteRefResponse, pb.DeleteRefRequest, pb.DeleteRefResponse]{
	Path: pb.RefService_DeleteRef_FullMethodName,
	Call: spi.DeleteRef,
	EncodeRequest: func(r spi.DeleteRefRequest) *pb.DeleteRefRequest {
		return &pb.DeleteRefRequest{Name: string(r.Name), ExpectedVersion: r.ExpectedVersion}
	},
	DecodeRequest: func(m *pb.DeleteRefRequest) (spi.DeleteRefRequest, error) {
		return spi.DeleteRefRequest{Name: spi.RefName(m.GetName()), ExpectedVersion: m.GetExpectedVersion()}, nil
	},
	EncodeResponse: func(r spi.DeleteRefResponse) *pb.DeleteRefResponse {
		return &pb.DeleteRefResponse{Existed: r.Existed}
	},
	DecodeResponse: func(m *pb.DeleteRefResponse) (spi.DeleteRefResponse, error) {
		return spi.DeleteRefResponse{Existed: m.GetExisted()}, nil
	},
}

// ListRefs carries [spi.ListRefs].
var ListRefs = &Method[spi.ListRefsRequest, spi.ListRefsResponse, pb.ListRefsRequest, pb.ListRefsResponse]{
	Path: pb.RefService_ListRefs_FullMethodName,
	Call: spi.ListRefs,
	EncodeRequest: func(r spi.ListRefsRequest) *pb.ListRefsRequest {
		return &pb.ListRefsRequest{Prefix: r.Prefix, After: r.After, Limit: int32(r.Limit), AllowPartial: r.AllowPartial}
	},
	DecodeRequest: func(m *pb.ListRefsRequest) (spi.ListRefsRequest, error) {
		return spi.ListRefsRequest{Prefix: m.GetPrefix(), After: m.GetAfter(), Limit: int(m.GetLimit()), AllowPartial: m.GetAllowPartial()}, nil
	},
	EncodeResponse: func(r spi.ListRefsResponse) *pb.ListRefsResponse {
		return &pb.ListRefsResponse{Refs: each(r.Refs, encodeRef), Next: r.Next, Missing: int32(len(r.Missing))}
	},
	DecodeResponse: func(m *pb.ListRefsResponse) (spi.ListRefsResponse, error) {
		missing, err := decodeMissing(m.GetMissing())
		return spi.ListRefsResponse{Refs: each(m.GetRefs(), decodeRef), Next: m.GetNext(), Missing: missing}, err
	},
}

// PromoteRef carries [spi.PromoteRef].
var PromoteRef = &Method[spi.PromoteRefRequest, spi.PromoteRefResponse, pb.PromoteRefRequest, pb.PromoteRefResponse]{
	Path: pb.RefService_PromoteRef_FullMethodName,
	Call: spi.PromoteRef,
	EncodeRequest: func(r spi.PromoteRefRequest) *pb.PromoteRefRequest {
		return &pb.PromoteRefRequest{
			Name:            string(r.Name),
			Execution:       string(r.Execution),
			Sequence:        r.Sequence,
			ExpectedVersion: r.ExpectedVersion,
		}
	},
	DecodeRequest: func(m *pb.PromoteRefRequest) (spi.PromoteRefRequest, error) {
		return spi.PromoteRefRequest{
			Name:            spi.RefName(m.GetName()),
			Execution:       spi.ExecutionID(m.GetExecution()),
			Sequence:        m.GetSequence(),
			ExpectedVersion: m.GetExpectedVersion(),
		}, nil
	},
	EncodeResponse: func(r spi.PromoteRefResponse) *pb.PromoteRefResponse {
		return &pb.PromoteRefResponse{Ref: encodeRef(r.Ref)}
	},
	DecodeResponse: func(m *pb.PromoteRefResponse) (spi.PromoteRefResponse, error) {
		return spi.PromoteRefResponse{Ref: decodeRef(m.GetRef())}, nil
	},
}

// RefLineage carries [spi.RefLineage].
var RefLineage = &Method[spi.RefLineageRequest, spi.RefLineageResponse, pb.RefLineageRequest, pb.RefLineageResponse]{
	Path: pb.RefService_RefLineage_FullMethodName,
	Call: spi.RefLineage,
	EncodeRequest: func(r spi.RefLineageRequest) *pb.RefLineageRequest {
		return &pb.RefLineageRequest{Name: string(r.Name), Before: r.Before, Limit: int32(r.Limit)}
	},
	DecodeRequest: func(m *pb.RefLineageRequest) (spi.RefLineageRequest, error) {
		return spi.RefLineageRequest{Name: spi.RefName(m.GetName()), Before: m.GetBefore(), Limit: int(m.GetLimit())}, nil
	},
	EncodeResponse: func(r spi.RefLineageResponse) *pb.RefLineageResponse {
		return &pb.RefLineageResponse{Refs: each(r.Refs, encodeRef), More: r.More}
	},
	DecodeResponse: func(m *pb.RefLineageResponse) (spi.RefLineageResponse, error) {
		return spi.RefLineageResponse{Refs: each(m.GetRefs(), decodeRef), More: m.GetMore()}, nil
	},
}
