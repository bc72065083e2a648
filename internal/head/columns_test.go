package head

import (
	"fmt"
	"testing"

	"dalmatiner/internal/metric"
)

// Keys that are kept keep the memory of names that have moved since: all of it
// together is little beside the names.
func TestNamesMoveSeldom(t *testing.T) {
	for _, c := range []struct {
		name   string
		series int
		key    func(i int) []byte
		times  int // of the names, all memory they ever had
	}{
		{"a full group", Width, func(i int) []byte { return fmt.Appendf(nil, "a series with number %03d", i) }, 2},
		{"longer ones at the end", Width, func(i int) []byte { return make([]byte, 10+i*i/1000) }, 5},
		{"a few", 3, func(int) []byte { return []byte("a series of a small sender") }, 4},
	} {
		c0 := &Columns{}
		names, all := 0, 0
		for i := range c.series {
			key := c.key(i)
			next := c0.with(i, key, metric.SeriesID{byte(i), 1})
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
			t.Errorf("%s: names of %d bytes had %d, want at most %d times as many", c.name, names, all, c.times)
		}
	}
}
