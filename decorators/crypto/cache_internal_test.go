package crypto

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var errLoad = errors.New("cannot load")

// loads returns a function that loads a number and counts.
func loads(n *int) func(context.Context, int) (int, error) {
	return func(context.Context, int) (int, error) {
		*n++
		return *n, nil
	}
}

func TestAValueLivesFromBeforeItsLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache[string, int](10, 10*time.Second)
		slow := func(context.Context, int) (int, error) {
			time.Sleep(4 * time.Second)
			return 1, nil
		}
		begun := time.Now()
		if _, until, err := c.get(t.Context(), "k", slow); err != nil || !until.Equal(begun.Add(10*time.Second)) {
			t.Errorf("it lives until %v after its load began (%v)", until.Sub(begun), err)
		}
		time.Sleep(6*time.Second - 1)
		if _, there := c.peek("k"); !there {
			t.Error("it is gone before the end of its life")
		}
		time.Sleep(time.Nanosecond)
		if _, there := c.peek("k"); there {
			t.Error("it is there after its life")
		}
	})
}

func TestUseDoesNotLengthenALife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache[string, int](10, 10*time.Second)
		n := 0
		for range 20 {
			if _, _, err := c.get(t.Context(), "k", loads(&n)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if n != 2 {
			t.Errorf("in two lives it was loaded %d times", n)
		}
	})
}

func TestTheLeastRecentlyUsedGoesFirst(t *testing.T) {
	c := newCache[string, int](2, time.Hour)
	n := 0
	for _, key := range []string{"a", "b", "a", "c"} {
		if _, _, err := c.get(t.Context(), key, loads(&n)); err != nil {
			t.Fatal(err)
		}
	}
	for key, want := range map[string]bool{"a": true, "b": false, "c": true} {
		if _, there := c.peek(key); there != want {
			t.Errorf("%q is there: %v", key, there)
		}
	}
	if len(c.values) != 2 || c.recent.Len() != 2 {
		t.Errorf("it holds %d values in %d places", len(c.values), c.recent.Len())
	}
}

func TestAnErrorIsNotKept(t *testing.T) {
	c := newCache[string, int](2, time.Hour)
	fail := func(context.Context, int) (int, error) { return 0, errLoad }
	if _, _, err := c.get(t.Context(), "k", fail); !errors.Is(err, errLoad) {
		t.Fatal(err)
	}
	n := 0
	if v, _, err := c.get(t.Context(), "k", loads(&n)); err != nil || v != 1 {
		t.Errorf("then it loads %d (%v)", v, err)
	}
}

func TestManyWhoMissOneValueLoadItOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache[string, int](10, time.Hour)
		var n atomic.Int32
		release := make(chan struct{})
		load := func(context.Context, int) (int, error) {
			n.Add(1)
			<-release
			return 7, nil
		}
		answers := make(chan int, 20)
		for range cap(answers) {
			go func() {
				v, _, err := c.get(t.Context(), "k", load)
				if err != nil {
					t.Error(err)
				}
				answers <- v
			}()
		}
		synctest.Wait()
		close(release)
		for range cap(answers) {
			if v := <-answers; v != 7 {
				t.Errorf("one gets %d", v)
			}
		}
		if n.Load() != 1 {
			t.Errorf("it was loaded %d times", n.Load())
		}
	})
}

// TestWhoeverLoadsIsCanceledAlone cancels the one who loads: the others load again.
func TestWhoeverLoadsIsCanceledAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache[string, int](10, time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() {
			_, _, err := c.get(ctx, "k", func(ctx context.Context, _ int) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			})
			first <- err
		}()
		synctest.Wait()
		go func() {
			v, _, err := c.get(t.Context(), "k", func(context.Context, int) (int, error) { return 7, nil })
			if v != 7 {
				t.Errorf("the other gets %d", v)
			}
			second <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("whoever is canceled gets %v", err)
		}
		if err := <-second; err != nil {
			t.Errorf("the other gets %v", err)
		}
	})
}

// TestWhoeverWaitsIsCanceledAlone cancels one who waits for another's load.
func TestWhoeverWaitsIsCanceledAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache[string, int](10, time.Hour)
		release, loaded := make(chan struct{}), make(chan error, 1)
		go func() {
			_, _, err := c.get(t.Context(), "k", func(context.Context, int) (int, error) {
				<-release
				return 7, nil
			})
			loaded <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := c.get(ctx, "k", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("whoever waits gets %v", err)
		}
		close(release)
		if err := <-loaded; err != nil {
			t.Errorf("whoever loads gets %v", err)
		}
	})
}

func TestALoadThatPanicsLeavesNobodyWaiting(t *testing.T) {
	c := newCache[string, int](10, time.Hour)
	func() {
		defer func() { _ = recover() }()
		_, _, _ = c.get(t.Context(), "k", func(context.Context, int) (int, error) { panic("no") })
	}()
	n := 0
	if v, _, err := c.get(t.Context(), "k", loads(&n)); err != nil || v != 1 {
		t.Errorf("the next loads %d (%v)", v, err)
	}
}

// TestWhatIsForgottenWhileItLoadsIsNotKept is a deletion that comes while the key is
// being fetched.
func TestWhatIsForgottenWhileItLoadsIsNotKept(t *testing.T) {
	c := newCache[string, int](10, time.Hour)
	v, _, err := c.get(t.Context(), "k", func(context.Context, int) (int, error) {
		c.forget("k")
		return 7, nil
	})
	if err != nil || v != 7 {
		t.Fatalf("it loads %d (%v)", v, err)
	}
	if _, there := c.peek("k"); there {
		t.Error("it is kept")
	}
}

func TestOnlyTheValueThatIsMeantIsDropped(t *testing.T) {
	c := newCache[string, int](10, time.Hour)
	c.set("k", 2, time.Now())
	c.drop("k", 1)
	if _, there := c.peek("k"); !there {
		t.Error("another is dropped")
	}
	c.drop("k", 2)
	if _, there := c.peek("k"); there {
		t.Error("it is not dropped")
	}
}
