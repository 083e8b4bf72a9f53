package crypto

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loomgate/loomgate/backends/memory"
	"github.com/loomgate/loomgate/decorators/faults"
)

// TestAKeyIsMadeHoweverOftenOthersLookForItMeanwhile has somebody look for the key each
// time that it is about to be made: whoever makes it waits for that answer, which is that
// there is none.
func TestAKeyIsMadeHoweverOftenOthersLookForItMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const id, looks = "e", 5 * maxTries
		store, err := memory.New()
		if err != nil {
			t.Fatal(err)
		}
		ring, err := CreateKeyring(filepath.Join(t.TempDir(), "ring"), []byte("a secret for the keyring"))
		if err != nil {
			t.Fatal(err)
		}
		var k *keeper
		var looking sync.WaitGroup
		looked := 0
		watched, err := faults.New(store, func(c faults.Call) faults.Fault {
			if c.Method != "Head" || looked == looks {
				return faults.Fault{}
			}
			looked++
			looking.Go(func() {
				_, _, _ = k.data.get(t.Context(), id, func(context.Context, *dataKey) (*dataKey, error) {
					time.Sleep(time.Second) // which passes when everybody waits for it
					return nil, errNoKey
				})
			})
			synctest.Wait()
			return faults.Fault{}
		})
		if err != nil {
			t.Fatal(err)
		}
		if k, err = newKeeper(watched, ring, Options{}); err != nil {
			t.Fatal(err)
		}
		if key, err := k.forAppend(t.Context(), id, 0, false); err != nil || key == nil {
			t.Errorf("%v, %v", key, err)
		}
		looking.Wait()
		if looked != looks {
			t.Errorf("somebody has looked %d times", looked)
		}
	})
}
