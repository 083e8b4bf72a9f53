package tenant_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/loomgate/loomgate/decorators/tenant"
	"github.com/loomgate/loomgate/spi"
)

// acme returns the view of a tenant of that name, and what stands between it and the
// shared store.
func acme(t *testing.T) (*spy, *spi.Store) {
	t.Helper()
	between, watched := spyOn(t, inMemory(t))
	return between, view(t, "acme", watched)
}

// eachMethod calls every method of acme's view, after prepare.
func eachMethod(t *testing.T, prepare func(*spy), check func(method string, res any, err error)) {
	t.Helper()
	for method, choose := range calls {
		between, s := acme(t)
		prepare(between)
		res, err := choose(plain())(t.Context(), s)
		check(method, res, err)
	}
}

// forge makes an answer whose i-th name is one and whose others are another, with one
// item in each list, and returns what the i-th name is. There is none if i is too
// large.
func forge(res any, i int, one, others string) (what string) {
	for v, j := reflect.ValueOf(res).Elem(), 0; j < v.NumField(); j++ {
		if list := v.Field(j); list.Kind() == reflect.Slice {
			list.Set(reflect.MakeSlice(list.Type(), 1, 1))
		}
	}
	n := 0
	eachName(reflect.ValueOf(res), func(field string, name reflect.Value) {
		name.SetString(others)
		if n == i {
			name.SetString(one)
			what = field
		}
		n++
	})
	return what
}

// writesThatName are the writes whose answers hold names.
var writesThatName = []string{"ScheduleTimer", "PutRef", "PromoteRef", "CreateDataKey"}

func TestANameThatIsNotTheTenantsFailsTheCallAndIsNotTold(t *testing.T) {
	forged := map[string]bool{}
	for _, foreign := range []string{"", "e", "4:acme/", "4:acme", "4:acmf/e", "4:Acme/e", "5:acme//e", "04:acme/e", "4:acme\U0010ffffe"} {
		for i := range 4 {
			var what string
			eachMethod(t, func(between *spy) {
				between.tells = func(res any, _ error) error {
					what = forge(res, i, foreign, "4:acme/e")
					return nil
				}
			}, func(method string, res any, err error) {
				if what == "" || what == "Next" && foreign == "" { // no such name; the end
					return
				}
				forged[method] = true
				told, ok := errors.AsType[*tenant.ForeignNameError](err)
				if !ok || !reflect.ValueOf(res).IsZero() {
					t.Fatalf("%s, whose %s is %q, answers %+v (%v)", method, what, foreign, res, err)
				}
				if strings.Contains(err.Error(), "acm") {
					t.Errorf("%s: %v", method, err)
				}
				_, ambiguous := errors.AsType[*spi.AmbiguousError](err)
				if ambiguous != slices.Contains(writesThatName, method) {
					t.Errorf("%s, which may have happened: %v", method, err)
				}
				if told.What == "" {
					t.Errorf("%s does not say what is somebody else's", method)
				}
			})
		}
	}
	want := []string{"CreateDataKey", "DueTimers", "GetDataKey", "GetRef", "ListDataKeys", "ListExecutions", "ListRefs", "PromoteRef", "PutRef", "RefLineage", "ScheduleTimer"}
	if got := slices.Sorted(maps.Keys(forged)); !slices.Equal(got, want) {
		t.Errorf("forged were the answers of %q, not %q", got, want)
	}
}

func TestTheTenantsOwnNamesComeOutBare(t *testing.T) {
	eachMethod(t, func(between *spy) {
		between.tells = func(res any, _ error) error {
			forge(res, 0, "4:acme/1:b/", "4:acme/1:b/")
			return nil
		}
	}, func(method string, res any, err error) {
		if err != nil {
			t.Errorf("%s: %v", method, err)
		}
		eachName(reflect.ValueOf(&res).Elem().Elem(), func(what string, name reflect.Value) {
			if name.String() != "1:b/" {
				t.Errorf("%s tells the %s %q", method, what, name)
			}
		})
	})
}

func TestAnErrorOfAnyMethodTellsOuterNamesOnly(t *testing.T) {
	const e, driver = "4:acme/e", "duplicate key (id)=(4:acme/e)"
	for _, inner := range []error{
		&spi.ConflictError{Execution: e}, &spi.StaleFenceError{Execution: e}, &spi.IncarnationError{Execution: e}, &spi.TruncatedError{Execution: e},
		&spi.RangeError{Execution: e}, &spi.TooLargeError{Execution: e}, &spi.KeyMismatchError{Execution: e}, &spi.ShreddedError{Owner: e},
		&spi.NotFoundError{What: "ref", Name: e}, &spi.RefVersionError{Name: e}, &spi.LeaseHeldError{Name: e}, &spi.LeaseLostError{Name: e},
		&spi.AmbiguousError{Execution: e, Cause: errors.New(driver)},
		fmt.Errorf("%s: %w", driver, &spi.ShardError{Shard: "s1", Err: &spi.StaleFenceError{Execution: e}}),
	} {
		eachMethod(t, func(between *spy) { between.tells = func(any, error) error { return inner } }, func(method string, _ any, err error) {
			if text := err.Error(); strings.Contains(text, "acme") || !strings.Contains(text, `"e"`) {
				t.Errorf("%s tells %v of %v", method, err, inner)
			}
		})
	}
	for inner, text := range map[error]string{
		&spi.ShreddedError{Owner: "4:acme/"}:                         `the data key of "" is shredded`, // the tenant's own
		&spi.UnavailableError{Cause: errors.New(driver)}:             "unavailable: internal error",
		errors.New(driver):                                           "internal error",
		&spi.ShardError{Shard: "s1", Err: &spi.SlotMovingError{}}:    `shard "s1": slot 0 of shard "" is slot state 0`,
		&spi.StaleFenceError{Execution: "4:acmf/e"}:                  "the shared store answered with somebody else's name",
		&spi.NotFoundError{What: "ref", Name: "e"}:                   "the shared store answered with somebody else's name",
		&spi.AmbiguousError{Execution: "4:acmf/e", Cause: errBroken}: "the outcome is unknown: the shared store answered with somebody else's name",
	} {
		eachMethod(t, func(between *spy) { between.tells = func(any, error) error { return inner } }, func(method string, _ any, err error) {
			if errors.Unwrap(err).Error() != text {
				t.Errorf("%s tells %v of %v", method, err, inner)
			}
		})
	}
}

var errBroken = errors.New("the disk is on fire")

func TestTheErrorsInABatchTellOuterNamesOnly(t *testing.T) {
	between, s := acme(t)
	between.tells = func(res any, err error) error {
		results := res.(*spi.AppendBatchResponse).Results
		results[0].Err = &spi.ConflictError{Execution: "4:acme/a", Head: 3}
		results[1].Err = &spi.ConflictError{Execution: "4:acmf/b", Head: 3}
		return err
	}
	res, err := spi.AppendBatch(t.Context(), s, batch("a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	if told, ok := errors.AsType[*spi.ConflictError](res.Results[0].Err); !ok || told.Execution != "a" || told.Head != 3 {
		t.Errorf("the first answers %v", res.Results[0].Err)
	}
	if _, ok := errors.AsType[*tenant.ForeignNameError](res.Results[1].Err); !ok {
		t.Errorf("the second answers %v", res.Results[1].Err)
	}
}

func batch(ids ...spi.ExecutionID) (req spi.AppendBatchRequest) {
	for _, id := range ids {
		req.Appends = append(req.Appends, spi.AppendRequest{Execution: id, Events: []spi.Event{{ID: spi.NewEventID(), Kind: "Noted"}}})
	}
	return req
}

func TestABatchStaysAsItsCallerMadeIt(t *testing.T) {
	_, s := acme(t)
	req := batch("a", "b")
	for range 2 { // the second is all duplicates
		if res, err := spi.AppendBatch(t.Context(), s, req); err != nil || res.Results[1].Err != nil {
			t.Fatal(res, err)
		}
	}
	if req.Appends[0].Execution != "a" || req.Appends[1].Execution != "b" {
		t.Errorf("it is for %q and %q now", req.Appends[0].Execution, req.Appends[1].Execution)
	}
}

func TestAPrefixLongerThanAnyNameIsRefused(t *testing.T) {
	_, s := acme(t)
	for size, ok := range map[int]bool{spi.MaxOuterID: true, spi.MaxOuterID + 1: false, spi.MaxID: false} {
		choose := plain()
		choose.prefix = func() string { return strings.Repeat("p", size) }
		for _, method := range []string{"ListExecutions", "ListRefs", "ListDataKeys", "DueTimers", "SweepTombstones"} {
			_, err := calls[method](choose)(t.Context(), s)
			invalid, refused := errors.AsType[*spi.InvalidArgumentError](err)
			if refused == ok || refused && (invalid.Field != "prefix" || invalid.Rule != fmt.Sprintf("has %d bytes, not 0 to 512", size)) {
				t.Errorf("%s with a prefix of %d bytes: %v", method, size, err)
			}
		}
	}
}

// TestTheTenantsOwnKeyIsOutOfItsReach is about the key that a layer below the view has
// under the tenant's bare scope.
func TestTheTenantsOwnKeyIsOutOfItsReach(t *testing.T) {
	shared := inMemory(t)
	key := spi.DataKey{Owner: "4:acme/", Version: 1, ID: spi.KeyID{1}, WrappedBy: "kms", Wrapped: []byte{1}}
	if _, err := spi.CreateDataKey(t.Context(), shared, spi.CreateDataKeyRequest{Key: key}); err != nil {
		t.Fatal(err)
	}
	s := view(t, "acme", shared)
	for _, cursor := range []string{"", "\x00"} {
		res, err := spi.ListDataKeys(t.Context(), s, spi.ListDataKeysRequest{After: cursor, Limit: 10})
		if err != nil || len(res.Keys) > 0 {
			t.Errorf("after %q: %v, %v", cursor, res, err)
		}
	}
	for _, owner := range []spi.KeyOwner{"", "\x00", "4:acme/", "/"} {
		if _, err := spi.DestroyDataKey(t.Context(), s, spi.DestroyDataKeyRequest{Owner: owner, Version: 1}); err == nil {
			t.Errorf("%q is destroyed", owner)
		}
	}
	if _, err := spi.GetDataKey(t.Context(), shared, spi.GetDataKeyRequest{Owner: "4:acme/"}); err != nil {
		t.Error(err)
	}
}
