package crypto

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
)

func numbers(n int) func(yield func(int, error) bool) {
	return pages(func(after string) (items []int, next string, _ error) {
		first := 0
		if after != "" {
			last, err := strconv.Atoi(after)
			if err != nil {
				return nil, "", err
			}
			first = last + 1
		}
		for i := first; i < min(n, first+3); i++ {
			items = append(items, i)
		}
		if first+3 < n {
			next = strconv.Itoa(first + 2)
		}
		return items, next, nil
	})
}

func TestAScanGoesThroughAllPages(t *testing.T) {
	for n := range 10 {
		var got []int
		for i, err := range numbers(n) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, i)
		}
		if len(got) != n || !slices.IsSorted(got) {
			t.Errorf("of %d it yields %v", n, got)
		}
	}
}

// TestAScanThatIsCanceledIsNotWhole cancels it while nothing fails.
func TestAScanThatIsCanceledIsNotWhole(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := each(ctx, numbers(10), func(context.Context, int) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it answers %v", err)
	}
}

func TestAPageThatFailsEndsAScan(t *testing.T) {
	failing := pages(func(after string) ([]int, string, error) {
		if after == "" {
			return []int{1}, "1", nil
		}
		return nil, "", errLoad
	})
	if err := each(t.Context(), failing, func(context.Context, int) error { return nil }); !errors.Is(err, errLoad) {
		t.Errorf("it answers %v", err)
	}
}
