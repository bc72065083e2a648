package tags

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/testkit/frozen"
)

// blocksOf returns the blocks and the changes of an index.
func blocksOf(t interface{ Fatal(...any) }, x *Index) (blocks [][]byte, changes []Change) {
	err := x.Blocks(func(b []byte, rows int) error {
		blocks = append(blocks, bytes.Clone(b))
		var block Block
		if err := block.Parse(b); err != nil {
			return err
		}
		if got := block.rows; got != rows {
			return fmt.Errorf("a block of %d rows is said to have %d", got, rows)
		}
		return nil
	}, func(c *Change) error {
		var own Change
		if _, err := ParseChange(&own, AppendChange(nil, c)); err != nil {
			return err
		}
		changes = append(changes, own)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return blocks, changes
}

func keepAll(uint64, []byte) (uint64, bool) { return 0, true }

// load loads blocks, and changes as those of long rows, into an index.
func load(t interface{ Fatal(...any) }, x *Index, keep func(uint64, []byte) (uint64, bool),
	blocks [][]byte, changes ...Change) {
	l := NewLoader(x, keep)
	var b Block
	for _, block := range blocks {
		err := b.Parse(block)
		if err == nil {
			err = b.Check()
		}
		if err == nil {
			err = errors.Join(b.Parse(block), l.Add(&b))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range changes {
		l.Change(&changes[i])
	}
	if err := l.Finish(); err != nil {
		t.Fatal(err)
	}
}

func drawIndex(t *rapid.T, label string) (*Index, model) {
	m, x := model{rapid.SliceOfN(rapid.Custom(drawChange), 0, 25).Draw(t, label)}, New()
	for i := range m.changes {
		m.changes[i].Clock++ // 0 is never newer than keepAll says
		x.Apply(&m.changes[i])
		if rapid.IntRange(0, 9).Draw(t, "drop") == 0 {
			c := &m.changes[rapid.IntRange(0, i).Draw(t, "dropped")]
			bucket, key := c.Bucket, string(c.Key)
			x.Drop(bucket, metric.Series(bucket, []byte(key)), math.MaxUint64)
			for j := range m.changes[:i+1] {
				if c := &m.changes[j]; c.Bucket == bucket && string(c.Key) == key {
					*c = Change{Bucket: 99, Key: []byte("gone"), Collection: []byte("gone"), Leave: true, Clock: 1}
				}
			}
		}
	}
	m.changes = slices.DeleteFunc(m.changes, func(c Change) bool { return c.Bucket == 99 })
	return x, m
}

// size is how much an index holds.
type size struct {
	Series      int // in all collections: one that is in two counts twice
	Remembered  int // of them and of what left, those that remember what was removed
	Collections int
	Names       int // of tags
	Tags        int // different ones: name and value
}

func sizeOf(x *Index) size {
	x.mu.RLock()
	defer x.mu.RUnlock()
	s := size{
		Remembered:  x.remembered,
		Collections: x.collections.len(),
		Names:       x.names.len(),
		Tags:        x.pairs.len(),
	}
	for b := range x.buckets.ids {
		s.Series += x.inBucket.Len(uint32(b))
	}
	return s
}

// What is loaded from blocks is what was there: it shows the same, remembers the same, and takes
// changes as before.
func TestLoadedIndexIsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, m := drawIndex(t, "changes")
		blocks, _ := blocksOf(t, x)
		loaded := New()
		load(t, loaded, keepAll, blocks)
		checkHolds(t, loaded)
		if got, want := bytesOf(t, loaded), bytesOf(t, x); !bytes.Equal(got, want) {
			t.Fatalf("loaded\n%q, want\n%q", got, want)
		}
		if got, want := seriesOf(loaded), m.String(); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
		if sizeOf(loaded) != sizeOf(x) {
			t.Fatalf("loaded %+v, want %+v", sizeOf(loaded), sizeOf(x))
		}
		if got, want := loaded.recent.rowsSince(2), x.recent.rowsSince(2); got.Len() != want.Len() {
			t.Fatalf("%d new series, want %d", got.Len(), want.Len())
		}
		for range rapid.IntRange(0, 10).Draw(t, "more") {
			c := drawChange(t)
			if loaded.Apply(&c) != x.Apply(&c) {
				t.Fatalf("%+v is news to one of two", c)
			}
			checkHolds(t, loaded)
		}
		if got, want := bytesOf(t, loaded), bytesOf(t, x); !bytes.Equal(got, want) {
			t.Fatalf("after more changes\n%q, want\n%q", got, want)
		}
	})
}

// A second state is merged into the first one, whether its rows come to an empty index or not, and
// whatever came as changes beside it.
func TestLoadsAreMerged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, m := drawIndex(t, "changes")
		y, n := drawIndex(t, "others")
		one, _ := blocksOf(t, x)
		other, _ := blocksOf(t, y)
		want := New()
		for _, c := range slices.Concat(m.changes, n.changes) {
			want.Apply(&c)
		}
		for name, fill := range map[string]func(*Index){
			"at once":      func(to *Index) { load(t, to, keepAll, slices.Concat(one, other)) },
			"one by one":   func(to *Index) { load(t, to, keepAll, one); load(t, to, keepAll, other) },
			"as long rows": func(to *Index) { load(t, to, keepAll, one, n.changes...) },
			"behind a change ": func(to *Index) {
				load(t, to, keepAll, nil, n.changes...)
				load(t, to, keepAll, one)
			},
		} {
			got := New()
			fill(got)
			checkHolds(t, got)
			if got, want := bytesOf(t, got), bytesOf(t, want); !bytes.Equal(got, want) {
				t.Fatalf("%s:\n%q, want\n%q", name, got, want)
			}
		}
	})
}

// What is known of a series is what a walk says of it.
func TestOfASeries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, _ := drawIndex(t, "changes")
		c := drawChange(t)
		var want []byte
		err := x.Walk(func(o *Change) error {
			if o.Bucket == c.Bucket && bytes.Equal(o.Key, c.Key) {
				want = AppendChange(want, o)
			}
			return nil
		})
		var got []byte
		err = errors.Join(err, x.WalkSeries(c.Bucket, c.Key, func(o *Change) error {
			got = AppendChange(got, o)
			return nil
		}))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got\n%q, want\n%q, %v", got, want, err)
		}
	})
}

// What a series said before it was deleted is left out, and so are buckets that are gone; nothing
// holds the texts of what was left out.
func TestLoadLeavesOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, _ := drawIndex(t, "changes")
		blocks, _ := blocksOf(t, x)
		after := rapid.Uint64Range(0, 8).Draw(t, "after")
		keep := func(bucket uint64, key []byte) (uint64, bool) {
			if key[0] == 1 && key[1] == 'a' {
				return after, bucket == 1
			}
			return 0, bucket == 1
		}
		want := New()
		err := x.Walk(func(c *Change) error {
			if after, ok := keep(c.Bucket, c.Key); ok && c.Clock > after {
				want.Apply(c)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		got := New()
		load(t, got, keep, blocks)
		checkHolds(t, got)
		if got, want := bytesOf(t, got), bytesOf(t, want); !bytes.Equal(got, want) {
			t.Fatalf("%q, want\n%q", got, want)
		}
	})
}

// The format is frozen: files hold these bytes.
func TestFrozenBlock(t *testing.T) {
	x := New()
	for i := range someChanges {
		x.Apply(&someChanges[i])
	}
	blocks, _ := blocksOf(t, x)
	frozen.Same(t, "block.txt", []byte(hex.EncodeToString(blocks[0])+"\n"))
	loaded := New()
	load(t, loaded, keepAll, blocks)
	if !bytes.Equal(bytesOf(t, loaded), bytesOf(t, x)) {
		t.Error("it says something else")
	}
}

// Blocks stay short, whatever the rows are, and each can be read without the others.
func TestBlocksAreShort(t *testing.T) {
	x, want := New(), New()
	apply := func(c *Change) {
		x.Apply(c)
	}
	for i := range 20_000 {
		var c Change
		benchChange(&c, i)
		apply(&c)
	}
	long := Change{Bucket: 2, Key: []byte("\x04long"), Collection: []byte("c"), Clock: 5}
	for i := range MaxTags {
		long.Set = append(long.Set, tag("", fmt.Sprint("tag", i), strings.Repeat("v", MaxValue)))
	}
	apply(&long)
	blocks, changes := blocksOf(t, x)
	if len(blocks) < 5 || len(changes) < 2 {
		t.Fatalf("%d blocks, %d changes", len(blocks), len(changes))
	}
	for i := range changes {
		if n := len(AppendChange(nil, &changes[i])); n > 256<<10 {
			t.Errorf("a change of %d bytes", n)
		}
	}
	for _, b := range blocks {
		if len(b) > 2*blockBytes {
			t.Errorf("a block of %d bytes", len(b))
		}
		load(t, want, keepAll, [][]byte{b})
	}
	load(t, want, keepAll, nil, changes...)
	if !bytes.Equal(bytesOf(t, want), bytesOf(t, x)) {
		t.Error("the blocks one by one are not the whole")
	}
}

// Whatever bytes a block has, it is read without harm: what is taken is valid.
func FuzzBlock(f *testing.F) {
	x := New()
	for i := range someChanges {
		x.Apply(&someChanges[i])
	}
	blocks, _ := blocksOf(f, x)
	for _, b := range blocks {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		var b Block
		if b.Parse(src) != nil {
			return
		}
		x := New()
		l := NewLoader(x, keepAll)
		addErr := l.Add(&b)
		if err := l.Finish(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(b.Parse(src), b.Check()); (err == nil) != (addErr == nil) {
			t.Fatalf("the check says %v, the loader %v", err, addErr)
		}
		bytesOf(t, x)
	})
}
