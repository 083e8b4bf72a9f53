package api

import (
	"errors"
	"fmt"

	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// Append carries [spi.Append].
var Append = &Method[spi.AppendRequest, spi.AppendResponse, pb.AppendRequest, pb.AppendResponse]{
	Path:           pb.EventService_Append_FullMethodName,
	Call:           spi.Append,
	EncodeRequest:  encodeAppend,
	DecodeRequest:  decodeAppend,
	EncodeResponse: encodeAppended,
	DecodeResponse: func(m *pb.AppendResponse) (spi.AppendResponse, error) { return decodeAppended(m), nil },
}

func encodeAppend(r spi.AppendRequest) *pb.AppendRequest {
	return &pb.AppendRequest{
		Execution:    string(r.Execution),
		ExpectedHead: r.ExpectedHead,
		Fence:        r.Fence,
		Incarnation:  r.Incarnation,
		SinceSeq:     r.SinceSeq,
		Events:       encodeWritten(r.Events),
	}
}

func decodeAppend(m *pb.AppendRequest) (spi.AppendRequest, error) {
	events, err := decodeWritten(m.GetEvents())
	if err != nil {
		return spi.AppendRequest{}, err
	}
	return spi.AppendRequest{
		Execution:    spi.ExecutionID(m.GetExecution()),
		ExpectedHead: m.GetExpectedHead(),
		Fence:        m.GetFence(),
		Incarnation:  m.GetIncarnation(),
		SinceSeq:     m.GetSinceSeq(),
		Events:       events,
	}, nil
}

func encodeAppended(r spi.AppendResponse) *pb.AppendResponse {
	return &pb.AppendResponse{
		FirstSeq:    r.FirstSeq,
		Head:        r.Head,
		Incarnation: r.Incarnation,
		Floor:       r.Floor,
		Duplicate:   r.Duplicate,
	}
}

func decodeAppended(m *pb.AppendResponse) spi.AppendResponse {
	return spi.AppendResponse{
		FirstSeq:    m.GetFirstSeq(),
		Head:        m.GetHead(),
		Incarnation: m.GetIncarnation(),
		Floor:       m.GetFloor(),
		Duplicate:   m.GetDuplicate(),
	}
}

// AppendBatch carries [spi.AppendBatch].
var AppendBatch = &Method[spi.AppendBatchRequest, spi.AppendBatchResponse, pb.AppendBatchRequest, pb.AppendBatchResponse]{
	Path: pb.EventService_AppendBatch_FullMethodName,
	Call: spi.AppendBatch,
	EncodeRequest: func(r spi.AppendBatchRequest) *pb.AppendBatchRequest {
		return &pb.AppendBatchRequest{Appends: each(r.Appends, encodeAppend)}
	},
	DecodeRequest: func(m *pb.AppendBatchRequest) (r spi.AppendBatchRequest, _ error) {
		for i, item := range m.GetAppends() {
			req, err := decodeAppend(item)
			if err != nil {
				if e, ok := errors.AsType[*spi.InvalidArgumentError](err); ok {
					err = invalid(fmt.Sprintf("appends[%d].%s", i, e.Field), e.Rule)
				}
				return spi.AppendBatchRequest{}, err
			}
			r.Appends = append(r.Appends, req)
		}
		return r, nil
	},
	EncodeResponse: func(r spi.AppendBatchResponse) *pb.AppendBatchResponse {
		return &pb.AppendBatchResponse{Results: each(r.Results, encodeResult)}
	},
	DecodeResponse: func(m *pb.AppendBatchResponse) (spi.AppendBatchResponse, error) {
		results, err := eachOf(m.GetResults(), decodeResult)
		return spi.AppendBatchResponse{Results: results}, err
	},
}

func encodeResult(r spi.AppendResult) *pb.AppendResult {
	if r.Err != nil {
		return &pb.AppendResult{Result: &pb.AppendResult_Error{Error: EncodeError(r.Err)}}
	}
	return &pb.AppendResult{Result: &pb.AppendResult_Appended{Appended: encodeAppended(r.AppendResponse)}}
}

func decodeResult(m *pb.AppendResult) (spi.AppendResult, error) {
	switch result := m.GetResult().(type) {
	case *pb.AppendResult_Appended:
		return spi.AppendResult{AppendResponse: decodeAppended(result.Appended)}, nil
	case *pb.AppendResult_Error:
		return spi.AppendResult{Err: DecodeError(result.Error)}, nil
	}
	return spi.AppendResult{}, invalid("results", "has one that is neither an answer nor an error")
}

// AppendIfUnchanged carries [spi.AppendIfUnchanged].
var AppendIfUnchanged = &Method[spi.AppendIfUnchangedRequest, spi.AppendIfUnchangedResponse, pb.AppendIfUnchangedRequest, pb.AppendIfUnchangedResponse]{
	Path: pb.EventService_AppendIfUnchanged_FullMethodName,
	Call: spi.AppendIfUnchanged,
	EncodeRequest: func(r spi.AppendIfUnchangedRequest) *pb.AppendIfUnchangedRequest {
		return &pb.AppendIfUnchangedRequest{
			Execution:   string(r.Execution),
			Fence:       r.Fence,
			Head:        r.Head,
			Incarnation: r.Incarnation,
			SinceSeq:    r.SinceSeq,
			Events:      encodeWritten(r.Events),
		}
	},
	DecodeRequest: func(m *pb.AppendIfUnchangedRequest) (spi.AppendIfUnchangedRequest, error) {
		events, err := decodeWritten(m.GetEvents())
		if err != nil {
			return spi.AppendIfUnchangedRequest{}, err
		}
		return spi.AppendIfUnchangedRequest{
			Execution:   spi.ExecutionID(m.GetExecution()),
			Fence:       m.GetFence(),
			Head:        m.GetHead(),
			Incarnation: m.GetIncarnation(),
			SinceSeq:    m.GetSinceSeq(),
			Events:      events,
		}, nil
	},
	EncodeResponse: func(r spi.AppendIfUnchangedResponse) *pb.AppendIfUnchangedResponse {
		return &pb.AppendIfUnchangedResponse{
			FirstSeq:    r.FirstSeq,
			Head:        r.Head,
			Incarnation: r.Incarnation,
			Floor:       r.Floor,
			Duplicate:   r.Duplicate,
		}
	},
	DecodeResponse: func(m *pb.AppendIfUnchangedResponse) (spi.AppendIfUnchangedResponse, error) {
		return spi.AppendIfUnchangedResponse{AppendResponse: spi.AppendResponse{
			FirstSeq:    m.GetFirstSeq(),
			Head:        m.GetHead(),
			Incarnation: m.GetIncarnation(),
			Floor:       m.GetFloor(),
			Duplicate:   m.GetDuplicate(),
		}}, nil
	},
}
