package api

import (
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

func encodeTimer(t spi.Timer) *pb.Timer {
	return &pb.Timer{
		Execution: string(t.Execution),
		WakeAt:    encodeTime(t.WakeAt),
		Redrive:   t.Redrive,
		Attempt:   int32(t.Attempt),
		Version:   t.Version,
	}
}

func decodeTimer(m *pb.Timer) (spi.Timer, error) {
	wakeAt, ok := decodeTime(m.GetWakeAt())
	if !ok {
		return spi.Timer{}, invalid("wake time", noTime)
	}
	return spi.Timer{
		Execution: spi.ExecutionID(m.GetExecution()),
		WakeAt:    wakeAt,
		Redrive:   m.GetRedrive(),
		Attempt:   int(m.GetAttempt()),
		Version:   m.GetVersion(),
	}, nil
}

// ScheduleTimer carries [spi.ScheduleTimer].
var ScheduleTimer = &Method[spi.ScheduleTimerRequest, spi.ScheduleTimerResponse, pb.ScheduleTimerRequest, pb.ScheduleTimerResponse]{
	Path: pb.TimerService_ScheduleTimer_FullMethodName,
	Call: spi.ScheduleTimer,
	EncodeRequest: func(r spi.ScheduleTimerRequest) *pb.ScheduleTimerRequest {
		return &pb.ScheduleTimerRequest{Timer: encodeTimer(r.Timer)}
	},
	DecodeRequest: func(m *pb.ScheduleTimerRequest) (spi.ScheduleTimerRequest, error) {
		timer, err := decodeTimer(m.GetTimer())
		return spi.ScheduleTimerRequest{Timer: timer}, err
	},
	EncodeResponse: func(r spi.ScheduleTimerResponse) *pb.ScheduleTimerResponse {
		return &pb.ScheduleTimerResponse{Timer: encodeTimer(r.Timer)}
	},
	DecodeResponse: func(m *pb.ScheduleTimerResponse) (spi.ScheduleTimerResponse, error) {
		timer, err := decodeTimer(m.GetTimer())
		return spi.ScheduleTimerResponse{Timer: timer}, err
	},
}

// unnamedShard stands for each shard that did not answer: which it was is told to
// operators only.
const unnamedShard = "unnamed"

// decodeMissing returns so many shards.
func decodeMissing(n int32) (missing []string, err error) {
	if n < 0 || n > spi.HashSlots {
		return nil, invalid("missing", "is no number of shards")
	}
	for range n {
		missing = append(missing, unnamedShard)
	}
	return missing, nil
}

// DueTimers carries [spi.DueTimers].
var DueTimers = &Method[spi.DueTimersRequest, spi.DueTimersResponse, pb.DueTimersRequest, pb.DueTimersResponse]{
	Path: pb.TimerService_DueTimers_FullMethodName,
	Call: spi.DueTimers,
	EncodeRequest: func(r spi.DueTimersRequest) *pb.DueTimersRequest {
		return &pb.DueTimersRequest{Prefix: r.Prefix, Limit: int32(r.Limit), ExcludeRedrive: r.ExcludeRedrive}
	},
	DecodeRequest: func(m *pb.DueTimersRequest) (spi.DueTimersRequest, error) {
		return spi.DueTimersRequest{Prefix: m.GetPrefix(), Limit: int(m.GetLimit()), ExcludeRedrive: m.GetExcludeRedrive()}, nil
	},
	EncodeResponse: func(r spi.DueTimersResponse) *pb.DueTimersResponse {
		return &pb.DueTimersResponse{
			Now:     encodeTime(r.Now),
			Timers:  each(r.Timers, encodeTimer),
			Missing: int32(len(r.Missing)),
		}
	},
	DecodeResponse: func(m *pb.DueTimersResponse) (spi.DueTimersResponse, error) {
		now, ok := decodeTime(m.GetNow())
		if !ok {
			return spi.DueTimersResponse{}, invalid("now", noTime)
		}
		missing, err := decodeMissing(m.GetMissing())
		if err != nil {
			return spi.DueTimersResponse{}, err
		}
		timers, err := eachOf(m.GetTimers(), decodeTimer)
		return spi.DueTimersResponse{Now: now, Timers: timers, Missing: missing}, err
	},
}

// CompleteTimer carries [spi.CompleteTimer].
var CompleteTimer = &Method[spi.CompleteTimerRequest, spi.CompleteTimerResponse, pb.CompleteTimerRequest, pb.CompleteTimerResponse]{
	Path: pb.TimerService_CompleteTimer_FullMethodName,
	Call: spi.CompleteTimer,
	EncodeRequest: func(r spi.CompleteTimerRequest) *pb.CompleteTimerRequest {
		return &pb.CompleteTimerRequest{Execution: string(r.Execution), WakeAt: encodeTime(r.WakeAt), Version: r.Version}
	},
	DecodeRequest: func(m *pb.CompleteTimerRequest) (spi.CompleteTimerRequest, error) {
		wakeAt, ok := decodeTime(m.GetWakeAt())
		if !ok {
			return spi.CompleteTimerRequest{}, invalid("wake time", noTime)
		}
		return spi.CompleteTimerRequest{Execution: spi.ExecutionID(m.GetExecution()), WakeAt: wakeAt, Version: m.GetVersion()}, nil
	},
	EncodeResponse: func(r spi.CompleteTimerResponse) *pb.CompleteTimerResponse {
		return &pb.CompleteTimerResponse{Completed: r.Completed}
	},
	DecodeResponse: func(m *pb.CompleteTimerResponse) (spi.CompleteTimerResponse, error) {
		return spi.CompleteTimerResponse{Completed: m.GetCompleted()}, nil
	},
}
