// Package blockcache keeps blocks of files in memory that were read and verified more than once.
package blockcache

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Cache keeps data blocks in memory that were read and verified: who asks for one
// of them again neither reads nor verifies it. A block comes in when it is read for
// the second time, so that what is read once pushes nothing out. What was handed
// out stays readable when it is dropped: the collector frees it.
type Cache struct {
	parts [shardCount]shard
	held  atomic.Int64 // bytes
}

// Key is the number of a reader and that of a data block in its file.
type Key uint64

// KeyOf returns the key of a block.
func KeyOf(reader uint32, block int) Key { return Key(reader)<<32 | Key(uint32(block)) }

const (
	// shardCount divides the blocks so that few readers meet at a lock.
	shardCount = 16
	shardBits  = 4

	// keptCost is what a block takes beside its bytes: its place and its entry.
	keptCost = 96

	// seenBlocks says for how many blocks a first read is noted, as a multiple of the blocks that fit.
	// seenWays is how many notes share a place, so that few push each other out in turn.
	seenBlocks = 4
	seenWays   = 4

	// blockSize is about how long a block is.
	blockSize = 8 << 10
)

// shard is a part of the blocks. Where it is full, the hand goes around: a
// block that was asked for since it was looked at last stays once more, and the
// new one is not taken. So of more blocks than fit, asked for in turn, some stay.
type shard struct {
	limit int64

	mu           sync.Mutex
	bytes        int64
	at           map[Key]int // in kept
	kept         []keptBlock
	hand         int
	seen         [][seenWays]uint32 // what was read once, by its hash, the last one in front
	hits, misses int64
}

type keptBlock struct {
	key     Key
	payload []byte
	asked   bool // since the hand was here
}

// New returns memory for so many bytes of blocks; nil for none.
func New(limit int64) *Cache {
	if limit/shardCount < 2*blockSize {
		return nil
	}
	c := new(Cache)
	for i := range c.parts {
		c.parts[i].limit = limit / shardCount
	}
	return c
}

// shard returns the part that a key belongs to, and the hash of the key.
func (c *Cache) shard(key Key) (*shard, uint64) {
	h := uint64(key) * 0x9e3779b97f4a7c15
	h = (h ^ h>>32) * 0xd6e8feb86659fd93 // every bit of the key changes every part
	return &c.parts[h>>(64-shardBits)], h
}

// Get returns the payload of a block, or nil. It must not be written to.
func (c *Cache) Get(key Key) []byte {
	s, _ := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.at[key]
	if !ok {
		s.misses++
		return nil
	}
	s.hits++
	s.kept[i].asked = true
	return s.kept[i].payload
}

// Offer takes a copy of a block that was read and verified, if it was read before
// and there is room.
func (c *Cache) Offer(key Key, payload []byte) {
	s, h := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.at[key]; ok || !s.seenBefore(h) {
		return
	}
	before := s.bytes
	if s.room(int64(len(payload)) + keptCost) {
		b := keptBlock{key: key, payload: slices.Clone(payload)}
		if s.at == nil {
			s.at = make(map[Key]int)
		}
		s.at[key] = len(s.kept)
		s.kept = append(s.kept, b)
		s.bytes += b.cost()
	}
	c.held.Add(s.bytes - before)
}

func (b *keptBlock) cost() int64 { return int64(cap(b.payload)) + keptCost }

// seenBefore reports whether a block was read before, as far as that is still known,
// and notes that it was.
func (s *shard) seenBefore(h uint64) bool {
	if s.seen == nil {
		n := 1
		for int64(n*seenWays) < seenBlocks*s.limit/blockSize {
			n *= 2
		}
		s.seen = make([][seenWays]uint32, n)
	}
	tag := uint32(h>>24) | 1
	set := s.seen[h&uint64(len(s.seen)-1)][:]
	if slices.Contains(set, tag) {
		return true
	}
	copy(set[1:], set)
	set[0] = tag
	return false
}

// room drops blocks until n bytes more fit. It reports false where the next one
// to go is still asked for.
func (s *shard) room(n int64) bool {
	for s.bytes+n > s.limit {
		if len(s.kept) == 0 {
			return false
		}
		if s.hand >= len(s.kept) {
			s.hand = 0
		}
		if b := &s.kept[s.hand]; b.asked {
			b.asked = false
			s.hand++
			return false
		}
		s.remove(s.hand)
	}
	return true
}

// remove drops a block; the last one takes its place.
func (s *shard) remove(i int) {
	last := len(s.kept) - 1
	s.bytes -= s.kept[i].cost()
	delete(s.at, s.kept[i].key)
	if i != last {
		s.kept[i] = s.kept[last]
		s.at[s.kept[i].key] = i
	}
	s.kept[last] = keptBlock{}
	s.kept = s.kept[:last]
}

// Drop drops all blocks of a reader.
func (c *Cache) Drop(reader uint32) {
	for i := range c.parts {
		s := &c.parts[i]
		s.mu.Lock()
		before := s.bytes
		for i := len(s.kept) - 1; i >= 0; i-- {
			if s.kept[i].key.reader() == reader {
				s.remove(i)
			}
		}
		c.held.Add(s.bytes - before)
		s.mu.Unlock()
	}
}

// DropAll gives all of the memory back.
func (c *Cache) DropAll() {
	for i := range c.parts {
		s := &c.parts[i]
		s.mu.Lock()
		c.held.Add(-s.bytes)
		s.bytes, s.at, s.kept, s.hand, s.seen = 0, nil, nil, 0, nil
		s.mu.Unlock()
	}
}

// HeldBytes returns the bytes of all blocks.
func (c *Cache) HeldBytes() int64 { return c.held.Load() }

// Counts returns how often a block was asked for that was there, and that was not.
func (c *Cache) Counts() (hits, misses int64) {
	for i := range c.parts {
		s := &c.parts[i]
		s.mu.Lock()
		hits, misses = hits+s.hits, misses+s.misses
		s.mu.Unlock()
	}
	return hits, misses
}

func (k Key) reader() uint32 { return uint32(k >> 32) }
