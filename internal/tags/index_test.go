package tags

import (
	"bytes"
	"dalmatiner/internal/tags/arena"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/model/metric"
)

// bytesOf returns all changes of a walk.
func bytesOf(t interface{ Fatal(...any) }, x *Index) (all []byte) {
	err := x.Walk(func(c *Change) error {
		if err := c.Check(); err != nil {
			return err
		}
		all = AppendChange(all, c)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// seriesOf returns what an index shows, from its rows.
func seriesOf(x *Index) string {
	var lines []string
	for id, at := range x.at {
		if at == 0 || !x.inCollection.Set(collectionOf(x, at)).Contains(uint32(id)) {
			continue
		}
		b, c, key, rest := keyOf(x.rows.Get(at))
		s := series{place{x.buckets.ids[b], string(key), string(x.collections.text(c))}, string(key),
			map[[2]string]string{}}
		tags, name, named := openTags(rest)
		if named {
			s.name = string(x.metrics.text(name))
		}
		for name, pair, ok := tags.next(); ok; name, pair, ok = tags.next() {
			n := parseName(x.names.text(name))
			s.tags[[2]string{string(n.Namespace), string(n.Name)}] = string(x.value(pair))
		}
		lines = append(lines, s.String())
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func collectionOf(x *Index, at arena.Ref) uint32 {
	_, c, _, _ := keyOf(x.rows.Get(at))
	return c
}

func (m *model) String() string {
	var lines []string
	for _, s := range m.all() {
		lines = append(lines, s.String())
	}
	return strings.Join(lines, "\n")
}

// checkHolds counts again what holds what, and what the lists say.
func checkHolds(t *rapid.T, x *Index) {
	holds := map[string]int{}
	var c rowCodec
	var r row
	live := 0
	for id, at := range x.at {
		if at == 0 {
			continue
		}
		live++
		c.decode(&r, x.rows.Get(at), x.nodes.ids)
		holds[fmt.Sprint("collection ", r.collection)]++
		if r.named.some {
			holds[fmt.Sprint("metric ", r.name)]++
			if !x.ofMetric.Set(r.name).Contains(uint32(id)) {
				t.Fatalf("row %d is not in the list of its name", id)
			}
		}
		if in := x.inBucket.Set(r.bucket).Contains(uint32(id)); in != r.isVisible() {
			t.Fatalf("row %d in the list of its bucket: %v", id, in)
		}
		for _, g := range r.tags {
			holds[fmt.Sprint("name ", g.name)]++
			if !g.removed {
				holds[fmt.Sprint("pair ", g.pair)]++
				if !x.withPair.Set(g.pair).Contains(uint32(id)) ||
					!x.withName.Set(g.name).Contains(uint32(id)) || !x.ofName.Set(g.name).Contains(g.pair) {
					t.Fatalf("row %d is not in the lists of tag %d, %d", id, g.name, g.pair)
				}
			}
			if got := x.withPair.Len(g.pair); !g.removed && got != int(x.pairs.holds[g.pair]) {
				t.Fatalf("pair %d has %d rows, held by %d", g.pair, got, x.pairs.holds[g.pair])
			}
		}
	}
	total := 0
	for what, d := range map[string]*dict{"collection": &x.collections, "metric": &x.metrics,
		"name": &x.names, "pair": &x.pairs} {
		for n, h := range d.holds {
			if int(h) != holds[fmt.Sprint(what, " ", n)] {
				t.Fatalf("%s %d is held %d times, want %d", what, n, h, holds[fmt.Sprint(what, " ", n)])
			}
			if h > 0 {
				total++
			}
		}
	}
	if total != len(holds) || x.byKey.n != live {
		t.Fatalf("%d texts are held, want %d; %d rows are found, want %d", total, len(holds), x.byKey.n,
			live)
	}
}

// An index shows what the model says of the same changes, whatever their order, as often as they
// come, and however much of them came over a walk of another index.
func TestChangesAreCommutativeAndIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := model{rapid.SliceOfN(rapid.Custom(drawChange), 0, 25).Draw(t, "changes")}
		one := New()
		for i := range m.changes {
			one.Apply(&m.changes[i])
			if one.Apply(&m.changes[i]) {
				t.Fatalf("change %d is news twice", i)
			}
			checkHolds(t, one)
		}
		if got, want := seriesOf(one), m.String(); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
		other := New()
		again := append(slices.Clone(m.changes),
			m.changes[:rapid.IntRange(0, len(m.changes)).Draw(t, "again")]...)
		for _, i := range rapid.Permutation(indexes(len(again))).Draw(t, "order") {
			other.Apply(&again[i])
		}
		checkHolds(t, other)
		want := bytesOf(t, one)
		if got := bytesOf(t, other); !bytes.Equal(got, want) {
			t.Fatalf("in another order\n%q, want\n%q", got, want)
		}
		copied := New()
		for rest := want; len(rest) > 0; {
			var c Change
			rest, _ = ParseChange(&c, rest)
			copied.Apply(&c)
		}
		if got := bytesOf(t, copied); !bytes.Equal(got, want) || seriesOf(copied) != seriesOf(one) {
			t.Fatalf("from a walk\n%q, want\n%q", got, want)
		}
	})
}

func indexes(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// What is dropped is gone with all that was remembered of it, and nothing else is.
func TestDropsLeaveNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, x := model{}, New()
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			c := drawChange(t)
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				x.DropBucket(c.Bucket)
				m.changes = slices.DeleteFunc(m.changes, func(o Change) bool { return o.Bucket == c.Bucket })
			case 1, 2:
				upTo := rapid.Uint64Range(0, 6).Draw(t, "up to")
				x.Drop(c.Bucket, metric.Series(c.Bucket, c.Key), upTo)
				m.changes = slices.DeleteFunc(m.changes, func(o Change) bool {
					return o.Bucket == c.Bucket && bytes.Equal(o.Key, c.Key) && o.Clock <= upTo
				})
			default:
				x.Apply(&c)
				m.changes = append(m.changes, c)
			}
			checkHolds(t, x)
		}
		if got, want := seriesOf(x), m.String(); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
		again := New()
		for i := range m.changes {
			again.Apply(&m.changes[i])
		}
		if got, want := bytesOf(t, x), bytesOf(t, again); !bytes.Equal(got, want) {
			t.Fatalf("walk after drops\n%q, want\n%q", got, want)
		}
		x.DropBucket(1)
		x.DropBucket(2)
		checkHolds(t, x)
		if n := x.byKey.n + x.remembered; n != 0 {
			t.Fatalf("%d rows are left", n)
		}
	})
}

// Forgetting removals changes nothing that can be seen.
func TestForgettingIsNotSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, x := model{rapid.SliceOfN(rapid.Custom(drawChange), 0, 25).Draw(t, "changes")}, New()
		for i := range m.changes {
			x.Apply(&m.changes[i])
		}
		x.Forget(rapid.Uint64Range(0, 9).Draw(t, "up to"))
		checkHolds(t, x)
		if got, want := seriesOf(x), m.String(); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
		x.Forget(9)
		if x.remembered != 0 {
			t.Fatalf("%d rows remember", x.remembered)
		}
	})
}

// Of what one timestamp says of a tag, a value counts above a removal, and the highest of values.
func TestOneTimestampSaysTwoThings(t *testing.T) {
	base := Change{Bucket: 1, Key: []byte("\x01a"), Collection: []byte("c"), Clock: 1}
	set, higher, removed := base, base, base
	set.Set, higher.Set = []Tag{tag("", "dc", "eu")}, []Tag{tag("", "dc", "us")}
	removed.Removed = []TagName{tagName("", "dc")}
	for _, order := range [][]*Change{{&set, &removed, &higher}, {&removed, &higher, &set},
		{&higher, &set, &removed}} {
		x := New()
		for _, c := range order {
			x.Apply(c)
		}
		if got, want := seriesOf(x), `1 "\x01a" in "c" as "\x01a" ["":"dc"="us"]`; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Series that come and go, with names and values of their own, leave memory as it was.
func TestChurnLeavesMemoryFlat(t *testing.T) {
	x := New()
	apply := func(i int) {
		x.Apply(&Change{
			Bucket: 1, Key: fmt.Appendf(nil, "\x04base\x06%06d", i), Collection: []byte("c"),
			Name: fmt.Appendf(nil, "\x06%06d", i/2),
			Set: []Tag{tag("", "host", fmt.Sprintf("host-%06d", i/10)),
				tag("", fmt.Sprintf("tag%06d", i/100), strings.Repeat("x", i%700)), tag("", "dc", "a")},
			Clock: uint64(i) * hourNS,
		})
	}
	const live = 2000
	var before int64
	for i := range 6 * live {
		apply(i)
		if i >= live && x.Drop(1, metric.Series(1, fmt.Appendf(nil, "\x04base\x06%06d", i-live)),
			math.MaxUint64) != 1 {
			t.Fatalf("series %d was not there", i-live)
		}
		if i == 2*live {
			before = x.Bytes()
		}
	}
	if after := x.Bytes(); after > before+before/20 {
		t.Errorf("%d bytes, before %d", after, before)
	}
}

// A change that would make a series too large is refused by Fits, and larger ones than fit one
// change are walked all the same.
func TestManyTags(t *testing.T) {
	x := New()
	c := Change{Bucket: 1, Key: []byte("\x01a"), Collection: []byte("c")}
	for i := range 3 * MaxTags / 2 {
		c.Set = append(c.Set, tag("", fmt.Sprint("tag", i), strings.Repeat("v", i)))
	}
	first, second := c, c
	first.Set, second.Set = c.Set[:MaxTags], c.Set[MaxTags:]
	if err := x.Fits(&first); err != nil {
		t.Error(err)
	}
	x.Apply(&first)
	if err := x.Fits(&second); !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "1536") {
		t.Errorf("%d tags: %v", len(c.Set), err)
	}
	x.Apply(&second)
	all := bytesOf(t, x)
	again := New()
	for rest := all; len(rest) > 0; {
		rest, _ = ParseChange(&c, rest)
		again.Apply(&c)
	}
	if !bytes.Equal(bytesOf(t, again), all) || seriesOf(again) != seriesOf(x) {
		t.Error("a walk lost some")
	}
	x.Drop(1, metric.Series(1, []byte("\x01a")), math.MaxUint64)
	if x.Fits(&second) != nil || len(bytesOf(t, x)) != 0 {
		t.Error("something is left of it")
	}
}
