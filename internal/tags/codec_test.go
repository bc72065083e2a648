package tags

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/testkit/frozen"
)

func tagName(namespace, name string) TagName {
	return TagName{Namespace: []byte(namespace), Name: []byte(name)}
}

func tag(namespace, name, value string) Tag {
	return Tag{TagName: tagName(namespace, name), Value: []byte(value)}
}

var someChanges = []Change{
	{Bucket: 1, Key: []byte("\x01a"), Collection: []byte("c"), Clock: 2, Node: 3},
	{
		Bucket: 0xfedcba9876543210, Key: []byte("\x03web\x03cpu"), Collection: []byte("metrics"),
		Name: []byte("\x03cpu"),
		Set: []Tag{tag("", "host", "web1"), tag("label", "db", ""),
			tag("a:b", "\x00\xff", strings.Repeat("v", 200))},
		Removed: []TagName{tagName("", "old")},
		Replace: true, Clock: 1_700_000_000_000_000_001, Node: 1 << 63,
	},
	{Bucket: 7, Key: []byte("\xffraw"), Collection: []byte("c"), Leave: true, Clock: 9},
}

// The format is frozen: log records and files hold these bytes.
func TestFrozenChanges(t *testing.T) {
	var text strings.Builder
	for i := range someChanges {
		fmt.Fprintln(&text, hex.EncodeToString(AppendChange(nil, &someChanges[i])))
	}
	frozen.Same(t, "changes.txt", []byte(text.String()))
}

// anyText is nil where it is empty.
func anyText(min, max int) *rapid.Generator[[]byte] {
	return rapid.Map(rapid.SliceOfN(rapid.Byte(), min, max), func(b []byte) []byte {
		return append([]byte(nil), b...)
	})
}

func drawTagName(t *rapid.T) TagName {
	return TagName{Namespace: anyText(0, 3).Draw(t, "namespace"), Name: anyText(1, 4).Draw(t, "tag")}
}

func TestChangesSurviveTheirBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Change{
			Bucket: rapid.Uint64().Draw(t, "bucket"), Clock: rapid.Uint64().Draw(t, "clock"),
			Node:       rapid.Uint64().Draw(t, "node"),
			Key:        anyText(1, 300).Draw(t, "key"),
			Collection: anyText(1, MaxCollection).Draw(t, "collection"),
		}
		if c.Leave = rapid.Bool().Draw(t, "leave"); !c.Leave {
			c.Replace, c.Name = rapid.Bool().Draw(t, "replace"), anyText(0, 5).Draw(t, "name")
			for range rapid.IntRange(0, 4).Draw(t, "set") {
				c.Set = append(c.Set, Tag{TagName: drawTagName(t), Value: anyText(0, 200).Draw(t, "value")})
			}
			for range rapid.IntRange(0, 4).Draw(t, "removed") {
				c.Removed = append(c.Removed, drawTagName(t))
			}
		}
		behind := anyText(0, 10).Draw(t, "behind")
		encoded := AppendChange(nil, &c)
		var got Change
		rest, err := ParseChange(&got, append(encoded, behind...))
		if err != nil || !bytes.Equal(rest, behind) {
			t.Fatalf("%x: %x behind it, %v", encoded, rest, err)
		}
		if !reflect.DeepEqual(got, c) {
			t.Fatalf("%+v, want %+v", got, c)
		}
		for n := range encoded {
			if _, err := ParseChange(&got, encoded[:n]); !errors.Is(err, ErrMalformed) {
				t.Fatalf("cut to %d of %d bytes: %v", n, len(encoded), err)
			}
		}
	})
}

func TestChecksNameTheLimit(t *testing.T) {
	long := func(n int) []byte { return bytes.Repeat([]byte("x"), n+1) }
	f := func(want string, spoil func(*Change)) {
		t.Helper()
		c := someChanges[0]
		spoil(&c)
		if err := c.Check(); !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
		if _, err := ParseChange(new(Change), AppendChange(nil, &c)); !errors.Is(err, ErrMalformed) {
			t.Errorf("parsed what is over the limit %q: %v", want, err)
		}
	}
	f("no metric", func(c *Change) { c.Key = nil })
	f("65535", func(c *Change) { c.Key = long(metric.MaxKey) })
	f("no collection", func(c *Change) { c.Collection = nil })
	f("255", func(c *Change) { c.Collection = long(MaxCollection) })
	f("65535", func(c *Change) { c.Name = long(metric.MaxKey) })
	f("no name", func(c *Change) { c.Set = []Tag{tag("a", "", "b")} })
	f("no name", func(c *Change) { c.Removed = []TagName{{}} })
	f("1024", func(c *Change) { c.Set = []Tag{{TagName: TagName{Name: long(MaxTagName)}}} })
	f("'n' has 256", func(c *Change) {
		c.Removed = []TagName{{Namespace: long(MaxNamespace), Name: []byte("n")}}
	})
	f("'a':'b' has 4097", func(c *Change) { c.Set = []Tag{tag("a", "b", string(long(MaxValue)))} })
	f("1025 tags", func(c *Change) {
		for range MaxTags/2 + 1 {
			c.Set = append(c.Set, tag("", "a", ""))
		}
		c.Removed = make([]TagName, MaxTags/2)
	})
	f("neither", func(c *Change) { c.Leave, c.Replace = true, true })
}

// Whatever is parsed is written as the same bytes.
func FuzzParseChange(f *testing.F) {
	for i := range someChanges {
		f.Add(AppendChange(nil, &someChanges[i]))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var c Change
		rest, err := ParseChange(&c, data)
		if err != nil {
			return
		}
		if again := AppendChange(nil, &c); !bytes.Equal(append(again, rest...), data) {
			t.Fatalf("%x\nis written as\n%x", data, again)
		}
	})
}
