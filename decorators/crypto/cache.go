package crypto

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// A cache holds what was loaded last, each value for a life that begins before its
// load does: what the load found was so at some time after that. Several who miss one
// value load it once.
type cache[K, V comparable] struct {
	size int
	life time.Duration

	mu      sync.Mutex
	values  map[K]*list.Element // of *cached
	recent  list.List           // the last used in front
	flights map[K]*flight[V]
}

type cached[K, V comparable] struct {
	key   K
	value V
	until time.Time
}

// A flight is a load that is under way. Its fields are set before done is closed.
type flight[V comparable] struct {
	done      chan struct{}
	value     V
	until     time.Time
	err       error
	abandoned bool // whoever loads was canceled, which is not the others' fault
}

func newCache[K, V comparable](size int, life time.Duration) *cache[K, V] {
	return &cache[K, V]{size: size, life: life, values: map[K]*list.Element{}, flights: map[K]*flight[V]{}}
}

// peek returns a value that is there and alive.
func (c *cache[K, V]) peek(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.alive(key); e != nil {
		return e.value, true
	}
	return value, false
}

// get returns a value and until when it may be used. If it is not there, load is
// called, with the value that has expired if that is still known. Another's context
// that ends does not end the caller's wait.
func (c *cache[K, V]) get(ctx context.Context, key K, load func(ctx context.Context, expired V) (V, error)) (V, time.Time, error) {
	for {
		c.mu.Lock()
		if e := c.alive(key); e != nil {
			defer c.mu.Unlock()
			return e.value, e.until, nil
		}
		f, others := c.flights[key]
		if !others {
			f = &flight[V]{done: make(chan struct{})}
			c.flights[key] = f
			var expired V
			if e, ok := c.values[key]; ok {
				expired = e.Value.(*cached[K, V]).value
			}
			c.mu.Unlock()
			c.fly(ctx, key, f, func() (V, error) { return load(ctx, expired) })
			return f.value, f.until, f.err
		}
		c.mu.Unlock()
		select {
		case <-f.done:
			if !f.abandoned {
				return f.value, f.until, f.err
			}
		case <-ctx.Done():
			var none V
			return none, time.Time{}, ctx.Err()
		}
	}
}

// fly loads a value and tells those who wait for it, also if load panics.
func (c *cache[K, V]) fly(ctx context.Context, key K, f *flight[V], load func() (V, error)) {
	f.until, f.abandoned = time.Now().Add(c.life), true
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.flights[key] == f {
			delete(c.flights, key)
			if f.err == nil && !f.abandoned {
				c.put(key, f.value, f.until)
			}
		}
		close(f.done)
	}()
	f.value, f.err = load()
	f.abandoned = f.err != nil && ctx.Err() != nil
}

// set puts in a value that was loaded from a time on.
func (c *cache[K, V]) set(key K, value V, from time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(key, value, from.Add(c.life))
}

// forget removes a value, also one that is being loaded: who asks from now on is not
// answered with it.
func (c *cache[K, V]) forget(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.flights, key)
	c.remove(key)
}

// drop removes a value unless another has taken its place.
func (c *cache[K, V]) drop(key K, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.values[key]; ok && e.Value.(*cached[K, V]).value == value {
		c.remove(key)
	}
}

// What follows needs c.mu.

func (c *cache[K, V]) alive(key K) *cached[K, V] {
	at, ok := c.values[key]
	if !ok {
		return nil
	}
	e := at.Value.(*cached[K, V])
	if !time.Now().Before(e.until) {
		return nil
	}
	c.recent.MoveToFront(at)
	return e
}

func (c *cache[K, V]) put(key K, value V, until time.Time) {
	c.remove(key)
	c.values[key] = c.recent.PushFront(&cached[K, V]{key, value, until})
	for len(c.values) > c.size {
		c.remove(c.recent.Back().Value.(*cached[K, V]).key)
	}
}

func (c *cache[K, V]) remove(key K) {
	if at, ok := c.values[key]; ok {
		c.recent.Remove(at)
		delete(c.values, key)
	}
}
