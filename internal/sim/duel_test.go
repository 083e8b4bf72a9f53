package sim_test

import (
	"testing"

	"github.com/loomgate/loomgate/internal/sim"
	"github.com/loomgate/loomgate/spi"
)

func asItIs(s *spi.Store) (*spi.Store, error) { return s, nil }

func TestEveryInterleavingOfTwoResumersWithACrashAtEachPoint(t *testing.T) {
	runs, err := sim.Duels(2, asItIs)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d schedules", runs)
}

func TestAnUnconditionalAcquireFencesARunningBodyOut(t *testing.T) {
	if _, err := sim.Duels(0, func(s *spi.Store) (*spi.Store, error) { return spi.Only(s, spi.AllCaps&^spi.CapAcquireFenceIf), nil }); err == nil {
		t.Fatal("nothing was found")
	}
}
