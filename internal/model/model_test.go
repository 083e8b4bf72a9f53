package model_test

import (
	"fmt"
	"testing"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/internal/model"
	"github.com/loomgate/loomgate/spi"
)

func open(t *testing.T, guard func(forward) spi.EventBackend) *spi.Store {
	t.Helper()
	inner, err := memory.New()
	if err != nil {
		t.Fatal(err)
	}
	if guard == nil {
		return inner
	}
	store, err := spi.Open(spi.Backend{Events: guard(forward{inner})})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// check runs clients on a store and returns what its history shows.
func check(t *testing.T, store *spi.Store, seed uint64) error {
	t.Helper()
	history, err := model.Run(t.Context(), store, model.Options{Seed: seed, Clients: 4, Calls: 100, Executions: 4})
	if err != nil {
		t.Fatal(err)
	}
	return history.Check()
}

func TestASoundStoreIsExplained(t *testing.T) {
	for seed := range uint64(10) {
		if err := check(t, open(t, nil), seed); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

func TestEveryBrokenGuardIsCaught(t *testing.T) {
	for name, guard := range broken {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(100) {
				if err := check(t, open(t, guard), seed); err != nil {
					t.Log(fmt.Sprintf("seed %d: ", seed), err)
					return
				}
			}
			t.Error("no history shows it")
		})
	}
}

func TestMoreThanCanBeCheckedIsRefused(t *testing.T) {
	for _, opts := range []model.Options{
		{Clients: 9, Calls: 1, Executions: 2},
		{Clients: 1, Calls: 1, Executions: 1},
		{Clients: 8, Calls: 200, Executions: 2},
		{},
	} {
		if _, err := model.Run(t.Context(), open(t, nil), opts); err == nil {
			t.Errorf("%+v is accepted", opts)
		}
	}
}
