package tenant_test

import (
	"context"
	"reflect"

	"pgregory.net/rapid"

	"github.com/loomgate/loomgate/spi"
)

// spy stands between a view and the shared store, sees each request, and may change
// what is told of it.
type spy struct {
	inner *spi.Store
	layer spi.Layer
	sees  func(req any)
	tells func(res any, err error) error // res points to the response
}

func spyOn(tb rapid.TB, inner *spi.Store) (*spy, *spi.Store) {
	tb.Helper()
	s := &spy{inner, spi.Layer{Name: "spy"}, func(any) {}, func(_ any, err error) error { return err }}
	store, err := spi.Wrap(s, inner)
	if err != nil {
		tb.Fatal(err)
	}
	return s, store
}

func (s *spy) Caps(inner spi.Caps) spi.Caps { return inner }
func (s *spy) Layer() spi.Layer             { return s.layer }

func forward[Q, R any](ctx context.Context, s *spy, req Q, method func(context.Context, *spi.Store, Q) (R, error)) (R, error) {
	s.sees(req)
	res, err := method(ctx, s.inner, req)
	err = s.tells(&res, err)
	return res, err
}

// eachName visits every name in a request or a response: what has the type of one,
// and where a page begins and goes on.
func eachName(v reflect.Value, visit func(field string, name reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		eachName(v.Elem(), visit)
	case reflect.Slice:
		for i := range v.Len() {
			eachName(v.Index(i), visit)
		}
	case reflect.String:
		switch v.Interface().(type) {
		case spi.ExecutionID, spi.RefName, spi.LeaseName, spi.KeyOwner:
			visit(v.Type().Name(), v)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			switch field := v.Type().Field(i); {
			case !field.IsExported():
			case field.Name == "Prefix" || field.Name == "After" && field.Type.Kind() == reflect.String || field.Name == "Next":
				visit(field.Name, v.Field(i))
			default:
				eachName(v.Field(i), visit)
			}
		}
	}
}

func (s *spy) Append(ctx context.Context, req spi.AppendRequest) (spi.AppendResponse, error) {
	return forward(ctx, s, req, spi.Append)
}

func (s *spy) Read(ctx context.Context, req spi.ReadRequest) (spi.ReadResponse, error) {
	return forward(ctx, s, req, spi.Read)
}

func (s *spy) Head(ctx context.Context, req spi.HeadRequest) (spi.HeadResponse, error) {
	return forward(ctx, s, req, spi.Head)
}

func (s *spy) ListExecutions(ctx context.Context, req spi.ListExecutionsRequest) (spi.ListExecutionsResponse, error) {
	return forward(ctx, s, req, spi.ListExecutions)
}

func (s *spy) AppendBatch(ctx context.Context, req spi.AppendBatchRequest) (spi.AppendBatchResponse, error) {
	return forward(ctx, s, req, spi.AppendBatch)
}

func (s *spy) AcquireFence(ctx context.Context, req spi.AcquireFenceRequest) (spi.AcquireFenceResponse, error) {
	return forward(ctx, s, req, spi.AcquireFence)
}

func (s *spy) AcquireFenceIf(ctx context.Context, req spi.AcquireFenceIfRequest) (spi.AcquireFenceIfResponse, error) {
	return forward(ctx, s, req, spi.AcquireFenceIf)
}

func (s *spy) AppendIfUnchanged(ctx context.Context, req spi.AppendIfUnchangedRequest) (spi.AppendIfUnchangedResponse, error) {
	return forward(ctx, s, req, spi.AppendIfUnchanged)
}

func (s *spy) CopyPrefix(ctx context.Context, req spi.CopyPrefixRequest) (spi.CopyPrefixResponse, error) {
	return forward(ctx, s, req, spi.CopyPrefix)
}

func (s *spy) TruncatePrefixKeeping(ctx context.Context, req spi.TruncatePrefixKeepingRequest) (spi.TruncatePrefixKeepingResponse, error) {
	return forward(ctx, s, req, spi.TruncatePrefixKeeping)
}

func (s *spy) DeleteExecution(ctx context.Context, req spi.DeleteExecutionRequest) (spi.DeleteExecutionResponse, error) {
	return forward(ctx, s, req, spi.DeleteExecution)
}

func (s *spy) SweepTombstones(ctx context.Context, req spi.SweepTombstonesRequest) (spi.SweepTombstonesResponse, error) {
	return forward(ctx, s, req, spi.SweepTombstones)
}

func (s *spy) ScheduleTimer(ctx context.Context, req spi.ScheduleTimerRequest) (spi.ScheduleTimerResponse, error) {
	return forward(ctx, s, req, spi.ScheduleTimer)
}

func (s *spy) DueTimers(ctx context.Context, req spi.DueTimersRequest) (spi.DueTimersResponse, error) {
	return forward(ctx, s, req, spi.DueTimers)
}

func (s *spy) CompleteTimer(ctx context.Context, req spi.CompleteTimerRequest) (spi.CompleteTimerResponse, error) {
	return forward(ctx, s, req, spi.CompleteTimer)
}

func (s *spy) PutRef(ctx context.Context, req spi.PutRefRequest) (spi.PutRefResponse, error) {
	return forward(ctx, s, req, spi.PutRef)
}

func (s *spy) GetRef(ctx context.Context, req spi.GetRefRequest) (spi.GetRefResponse, error) {
	return forward(ctx, s, req, spi.GetRef)
}

func (s *spy) DeleteRef(ctx context.Context, req spi.DeleteRefRequest) (spi.DeleteRefResponse, error) {
	return forward(ctx, s, req, spi.DeleteRef)
}

func (s *spy) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	return forward(ctx, s, req, spi.ListRefs)
}

func (s *spy) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	return forward(ctx, s, req, spi.PromoteRef)
}

func (s *spy) RefLineage(ctx context.Context, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
	return forward(ctx, s, req, spi.RefLineage)
}

func (s *spy) AcquireLease(ctx context.Context, req spi.AcquireLeaseRequest) (spi.AcquireLeaseResponse, error) {
	return forward(ctx, s, req, spi.AcquireLease)
}

func (s *spy) RenewLease(ctx context.Context, req spi.RenewLeaseRequest) (spi.RenewLeaseResponse, error) {
	return forward(ctx, s, req, spi.RenewLease)
}

func (s *spy) ReleaseLease(ctx context.Context, req spi.ReleaseLeaseRequest) (spi.ReleaseLeaseResponse, error) {
	return forward(ctx, s, req, spi.ReleaseLease)
}

func (s *spy) CreateDataKey(ctx context.Context, req spi.CreateDataKeyRequest) (spi.CreateDataKeyResponse, error) {
	return forward(ctx, s, req, spi.CreateDataKey)
}

func (s *spy) GetDataKey(ctx context.Context, req spi.GetDataKeyRequest) (spi.GetDataKeyResponse, error) {
	return forward(ctx, s, req, spi.GetDataKey)
}

func (s *spy) DestroyDataKey(ctx context.Context, req spi.DestroyDataKeyRequest) (spi.DestroyDataKeyResponse, error) {
	return forward(ctx, s, req, spi.DestroyDataKey)
}

func (s *spy) ListDataKeys(ctx context.Context, req spi.ListDataKeysRequest) (spi.ListDataKeysResponse, error) {
	return forward(ctx, s, req, spi.ListDataKeys)
}

func (s *spy) RewrapDataKey(ctx context.Context, req spi.RewrapDataKeyRequest) (spi.RewrapDataKeyResponse, error) {
	return forward(ctx, s, req, spi.RewrapDataKey)
}

func (s *spy) GetOwnership(ctx context.Context, req spi.GetOwnershipRequest) (spi.GetOwnershipResponse, error) {
	return forward(ctx, s, req, spi.GetOwnership)
}

func (s *spy) ChangeOwnership(ctx context.Context, req spi.ChangeOwnershipRequest) (spi.ChangeOwnershipResponse, error) {
	return forward(ctx, s, req, spi.ChangeOwnership)
}
