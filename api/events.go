package api

import (
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// Read carries [spi.Read].
var Read = &Method[spi.ReadRequest, spi.ReadResponse, pb.ReadRequest, pb.ReadResponse]{
	Path: pb.EventService_Read_FullMethodName,
	Call: spi.Read,
	EncodeRequest: func(r spi.ReadRequest) *pb.ReadRequest {
		return &pb.ReadRequest{
			Execution: string(r.Execution),
			After:     r.After,
			Until:     r.Until,
			Backward:  r.Backward,
			Limit:     int32(r.Limit),
			MaxBytes:  int32(r.MaxBytes),
		}
	},
	DecodeRequest: func(m *pb.ReadRequest) (spi.ReadRequest, error) {
		return spi.ReadRequest{
			Execution: spi.ExecutionID(m.GetExecution()),
			After:     m.GetAfter(),
			Until:     m.GetUntil(),
			Backward:  m.GetBackward(),
			Limit:     int(m.GetLimit()),
			MaxBytes:  int(m.GetMaxBytes()),
		}, nil
	},
	EncodeResponse: func(r spi.ReadResponse) *pb.ReadResponse {
		return &pb.ReadResponse{
			Events:      encodeRead(r.Events),
			More:        r.More,
			Incarnation: r.Incarnation,
			Floor:       r.Floor,
			Keyed:       r.Keyed,
			Shredded:    r.Shredded,
		}
	},
	DecodeResponse: func(m *pb.ReadResponse) (spi.ReadResponse, error) {
		events, err := decodeRead(m.GetEvents())
		if err != nil {
			return spi.ReadResponse{}, err
		}
		return spi.ReadResponse{
			Events:      events,
			More:        m.GetMore(),
			Incarnation: m.GetIncarnation(),
			Floor:       m.GetFloor(),
			Keyed:       m.GetKeyed(),
			Shredded:    m.GetShredded(),
		}, nil
	},
}

// Head carries [spi.Head].
var Head = &Method[spi.HeadRequest, spi.HeadResponse, pb.HeadRequest, pb.HeadResponse]{
	Path: pb.EventService_Head_FullMethodName,
	Call: spi.Head,
	EncodeRequest: func(r spi.HeadRequest) *pb.HeadRequest {
		return &pb.HeadRequest{Execution: string(r.Execution)}
	},
	DecodeRequest: func(m *pb.HeadRequest) (spi.HeadRequest, error) {
		return spi.HeadRequest{Execution: spi.ExecutionID(m.GetExecution())}, nil
	},
	EncodeResponse: func(r spi.HeadResponse) *pb.HeadResponse {
		return &pb.HeadResponse{
			Head:        r.Head,
			Fence:       r.Fence,
			Incarnation: r.Incarnation,
			Floor:       r.Floor,
		}
	},
	DecodeResponse: func(m *pb.HeadResponse) (spi.HeadResponse, error) {
		return spi.HeadResponse{
			Head:        m.GetHead(),
			Fence:       m.GetFence(),
			Incarnation: m.GetIncarnation(),
			Floor:       m.GetFloor(),
		}, nil
	},
}

// ListExecutions carries [spi.ListExecutions].
var ListExecutions = &Method[spi.ListExecutionsRequest, spi.ListExecutionsResponse, pb.ListExecutionsRequest, pb.ListExecutionsResponse]{
	Path: pb.EventService_ListExecutions_FullMethodName,
	Call: spi.ListExecutions,
	EncodeRequest: func(r spi.ListExecutionsRequest) *pb.ListExecutionsRequest {
		return &pb.ListExecutionsRequest{Prefix: r.Prefix, After: r.After, Limit: int32(r.Limit), AllowPartial: r.AllowPartial}
	},
	DecodeRequest: func(m *pb.ListExecutionsRequest) (spi.ListExecutionsRequest, error) {
		return spi.ListExecutionsRequest{Prefix: m.GetPrefix(), After: m.GetAfter(), Limit: int(m.GetLimit()), AllowPartial: m.GetAllowPartial()}, nil
	},
	EncodeResponse: func(r spi.ListExecutionsResponse) *pb.ListExecutionsResponse {
		ids := each(r.Executions, func(id spi.ExecutionID) string { return string(id) })
		return &pb.ListExecutionsResponse{Executions: ids, Next: r.Next, Missing: int32(len(r.Missing))}
	},
	DecodeResponse: func(m *pb.ListExecutionsResponse) (spi.ListExecutionsResponse, error) {
		ids := each(m.GetExecutions(), func(id string) spi.ExecutionID { return spi.ExecutionID(id) })
		missing, err := decodeMissing(m.GetMissing())
		return spi.ListExecutionsResponse{Executions: ids, Next: m.GetNext(), Missing: missing}, err
	},
}

// AcquireFence carries [spi.AcquireFence].
var AcquireFence = &Method[spi.AcquireFenceRequest, spi.AcquireFenceResponse, pb.AcquireFenceRequest, pb.AcquireFenceResponse]{
	Path: pb.EventService_AcquireFence_FullMethodName,
	Call: spi.AcquireFence,
	EncodeRequest: func(r spi.AcquireFenceRequest) *pb.AcquireFenceRequest {
		return &pb.AcquireFenceRequest{Execution: string(r.Execution), Incarnation: r.Incarnation}
	},
	DecodeRequest: func(m *pb.AcquireFenceRequest) (spi.AcquireFenceRequest, error) {
		return spi.AcquireFenceRequest{Execution: spi.ExecutionID(m.GetExecution()), Incarnation: m.GetIncarnation()}, nil
	},
	EncodeResponse: func(r spi.AcquireFenceResponse) *pb.AcquireFenceResponse {
		return &pb.AcquireFenceResponse{Token: r.Token}
	},
	DecodeResponse: func(m *pb.AcquireFenceResponse) (spi.AcquireFenceResponse, error) {
		return spi.AcquireFenceResponse{Token: m.GetToken()}, nil
	},
}

// AcquireFenceIf carries [spi.AcquireFenceIf].
var AcquireFenceIf = &Method[spi.AcquireFenceIfRequest, spi.AcquireFenceIfResponse, pb.AcquireFenceIfRequest, pb.AcquireFenceIfResponse]{
	Path: pb.EventService_AcquireFenceIf_FullMethodName,
	Call: spi.AcquireFenceIf,
	EncodeRequest: func(r spi.AcquireFenceIfRequest) *pb.AcquireFenceIfRequest {
		return &pb.AcquireFenceIfRequest{
			Execution:   string(r.Execution),
			Incarnation: r.Incarnation,
			Fence:       r.Fence,
			ParkSeq:     r.ParkSeq,
		}
	},
	DecodeRequest: func(m *pb.AcquireFenceIfRequest) (spi.AcquireFenceIfRequest, error) {
		return spi.AcquireFenceIfRequest{
			Execution:   spi.ExecutionID(m.GetExecution()),
			Incarnation: m.GetIncarnation(),
			Fence:       m.GetFence(),
			ParkSeq:     m.GetParkSeq(),
		}, nil
	},
	EncodeResponse: func(r spi.AcquireFenceIfResponse) *pb.AcquireFenceIfResponse {
		return &pb.AcquireFenceIfResponse{Acquired: r.Acquired, Token: r.Token}
	},
	DecodeResponse: func(m *pb.AcquireFenceIfResponse) (spi.AcquireFenceIfResponse, error) {
		return spi.AcquireFenceIfResponse{Acquired: m.GetAcquired(), Token: m.GetToken()}, nil
	},
}

// CopyPrefix carries [spi.CopyPrefix].
var CopyPrefix = &Method[spi.CopyPrefixRequest, spi.CopyPrefixResponse, pb.CopyPrefixRequest, pb.CopyPrefixResponse]{
	Path: pb.EventService_CopyPrefix_FullMethodName,
	Call: spi.CopyPrefix,
	EncodeRequest: func(r spi.CopyPrefixRequest) *pb.CopyPrefixRequest {
		return &pb.CopyPrefixRequest{From: string(r.From), To: string(r.To), Incarnation: r.Incarnation, N: r.N}
	},
	DecodeRequest: func(m *pb.CopyPrefixRequest) (spi.CopyPrefixRequest, error) {
		return spi.CopyPrefixRequest{
			From:        spi.ExecutionID(m.GetFrom()),
			To:          spi.ExecutionID(m.GetTo()),
			Incarnation: m.GetIncarnation(),
			N:           m.GetN(),
		}, nil
	},
	EncodeResponse: func(r spi.CopyPrefixResponse) *pb.CopyPrefixResponse {
		return &pb.CopyPrefixResponse{Head: r.Head, Incarnation: r.Incarnation, Duplicate: r.Duplicate}
	},
	DecodeResponse: func(m *pb.CopyPrefixResponse) (spi.CopyPrefixResponse, error) {
		return spi.CopyPrefixResponse{Head: m.GetHead(), Incarnation: m.GetIncarnation(), Duplicate: m.GetDuplicate()}, nil
	},
}

// TruncatePrefixKeeping carries [spi.TruncatePrefixKeeping].
var TruncatePrefixKeeping = &Method[spi.TruncatePrefixKeepingRequest, spi.TruncatePrefixKeepingResponse, pb.TruncatePrefixKeepingRequest, pb.TruncatePrefixKeepingResponse]{
	Path: pb.EventService_TruncatePrefixKeeping_FullMethodName,
	Call: spi.TruncatePrefixKeeping,
	EncodeRequest: func(r spi.TruncatePrefixKeepingRequest) *pb.TruncatePrefixKeepingRequest {
		return &pb.TruncatePrefixKeepingRequest{
			Execution:   string(r.Execution),
			Incarnation: r.Incarnation,
			Before:      r.Before,
			Keep:        r.Keep,
		}
	},
	DecodeRequest: func(m *pb.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingRequest, error) {
		return spi.TruncatePrefixKeepingRequest{
			Execution:   spi.ExecutionID(m.GetExecution()),
			Incarnation: m.GetIncarnation(),
			Before:      m.GetBefore(),
			Keep:        m.GetKeep(),
		}, nil
	},
	EncodeResponse: func(r spi.TruncatePrefixKeepingResponse) *pb.TruncatePrefixKeepingResponse {
		return &pb.TruncatePrefixKeepingResponse{Floor: r.Floor, Dropped: r.Dropped}
	},
	DecodeResponse: func(m *pb.TruncatePrefixKeepingResponse) (spi.TruncatePrefixKeepingResponse, error) {
		return spi.TruncatePrefixKeepingResponse{Floor: m.GetFloor(), Dropped: m.GetDropped()}, nil
	},
}

// DeleteExecution carries [spi.DeleteExecution].
var DeleteExecution = &Method[spi.DeleteExecutionRequest, spi.DeleteExecutionResponse, pb.DeleteExecutionRequest, pb.DeleteExecutionResponse]{
	Path: pb.EventService_DeleteExecution_FullMethodName,
	Call: spi.DeleteExecution,
	EncodeRequest: func(r spi.DeleteExecutionRequest) *pb.DeleteExecutionRequest {
		return &pb.DeleteExecutionRequest{Execution: string(r.Execution), Incarnation: r.Incarnation}
	},
	DecodeRequest: func(m *pb.DeleteExecutionRequest) (spi.DeleteExecutionRequest, error) {
		return spi.DeleteExecutionRequest{Execution: spi.ExecutionID(m.GetExecution()), Incarnation: m.GetIncarnation()}, nil
	},
	EncodeResponse: func(r spi.DeleteExecutionResponse) *pb.DeleteExecutionResponse {
		return &pb.DeleteExecutionResponse{Existed: r.Existed, Incarnation: r.Incarnation}
	},
	DecodeResponse: func(m *pb.DeleteExecutionResponse) (spi.DeleteExecutionResponse, error) {
		return spi.DeleteExecutionResponse{Existed: m.GetExisted(), Incarnation: m.GetIncarnation()}, nil
	},
}

// SweepTombstones carries [spi.SweepTombstones].
var SweepTombstones = &Method[spi.SweepTombstonesRequest, spi.SweepTombstonesResponse, pb.SweepTombstonesRequest, pb.SweepTombstonesResponse]{
	Path: pb.EventService_SweepTombstones_FullMethodName,
	Call: spi.SweepTombstones,
	EncodeRequest: func(r spi.SweepTombstonesRequest) *pb.SweepTombstonesRequest {
		return &pb.SweepTombstonesRequest{Prefix: r.Prefix, OlderThan: durationpb.New(r.OlderThan), Limit: int32(r.Limit)}
	},
	DecodeRequest: func(m *pb.SweepTombstonesRequest) (spi.SweepTombstonesRequest, error) {
		age, err := decodeDuration("older than", m.GetOlderThan())
		if err != nil {
			return spi.SweepTombstonesRequest{}, err
		}
		return spi.SweepTombstonesRequest{Prefix: m.GetPrefix(), OlderThan: age, Limit: int(m.GetLimit())}, nil
	},
	EncodeResponse: func(r spi.SweepTombstonesResponse) *pb.SweepTombstonesResponse {
		return &pb.SweepTombstonesResponse{Swept: int32(r.Swept)}
	},
	DecodeResponse: func(m *pb.SweepTombstonesResponse) (spi.SweepTombstonesResponse, error) {
		return spi.SweepTombstonesResponse{Swept: int(m.GetSwept())}, nil
	},
}
