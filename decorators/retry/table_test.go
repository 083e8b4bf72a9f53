package retry_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loomgate/loomgate/decorators/retry"
	"github.com/loomgate/loomgate/spi"
)

// A row is one of the table in docs/retry.md.
type row struct {
	method, request string
	again           bool
	settled         []string
}

// rows reads the table.
func rows(t *testing.T) []row {
	t.Helper()
	page, err := os.ReadFile("../../docs/retry.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []row
	words := regexp.MustCompile("`([A-Za-z]+)`")
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.TrimSpace(line), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		r := row{method: strings.Trim(cells[1], "`"), request: strings.ReplaceAll(cells[2], "`", ""), again: cells[3] == "again"}
		if !r.again && cells[3] != "never" {
			t.Errorf("%s: %q is neither again nor never", r.method, cells[3])
		}
		for _, m := range words.FindAllStringSubmatch(cells[4], -1) {
			r.settled = append(r.settled, m[1])
		}
		all = append(all, r)
	}
	return all
}

// requests has one for each row, by method and request.
var requests = map[string]func(context.Context, *spi.Store) error{
	"Append at a head":                                  sending(spi.Append, atHead),
	"Append at AnyHead with SinceSeq":                   sending(spi.Append, atAnySince),
	"Append at AnyHead without SinceSeq":                sending(spi.Append, atAny),
	"AppendBatch an append at a head":                   inBatch(atHead),
	"AppendBatch an append at AnyHead with SinceSeq":    inBatch(atAnySince),
	"AppendBatch an append at AnyHead without SinceSeq": inBatch(atAny),
	"AppendIfUnchanged any":                             sending(spi.AppendIfUnchanged, spi.AppendIfUnchangedRequest{Execution: "e", Events: noted}),
	"CopyPrefix any":                                    sending(spi.CopyPrefix, spi.CopyPrefixRequest{From: "e", To: "f", N: 1}),
	"AcquireFence any":                                  sending(spi.AcquireFence, spi.AcquireFenceRequest{Execution: "e"}),
	"AcquireFenceIf any":                                sending(spi.AcquireFenceIf, spi.AcquireFenceIfRequest{Execution: "e", ParkSeq: 1}),
	"TruncatePrefixKeeping any":                         sending(spi.TruncatePrefixKeeping, spi.TruncatePrefixKeepingRequest{Execution: "e", Incarnation: 1, Before: 2}),
	"DeleteExecution any":                               sending(spi.DeleteExecution, spi.DeleteExecutionRequest{Execution: "e", Incarnation: 1}),
	"SweepTombstones any":                               sending(spi.SweepTombstones, spi.SweepTombstonesRequest{Limit: 1}),
	"Read any":                                          sending(spi.Read, spi.ReadRequest{Execution: "e", Limit: 1}),
	"Head any":                                          sending(spi.Head, spi.HeadRequest{Execution: "e"}),
	"ListExecutions any":                                sending(spi.ListExecutions, spi.ListExecutionsRequest{Limit: 1}),
	"ScheduleTimer any":                                 sending(spi.ScheduleTimer, spi.ScheduleTimerRequest{Timer: spi.Timer{Execution: "e", WakeAt: time.Unix(1, 0)}}),
	"DueTimers any":                                     sending(spi.DueTimers, spi.DueTimersRequest{Limit: 1}),
	"CompleteTimer any":                                 sending(spi.CompleteTimer, spi.CompleteTimerRequest{Execution: "e", WakeAt: time.Unix(1, 0), Version: 1}),
	"PutRef at a version":                               sending(spi.PutRef, spi.PutRefRequest{Name: "r", Execution: "e", ExpectedVersion: 1}),
	"PutRef at AnyVersion":                              sending(spi.PutRef, putAny),
	"PutRef of a new name":                              sending(spi.PutRef, putNew),
	"PromoteRef any":                                    sending(spi.PromoteRef, spi.PromoteRefRequest{Name: "r", Execution: "e", ExpectedVersion: 1}),
	"DeleteRef at a version":                            sending(spi.DeleteRef, spi.DeleteRefRequest{Name: "r", ExpectedVersion: 1}),
	"DeleteRef at AnyVersion":                           sending(spi.DeleteRef, spi.DeleteRefRequest{Name: "r", ExpectedVersion: spi.AnyVersion}),
	"GetRef any":                                        sending(spi.GetRef, spi.GetRefRequest{Name: "r"}),
	"ListRefs any":                                      sending(spi.ListRefs, spi.ListRefsRequest{Limit: 1}),
	"RefLineage any":                                    sending(spi.RefLineage, spi.RefLineageRequest{Name: "r", Limit: 1}),
	"AcquireLease any":                                  sending(spi.AcquireLease, spi.AcquireLeaseRequest{Name: "l", Holder: "h", TTL: time.Second}),
	"RenewLease any":                                    sending(spi.RenewLease, spi.RenewLeaseRequest{Name: "l", Token: 1, TTL: time.Second}),
	"ReleaseLease any":                                  sending(spi.ReleaseLease, spi.ReleaseLeaseRequest{Name: "l", Token: 1}),
	"CreateDataKey any":                                 sending(spi.CreateDataKey, spi.CreateDataKeyRequest{Key: spi.DataKey{Owner: "e", Version: 1, ID: spi.KeyID{1}, WrappedBy: "kms", Wrapped: []byte{1}}}),
	"GetDataKey any":                                    sending(spi.GetDataKey, spi.GetDataKeyRequest{Owner: "e"}),
	"DestroyDataKey of a tenant":                        sending(spi.DestroyDataKey, spi.DestroyDataKeyRequest{Owner: "4:acme/", Version: 1}),
	"DestroyDataKey of an execution":                    sending(spi.DestroyDataKey, spi.DestroyDataKeyRequest{Owner: "4:acme/e", Version: 1}),
	"RewrapDataKey of a tenant":                         sending(spi.RewrapDataKey, rewrap("4:acme/")),
	"RewrapDataKey of an execution":                     sending(spi.RewrapDataKey, rewrap("e")),
	"ListDataKeys any":                                  sending(spi.ListDataKeys, spi.ListDataKeysRequest{Limit: 1}),
	"GetOwnership any":                                  sending(spi.GetOwnership, spi.GetOwnershipRequest{}),
	"ChangeOwnership any":                               sending(spi.ChangeOwnership, spi.ChangeOwnershipRequest{ExpectedVersion: 1}),
}

var (
	noted      = []spi.Event{{ID: spi.NewEventID(), Kind: "Noted"}}
	atHead     = spi.AppendRequest{Execution: "e", ExpectedHead: 3, Events: noted}
	atAny      = spi.AppendRequest{Execution: "e", ExpectedHead: spi.AnyHead, Events: noted}
	atAnySince = spi.AppendRequest{Execution: "e", ExpectedHead: spi.AnyHead, SinceSeq: 4, Events: noted}
	putNew     = spi.PutRefRequest{Name: "r", Execution: "e"}
	putAny     = spi.PutRefRequest{Name: "r", Execution: "e", ExpectedVersion: spi.AnyVersion}
)

func rewrap(owner spi.KeyOwner) spi.RewrapDataKeyRequest {
	return spi.RewrapDataKeyRequest{Owner: owner, Version: 1, OldWrappedBy: "kms", WrappedBy: "kms", Wrapped: []byte{1}}
}

// inBatch sends an append as a batch.
func inBatch(req spi.AppendRequest) func(context.Context, *spi.Store) error {
	return func(ctx context.Context, s *spi.Store) error {
		res, err := spi.AppendBatch(ctx, s, spi.AppendBatchRequest{Appends: []spi.AppendRequest{req}})
		if err != nil {
			return err
		}
		return res.Results[0].Err
	}
}

func sending[Q, R any](call func(context.Context, *spi.Store, Q) (R, error), req Q) func(context.Context, *spi.Store) error {
	return func(ctx context.Context, s *spi.Store) error {
		_, err := call(ctx, s, req)
		return err
	}
}

// errorsOf is every error of package spi that a call can answer, by its type's name.
var errorsOf = func() map[string]error {
	all := map[string]error{}
	for _, err := range []error{
		&spi.InvalidArgumentError{}, &spi.UnsupportedError{}, &spi.ConflictError{}, &spi.StaleFenceError{}, &spi.IncarnationError{},
		&spi.TruncatedError{}, &spi.AmbiguousError{Cause: errLost}, &spi.UnavailableError{Cause: errLost}, &spi.ThrottledError{}, &spi.InternalError{Cause: errLost},
		&spi.NotFoundError{}, &spi.RangeError{}, &spi.TooLargeError{}, &spi.RefVersionError{}, &spi.LeaseHeldError{}, &spi.LeaseLostError{},
		&spi.ShreddedError{}, &spi.KeyMismatchError{}, &spi.MisroutedError{}, &spi.SlotMovingError{}, &spi.OwnershipError{}, &spi.CoverageError{},
		&spi.ShardError{Shard: "s", Err: &spi.NotFoundError{}}, &spi.CompatibilityError{},
	} {
		all[reflect.TypeOf(err).Elem().Name()] = err
	}
	return all
}()

// notOfCalls are the errors that only making a store answers, and the wrapper of all.
var notOfCalls = []string{"OpError", "LayerOrderError", "EmbeddingError"}

var errLost = errors.New("the connection broke")

// passing are the errors after which everything is sent again.
var passing = []string{"UnavailableError", "ThrottledError", "SlotMovingError", "CoverageError"}

func TestTheTableHasEveryMethodAndEveryErrorIsTried(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rows(t) {
		seen[r.method] = true
		if requests[r.method+" "+r.request] == nil {
			t.Errorf("nothing tries %s %s", r.method, r.request)
		}
		for _, name := range r.settled {
			if errorsOf[name] == nil {
				t.Errorf("%s is settled by %s, which is not tried", r.method, name)
			}
		}
	}
	if len(rows(t)) != len(requests) {
		t.Errorf("%d rows, %d requests", len(rows(t)), len(requests))
	}
	for m := range reflect.TypeFor[spi.Decorator]().Methods() {
		if m.Name != "Caps" && m.Name != "Layer" && !seen[m.Name] {
			t.Errorf("the table leaves out %s", m.Name)
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "../../spi/errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok && errorsOf[spec.Name.Name] == nil && !slices.Contains(notOfCalls, spec.Name.Name) {
			t.Errorf("%s is not tried", spec.Name.Name)
		}
		return true
	})
}

// play sends a row's request to a store that answers by script, and returns what comes
// out and how often the store was called.
func play(t *testing.T, r row, script ...error) (calls int, err error) {
	t.Helper()
	s := &scripted{script: script}
	inner, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	store, err := retry.New(inner, retry.Options{Jitter: noWait})
	if err != nil {
		t.Fatal(err)
	}
	err = requests[r.method+" "+r.request](t.Context(), store)
	return s.calls, err
}

func noWait(time.Duration) time.Duration { return 0 }

func TestTheTableHolds(t *testing.T) {
	lost := errorsOf["AmbiguousError"]
	for _, r := range rows(t) {
		t.Run(r.method+" "+r.request, func(t *testing.T) {
			check := func(what string, calls, wantCalls int, err, want error) {
				t.Helper()
				if calls != wantCalls || !errors.Is(err, want) {
					t.Errorf("%s: %d calls, %v; want %d, %v", what, calls, err, wantCalls, want)
				}
			}
			for _, name := range slices.Sorted(maps.Keys(errorsOf)) {
				e := errorsOf[name]
				if name == "AmbiguousError" {
					continue
				}
				calls, err := play(t, r, e)
				if slices.Contains(passing, name) {
					check("after "+name, calls, 2, err, nil)
				} else {
					check("after "+name, calls, 1, err, e)
				}
				calls, err = play(t, r, lost, e)
				switch {
				case !r.again:
					check("lost", calls, 1, err, lost)
				case slices.Contains(passing, name):
					check("lost, then "+name, calls, 3, err, nil)
				case slices.Contains(r.settled, name):
					check("lost, then "+name, calls, 2, err, e)
				default:
					check("lost, then "+name, calls, 2, err, lost)
				}
			}
			if calls, err := play(t, r, lost); r.again {
				check("lost once", calls, 2, err, nil)
			} else {
				check("lost once", calls, 1, err, lost)
			}
		})
	}
}
