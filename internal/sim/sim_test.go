package sim_test

import (
	"testing"

	"github.com/loomgate/loomgate/internal/sim"
)

func TestFiveNodesKeepEverySentence(t *testing.T) {
	for seed := range uint64(200) {
		if _, err := sim.Run(seed, sim.Control{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEachControlIsCaught(t *testing.T) {
	for _, control := range sim.Controls {
		t.Run(control.Name, func(t *testing.T) {
			for seed := range uint64(600) {
				if _, err := sim.Run(seed, control); err != nil {
					t.Log(err)
					return
				}
			}
			t.Fatal("600 seeds, and nothing was found")
		})
	}
}

func TestASeedIsOneRun(t *testing.T) {
	for seed := range uint64(10) {
		first, err := sim.Run(seed, sim.Control{})
		if err != nil {
			t.Fatal(err)
		}
		if again, err := sim.Run(seed, sim.Control{}); err != nil || again != first {
			t.Errorf("seed %d ended as %x, and then as %x, %v", seed, first, again, err)
		}
	}
}
