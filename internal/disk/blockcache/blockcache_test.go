package blockcache

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestBlocksEqualTheModel offers, drops and asks for blocks in any order. A block
// that is there is the one that was offered under its key, and it comes in at the
// second offer. The bytes are those of the held blocks, and never more than the
// limit.
func TestBlocksEqualTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int64{2 * shardCount * blockSize, 1 << 20}).Draw(t, "limit")
		c := New(limit)
		offered := map[Key]int{}
		payload := func(key Key) []byte {
			return bytes.Repeat([]byte{byte(key), byte(key >> 32)}, 10+int(key*7919%9000)/2)
		}
		key := rapid.Custom(func(t *rapid.T) Key {
			return Key(rapid.Uint64Range(1, 3).Draw(t, "reader"))<<32 |
				Key(rapid.Uint64Range(0, 200).Draw(t, "block"))
		})
		for range rapid.IntRange(0, 600).Draw(t, "steps") {
			switch k := key.Draw(t, "key"); rapid.IntRange(0, 20).Draw(t, "step") {
			case 0:
				c.Drop(k.reader())
				for other := range offered {
					if other.reader() == k.reader() && c.Get(other) != nil {
						t.Fatalf("block %x is there, those of its reader were dropped", other)
					}
				}
			case 1:
				c.DropAll()
				clear(offered)
			case 2, 3, 4, 5, 6, 7, 8, 9, 10:
				c.Offer(k, payload(k))
				offered[k]++
			default:
				switch got := c.Get(k); {
				case got == nil:
				case offered[k] < 2:
					t.Fatalf("block %x is there after %d offers", k, offered[k])
				case !bytes.Equal(got, payload(k)):
					t.Fatalf("block %x is another one", k)
				}
			}
			c.checkBytes(t, limit)
		}
	})
}

// checkBytes counts what is kept.
func (c *Cache) checkBytes(t *rapid.T, limit int64) {
	var all int64
	for i := range c.parts {
		s := &c.parts[i]
		var n int64
		for j := range s.kept {
			n += s.kept[j].cost()
			if s.at[s.kept[j].key] != j {
				t.Fatalf("the place of block %x is not %d", s.kept[j].key, j)
			}
		}
		if n != s.bytes || n > s.limit || len(s.at) != len(s.kept) {
			t.Fatalf("%d bytes in %d blocks, counted as %d in %d, the limit is %d", n, len(s.kept), s.bytes,
				len(s.at), s.limit)
		}
		all += n
	}
	if held := c.held.Load(); all != held || all > limit {
		t.Fatalf("%d bytes are kept, counted as %d, the limit is %d", all, held, limit)
	}
}

// TestSomeOfTooManyBlocksStay: of twice as many blocks as fit, asked for in turn, a
// part is found, and nearly all of as many as fit.
func TestSomeOfTooManyBlocksStay(t *testing.T) {
	const limit = 4 << 20
	for _, tc := range []struct {
		blocks      int
		least, most float64
	}{
		{limit / blockSize / 2, 1, 1},
		{2 * limit / blockSize, 0.1, 0.6},
	} {
		c := New(limit)
		payload := make([]byte, blockSize-100)
		var hits, misses int64
		for round := range 20 {
			if round == 10 {
				hits, misses = c.Counts()
			}
			for i := range tc.blocks {
				if k := Key(1<<32 + i); c.Get(k) == nil {
					c.Offer(k, payload)
				}
			}
		}
		h, m := c.Counts()
		if got := float64(h-hits) / float64(h-hits+m-misses); got < tc.least || got > tc.most {
			t.Errorf("of %d blocks %.2f were found, want %.2f to %.2f", tc.blocks, got, tc.least, tc.most)
		}
	}
}
