package head

import (
	"fmt"
	"slices"
	"testing"

	"dalmatiner/internal/model/metric"

	"pgregory.net/rapid"
)

// What all names begin with is the longest prefix that they have in common, whatever series
// came and left.
func TestNamesBegin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, id := &Columns{}, byte(0)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			if rapid.IntRange(0, 3).Draw(t, "step") == 0 {
				var gone Mask
				for range rapid.IntRange(0, 5).Draw(t, "gone") {
					gone.Set(rapid.IntRange(0, 7).Draw(t, "column"))
				}
				c = c.withoutColumns(&gone)
			} else if col := rapid.IntRange(0, 7).Draw(t, "column"); !c.Has(col) {
				id++
				key := rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 1, 4, -1).Draw(t, "key")
				c = c.withSeries(col, []byte("x"+key), metric.SeriesID{id})
			}
			var keys []string
			for col := range c.Len() {
				if c.HasName(col) {
					keys = append(keys, string(c.Key(col)))
				}
			}
			want := ""
			if len(keys) > 0 {
				first, last := slices.Min(keys), slices.Max(keys)
				for len(want) < min(len(first), len(last)) && first[len(want)] == last[len(want)] {
					want = first[:len(want)+1]
				}
			}
			if got := string(c.Begin()); got != want {
				t.Fatalf("%q begin with %q, want %q", keys, got, want)
			}
		}
	})
}

// Keys that are kept keep the memory of names that have moved since: all of it
// together is little beside the names.
func TestNamesMoveSeldom(t *testing.T) {
	for _, c := range []struct {
		name   string
		series int
		key    func(i int) []byte
		times  int // of the names, all memory they ever had
	}{
		{"a full group", Width, func(i int) []byte {
			return fmt.Appendf(nil, "a series with number %03d", i)
		}, 2},
		{"longer ones at the end", Width, func(i int) []byte { return make([]byte, 10+i*i/1000) }, 5},
		{"a few", 3, func(int) []byte { return []byte("a series of a small sender") }, 4},
	} {
		c0 := &Columns{}
		names, all := 0, 0
		for i := range c.series {
			key := c.key(i)
			next := c0.withSeries(i, key, metric.SeriesID{byte(i), 1})
			names += len(key)
			if cap(next.arena) != cap(c0.arena) {
				all += cap(next.arena)
			}
			c0 = next
			if string(c0.Key(i)) != string(key) {
				t.Fatalf("%s: name %d is %q, want %q", c.name, i, c0.Key(i), key)
			}
		}
		if all > c.times*names {
			t.Errorf("%s: names of %d bytes had %d, want at most %d times as many", c.name, names, all,
				c.times)
		}
	}
}
