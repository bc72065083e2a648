package tagline

import (
	"bytes"
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/tags"
)

func someID(name string) (uint64, error) {
	if name == "missing" {
		return 0, errors.New("unknown bucket")
	}
	return 7, nil
}

func TestParse(t *testing.T) {
	c, err := Parse([]byte(`{"bucket":"b","metric":["a","b\\x00"],"collection":"c","name":["cpu"],"tags":{"ns:host":"web1","a\\:b":"x:y"},"remove":["old"],"replace":true}`), someID)
	slices.SortFunc(c.Set, func(a, b tags.Tag) int { return bytes.Compare(a.Name, b.Name) })
	want := tags.Change{
		Bucket: 7, Key: []byte("\x01a\x02b\x00"), Collection: []byte("c"), Name: []byte("\x03cpu"), Replace: true,
		Set: []tags.Tag{{TagName: tags.TagName{Name: []byte("a:b")}, Value: []byte("x:y")},
			{TagName: tags.TagName{Namespace: []byte("ns"), Name: []byte("host")}, Value: []byte("web1")}},
		Removed: []tags.TagName{{Name: []byte("old")}},
	}
	if err != nil || string(c.Key) != string(want.Key) || len(c.Set) != 2 || string(c.Set[0].Name) != "a:b" || string(c.Set[1].Namespace) != "ns" ||
		string(c.Removed[0].Name) != "old" || !c.Replace || string(c.Collection) != "c" || string(c.Name) != string(want.Name) {
		t.Errorf("%+v, %v, want %+v", c, err, want)
	}
	if c, err := Parse([]byte(`{"bucket":"b","metric":["a"]}`), someID); err != nil || string(c.Collection) != "b" || c.Name != nil {
		t.Errorf("%+v, %v: the collection is the bucket, and the name the metric, unless they are given", c, err)
	}
}

func TestMalformedLines(t *testing.T) {
	for src, want := range map[string]string{
		``:                                    "malformed line",
		`{`:                                   "malformed line",
		`[]`:                                  "malformed line",
		`{"bucket":"b","metric":["a"]} {}`:    "there is more behind the object",
		`{"bucket":"b","metric":["a"],"x":1}`: `unknown field "x"`,
		`{"metric":["a"]}`:                    "want the name of a bucket",
		`{"bucket":"missing","metric":["a"]}`: "unknown bucket",
		`{"bucket":"b"}`:                      "want the parts of a metric",
		`{"bucket":"b","metric":["a"],"tags":{"":"x"}}`:                   "a tag has no name",
		`{"bucket":"b","metric":["a"],"tags":{"n\\":"x"}}`:                "a backslash at the end",
		`{"bucket":"b","metric":["a"],"collection":""}`:                   "it names no collection",
		`{"bucket":"b","metric":["` + strings.Repeat("a", 70_000) + `"]}`: "",
	} {
		if _, err := Parse([]byte(src), someID); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", src, err, want)
		}
	}
}

// What is written is read again, whatever bytes it has.
func TestLinesSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(label string, min int) []byte { return rapid.SliceOfN(rapid.Byte(), min, 6).Draw(t, label) }
		name := func() tags.TagName {
			return tags.TagName{Namespace: text("namespace", 0), Name: text("tag", 1)}
		}
		c := tags.Change{Bucket: 7, Key: text("key", 1), Collection: text("collection", 1), Name: text("name", 0), Replace: rapid.Bool().Draw(t, "replace")}
		for range rapid.IntRange(0, 3).Draw(t, "set") {
			c.Set = append(c.Set, tags.Tag{TagName: name(), Value: text("value", 0)})
		}
		for range rapid.IntRange(0, 3).Draw(t, "removed") {
			c.Removed = append(c.Removed, name())
		}
		byName := func(a, b tags.TagName) int {
			return cmp.Or(bytes.Compare(a.Namespace, b.Namespace), bytes.Compare(a.Name, b.Name))
		}
		normal := func(c *tags.Change) {
			slices.SortFunc(c.Set, func(a, b tags.Tag) int { return byName(a.TagName, b.TagName) })
			slices.SortFunc(c.Removed, byName)
		}
		normal(&c)
		c.Set = slices.CompactFunc(c.Set, func(a, b tags.Tag) bool { return byName(a.TagName, b.TagName) == 0 })
		src, err := Append(nil, "b", &c)
		if err != nil || src[len(src)-1] != '\n' {
			t.Fatalf("%q, %v", src, err)
		}
		got, err := Parse(src, someID)
		normal(&got)
		if err != nil || !bytes.Equal(tags.AppendChange(nil, &got), tags.AppendChange(nil, &c)) || reflect.DeepEqual(got, tags.Change{}) {
			t.Fatalf("%s became %+v, %v; it was %+v", src, got, err, c)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"bucket":"b","metric":["a"],"tags":{"a:b":"c"}}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		c, err := Parse(src, someID)
		if err == nil && c.Check() != nil {
			t.Fatalf("%q is read as a change that is not valid: %v", src, c.Check())
		}
	})
}
