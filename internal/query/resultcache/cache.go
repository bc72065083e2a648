// Package resultcache keeps what queries computed for those who ask the same again, in
// memory with a limit, and knows whether it still holds: a Basis says what a computation
// read, and as of when.
package resultcache

import (
	"container/list"
	"sync"
	"sync/atomic"
)

// Value is what is kept. Nobody changes it any more: all that ask share it.
type Value interface {
	// Bytes returns the memory that the value takes, always the same.
	Bytes() int64
}

// Cache keeps values by their keys. Of more than fit, those stay that were asked for last.
// Its methods may be called concurrently; a nil cache keeps nothing.
type Cache struct {
	limit  int64
	held   atomic.Int64
	counts [outcomes]atomic.Int64

	mu     sync.Mutex
	at     map[string]*list.Element
	recent list.List // of *entry, the one asked for last in front
}

type entry struct {
	key   string
	value Value
}

const (
	// entryCost is what an entry takes beside its key and value.
	entryCost = 256
	// largestPart of the limit is the most that a single value may take.
	largestPart = 8
)

// Outcome is what became of a question, or of a value that was kept.
type Outcome int

// The outcomes.
const (
	HitWhole Outcome = iota // the whole result was there
	HitSteps                // steps of it were there
	Missed                  // nothing was there, or it did not hold any more
	Changed                 // a value was dropped because what it was computed from has changed
	Evicted                 // a value was dropped for others
	Dropped                 // a value was dropped because the process is short of memory
	outcomes = iota
)

// New returns a cache of so many bytes; nil for none.
func New(limit int64) *Cache {
	if limit <= 0 {
		return nil
	}
	return &Cache{limit: limit, at: make(map[string]*list.Element)}
}

// Get returns the value of a key, or nil.
func (c *Cache) Get(key string) Value {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.at[key]
	if !ok {
		return nil
	}
	c.recent.MoveToFront(e)
	return e.Value.(*entry).value
}

// Put keeps a value in place of the one that the key has, unless it takes too large a part of
// the memory.
func (c *Cache) Put(key string, v Value) {
	e := &entry{key, v}
	if e.bytes() > c.limit/largestPart {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.at[key]; ok {
		c.remove(old)
	}
	for c.held.Load()+e.bytes() > c.limit {
		c.remove(c.recent.Back())
		c.Count(Evicted)
	}
	c.at[key] = c.recent.PushFront(e)
	c.held.Add(e.bytes())
}

// Changed drops a value that does not hold any more, unless the key has another one by now.
func (c *Cache) Changed(key string, v Value) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.at[key]; ok && e.Value.(*entry).value == v {
		c.remove(e)
		c.Count(Changed)
	}
}

// Drop gives all of the memory back.
func (c *Cache) Drop() {
	if c == nil || c.held.Load() == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[Dropped].Add(int64(len(c.at)))
	clear(c.at)
	c.recent.Init()
	c.held.Store(0)
}

// remove drops an entry. Under the lock.
func (c *Cache) remove(e *list.Element) {
	of := c.recent.Remove(e).(*entry)
	delete(c.at, of.key)
	c.held.Add(-of.bytes())
}

func (e *entry) bytes() int64 { return int64(len(e.key)) + e.value.Bytes() + entryCost }

// Limit returns the limit in bytes.
func (c *Cache) Limit() int64 {
	if c == nil {
		return 0
	}
	return c.limit
}

// Bytes returns the memory in use.
func (c *Cache) Bytes() int64 {
	if c == nil {
		return 0
	}
	return c.held.Load()
}

// Count counts an outcome.
func (c *Cache) Count(o Outcome) { c.counts[o].Add(1) }

// Counted returns how often an outcome was counted.
func (c *Cache) Counted(o Outcome) int64 {
	if c == nil {
		return 0
	}
	return c.counts[o].Load()
}
