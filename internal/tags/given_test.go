package tags

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
)

// TestGiven: a sender learns what the index has of a change, and when it may have lost something.
func TestGiven(t *testing.T) {
	x := New()
	g := GivenTags{In: x}
	change := func(key string, set ...Tag) *Change {
		return &Change{Bucket: 1, Key: []byte(key), Collection: []byte("c"), Clock: 10, Set: set}
	}
	has := func(want bool, c *Change) {
		t.Helper()
		if g.Has(c) != want {
			t.Errorf("%q with %d tags: %t", c.Key, len(c.Set), !want)
		}
	}
	has(false, change("\x01a"))
	x.Apply(change("\x01a", tag("", "host", "web")))
	has(true, change("\x01a"))
	has(true, change("\x01a", tag("", "host", "other"))) // some value
	has(true, change("\x01a", tag("", "host", "web"), tag("ddb", "part_1", "a"),
		tag("ddb", "key_length", "1")))
	has(false, change("\x01a", tag("", "host", "web"), tag("", "dc", "eu")))
	has(false, change("\x01b", tag("", "host", "web")))
	x.Apply(&Change{Bucket: 1, Key: []byte("\x01a"), Collection: []byte("c"), Clock: 11,
		Replace: true})
	has(true, change("\x01a", tag("", "host", "web"))) // what somebody replaced stays so

	lost := g.Losses()
	losing := func(want bool, what string, fn func()) {
		t.Helper()
		fn()
		if now := g.Losses(); (now > lost) != want {
			t.Errorf("%s: %d losses, %d before", what, now, lost)
		}
		lost = g.Losses()
	}
	for i := range 4 {
		x.Apply(change(fmt.Sprintf("\x01%d", i), tag("", "host", "web")))
	}
	losing(false, "a change", func() { x.Apply(change("\x01e", tag("", "host", "web"))) })
	losing(true, "a series leaves", func() {
		x.Apply(&Change{Bucket: 1, Key: []byte("\x010"), Collection: []byte("c"), Clock: 12, Leave: true})
	})
	losing(true, "a bucket is dropped", func() { x.DropBucket(1) })
	has(false, change("\x01a", tag("", "host", "web")))
}

// TestImpliedParts: a series that has no such part meets no condition on it, however it is asked.
func TestImpliedParts(t *testing.T) {
	x := New()
	keys := []string{"\x01a", "\x01a\x01b", "\x01a\x01b\x01c", "\x01x\x01b", "\x05bad"}
	for _, key := range keys {
		x.Apply(&Change{Bucket: 1, Key: []byte(key), Collection: []byte("c"), Clock: 10})
	}
	part := func(op Op, n int, value string) *Cond {
		c := &Cond{Op: op, Tag: tagName("ddb", fmt.Sprint("part_", n)), Value: []byte(value),
			Pattern: value}
		if op == Glob {
			for _, p := range strings.Split(value, "*") {
				c.Pieces = append(c.Pieces, []byte(p))
			}
		}
		return c
	}
	both := func(op Op, l, r *Cond) *Cond { return &Cond{Op: op, Left: l, Right: r} }
	for want, c := range map[string]*Cond{
		"0123":  part(Exists, 1, ""),
		"123":   part(Exists, 2, ""),
		"2":     part(Exists, 3, ""),
		"04":    both(Not, part(Exists, 2, ""), nil),
		"012":   part(Equal, 1, "a"),
		"12":    both(And, part(Exists, 2, ""), part(Equal, 1, "a")),
		"01":    both(And, part(Equal, 1, "a"), both(Not, part(Exists, 3, ""), nil)),
		"3":     part(Regexp, 1, "[x-z]"),
		" 123":  part(Glob, 2, "b*"),
		"0134":  both(Not, part(Glob, 3, "*"), nil),
		" 2":    part(Regexp, 3, ".*"),
		"23":    both(Or, part(Equal, 3, "c"), part(Equal, 1, "x")),
		"4":     both(Not, part(Exists, 1, ""), nil),
		"":      part(Exists, 4, ""),
		"01234": nil,
	} {
		var got []byte
		_, err := x.Lookup(context.Background(), &Query{Collection: []byte("c"), Where: c},
			func(h *Hit) bool {
				for i, key := range keys {
					if string(h.Key) == key {
						got = append(got, byte('0'+i))
					}
				}
				return true
			})
		if want = strings.TrimSpace(want); err != nil || len(got) != len(want) ||
			!containsAll(want, got) {
			t.Errorf("%v finds %s, want %s; %v", c, got, want, err)
		}
	}
}

func containsAll(want string, got []byte) bool {
	for _, c := range got {
		if strings.Count(want, string(c)) != 1 || bytes.Count(got, []byte{c}) != 1 {
			return false
		}
	}
	return true
}

// TestLoadRenumbersTags: blocks number their tags each for itself, and a row stays in the order
// that the index has.
func TestLoadRenumbersTags(t *testing.T) {
	first := &Change{Bucket: 1, Key: []byte("\x01a"), Collection: []byte("c"), Clock: 10,
		Set: []Tag{tag("", "y", "1"), tag("", "x", "1")}}
	second := &Change{Bucket: 1, Key: []byte("\x01b"), Collection: []byte("c"), Clock: 11,
		Set: []Tag{tag("", "x", "2"), tag("", "z", "2"), tag("", "y", "2")}}
	third := &Change{Bucket: 1, Key: []byte("\x01b"), Collection: []byte("c"), Clock: 12,
		Set: []Tag{tag("", "x", "3")}, Removed: []TagName{tagName("", "y")}}
	var blocks [][]byte
	want := New()
	for _, c := range []*Change{first, second} {
		x := New()
		x.Apply(c)
		want.Apply(c)
		list, _ := blocksOf(t, x)
		blocks = append(blocks, list...)
	}
	got := New()
	load(t, got, keepAll, blocks)
	for range 2 {
		if !bytes.Equal(bytesOf(t, got), bytesOf(t, want)) {
			t.Errorf("it has %q, want %q", bytesOf(t, got), bytesOf(t, want))
		}
		got.Apply(third)
		want.Apply(third)
	}
}
