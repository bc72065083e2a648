package drivetest

import (
	"context"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/tags"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TagModel is the naive truth: the value of each tag, by bucket, series and name.
type TagModel map[[3]string]string

// Clone returns a copy.
func (m TagModel) Clone() TagModel {
	c := make(TagModel, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

// Equal says whether two have the same tags.
func (m TagModel) Equal(o TagModel) bool {
	if len(m) != len(o) {
		return false
	}
	for k, v := range m {
		if w, ok := o[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// Apply does what a change says, which is newer than all before.
func (m TagModel) Apply(bucket string, c *tags.Change) {
	gone := func(k [3]string) bool { return k[0] == bucket && k[1] == string(c.Key) }
	if c.Replace {
		for k := range m {
			if gone(k) {
				delete(m, k)
			}
		}
	}
	for _, t := range c.Removed {
		delete(m, [3]string{bucket, string(c.Key), string(t.Name)})
	}
	for _, t := range c.Set {
		m[[3]string{bucket, string(c.Key), string(t.Name)}] = string(t.Value)
	}
}

// Drop takes away the tags of a series, or of all where key is nil.
func (m TagModel) Drop(bucket string, key []byte) {
	for k := range m {
		if k[0] == bucket && (key == nil || k[1] == string(key)) {
			delete(m, k)
		}
	}
}

// TagsOf returns what the store has.
func TagsOf(t TB, s Store) TagModel {
	t.Helper()
	names := make(map[uint64]string)
	for _, b := range s.Buckets() {
		names[b.ID] = b.Name
	}
	m := make(TagModel)
	err := s.Tags().Index().Walk(func(c *tags.Change) error {
		for _, tag := range c.Set {
			m[[3]string{names[c.Bucket], string(c.Key), string(tag.Name)}] = string(tag.Value)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("walk: %v", err)
	}
	return m
}

func (m TagModel) String() string {
	var lines []string
	for k, v := range m {
		lines = append(lines, fmt.Sprintf("%s %x %s=%s", k[0], k[1], k[2], v))
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

// SetTag returns a change that sets a tag of a series.
func SetTag(b buckets.Info, series int, name, value string) tags.Change {
	return tags.Change{Bucket: b.ID, Key: Key(series), Collection: []byte("c"),
		Set: []tags.Tag{{TagName: tags.TagName{Name: []byte(name)}, Value: []byte(value)}}}
}

// Tag makes changes, of which none may be refused.
func Tag(t TB, s Store, list ...tags.Change) {
	t.Helper()
	a, err := s.Tags().Apply(context.Background(), list)
	if err != nil || len(a.Refused) > 0 {
		t.Fatalf("apply: %+v, %v", a, err)
	}
}

// Bucket returns a bucket, which need not be there.
func Bucket(t TB, s Store, name string) buckets.Info {
	t.Helper()
	b, err := s.EnsureBucket(name)
	if err != nil {
		t.Fatalf("bucket: %v", err)
	}
	return b
}

// Same fails the test unless the store has the tags of the model.
func (m TagModel) Same(t TB, s Store, when string) {
	t.Helper()
	if got := TagsOf(t, s); !got.Equal(m) {
		t.Fatalf("%s:\nhas  %v\nwant %v", when, got, m)
	}
}

// FillTagged leaves a directory with a base of tags and changes since, and returns the tags. The
// store must have been opened to flush and merge by hand.
func FillTagged(t TB, s Store) TagModel {
	t.Helper()
	b, want := Bucket(t, s, "b"), TagModel{}
	for i := range 4 {
		c := SetTag(b, i, "host", fmt.Sprint("web", i))
		Tag(t, s, c)
		want.Apply("b", &c)
		Flush(t, s)
		if i != 1 {
			continue
		}
		if err := s.Tags().Merge(context.Background(), true); err != nil {
			t.Fatalf("merge: %v", err)
		}
	}
	return want
}

// TagFiles returns the names of the files of tags, sorted.
func TagFiles(t testing.TB, fs vfs.FS) []string {
	t.Helper()
	names, err := fs.List("/data/tags")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}
