package tags

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// model is all changes that were applied: every question is answered from them, by what
// DESIGN.md says of the registers.
type model struct{ changes []Change }

type place struct {
	bucket          uint64
	key, collection string
}

func placeOf(c *Change) place { return place{c.Bucket, string(c.Key), string(c.Collection)} }

// series is a series in a collection, as the model has it.
type series struct {
	place
	name string
	tags map[[2]string]string
}

func newer(a, b *Change) bool { return a.Clock > b.Clock || a.Clock == b.Clock && a.Node > b.Node }

// all returns what is visible.
func (m *model) all() []series {
	of := make(map[place][]*Change)
	for i := range m.changes {
		c := &m.changes[i]
		of[placeOf(c)] = append(of[placeOf(c)], c)
	}
	var list []series
	for p, changes := range of {
		if s, ok := modelSeries(p, changes); ok {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b series) int { return strings.Compare(a.String(), b.String()) })
	return list
}

func modelSeries(p place, changes []*Change) (s series, visible bool) {
	var left, cleared *Change
	for _, c := range changes {
		if c.Leave && (left == nil || newer(c, left)) {
			left = c
		}
		if c.Replace && (cleared == nil || newer(c, cleared)) {
			cleared = c
		}
	}
	changes = slices.DeleteFunc(changes, func(c *Change) bool {
		return c.Leave || left != nil && !newer(c, left)
	})
	s = series{p, p.key, map[[2]string]string{}}
	// The order of what wins: timestamps, and in one timestamp removals below values.
	slices.SortStableFunc(changes, func(a, b *Change) int {
		switch {
		case newer(a, b):
			return 1
		case newer(b, a):
			return -1
		}
		return bytes.Compare(a.Name, b.Name)
	})
	for from := 0; from < len(changes); {
		past := from
		for past < len(changes) && !newer(changes[past], changes[from]) {
			past++
		}
		same := changes[from:past]
		from = past
		sets := make(map[[2]string]string)
		for _, c := range same {
			if len(c.Name) > 0 {
				s.name = string(c.Name)
			}
			if cleared != nil && newer(cleared, c) {
				continue
			}
			for _, n := range c.Removed {
				delete(s.tags, [2]string{string(n.Namespace), string(n.Name)})
			}
			for _, t := range c.Set {
				n := [2]string{string(t.Namespace), string(t.Name)}
				if v, ok := sets[n]; !ok || v < string(t.Value) {
					sets[n] = string(t.Value)
				}
			}
		}
		maps.Copy(s.tags, sets)
	}
	for n := range s.tags {
		if IsImplied([]byte(n[0]), []byte(n[1])) {
			delete(s.tags, n)
		}
	}
	return s, len(changes) > 0
}

func (s series) String() string {
	var tags []string
	for n, v := range s.tags {
		tags = append(tags, fmt.Sprintf("%q:%q=%q", n[0], n[1], v))
	}
	slices.Sort(tags)
	return fmt.Sprintf("%d %q in %q as %q %s", s.bucket, s.key, s.collection, s.name, tags)
}

// drawChange draws from so few names, values and clocks that changes meet.
func drawChange(t *rapid.T) Change {
	name := func() TagName {
		return tagName(rapid.SampledFrom([]string{"", "", "label", "ddb"}).Draw(t, "namespace"),
			rapid.SampledFrom([]string{"host", "dc", "rack", "part_1", "key_length", "part_x"}).Draw(t,
				"tag"))
	}
	c := Change{
		Bucket: rapid.Uint64Range(1, 2).Draw(t, "bucket"),
		Key: []byte(
			rapid.SampledFrom([]string{"\x01a\x01b", "\x01a\x01c", "\x01b", "\xffraw",
				"\x01a\x01b\x01c"}).Draw(t, "key")),
		Collection: []byte(rapid.SampledFrom([]string{"c", "d"}).Draw(t, "collection")),
		Clock:      rapid.Uint64Range(0, 6).Draw(t, "clock"),
		Node:       rapid.Uint64Range(0, 1).Draw(t, "node"),
	}
	if c.Leave = rapid.IntRange(0, 7).Draw(t, "leave") == 0; c.Leave {
		return c
	}
	c.Name = []byte(rapid.SampledFrom([]string{"", "", "\x03cpu", "\x01b"}).Draw(t, "name"))
	c.Replace = rapid.IntRange(0, 5).Draw(t, "replace") == 0
	for range rapid.IntRange(0, 3).Draw(t, "set") {
		c.Set = append(c.Set,
			Tag{name(), []byte(rapid.SampledFrom([]string{"", "web1", "web2", "eu", "a\xff"}).Draw(t,
				"value"))})
	}
	for range rapid.IntRange(0, 1).Draw(t, "removed") {
		c.Removed = append(c.Removed, name())
	}
	return c
}
