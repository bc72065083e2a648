package store

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/manifest"
)

// TestMergesOfTagsAreDue: a merge comes when the files of changes have half as many bytes as the
// base, and a least number of bytes, or when they are many.
func TestMergesOfTagsAreDue(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, least := range []int64{1, 700, 1 << 40} {
		clock, fs := newTestClock(), vfs.NewMem()
		o := tagOptions(fs, clock)
		o.mergeTags = least
		s := mustOpen(t, o)
		b := tagBucket(t, s, "b")
		merges, flushes := int64(0), 30
		if least == 1<<40 {
			flushes = 258
		}
		for i := range flushes {
			mustTag(t, s, setTag(b, i, "host", strings.Repeat(fmt.Sprint(i), 1+i%7*50)))
			if _, err := s.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			base, changes, n := int64(0), int64(0), 0
			for _, name := range tagFiles(t, fs) {
				size := fileSize(t, fs, "/data/tags/"+name)
				switch path.Ext(name) {
				case ".base":
					base += size
				case ".changes":
					changes += size
					n++
				}
			}
			if changes >= max(base/2, least) || n >= 256 {
				merges++
			}
			if err := s.tags.Maintain(ctx); err != nil || s.Tags().Stats().Merges != merges {
				t.Fatalf("at least %d bytes, flush %d: %d merges, want %d: base %d, %d changes of %d bytes; %v",
					least, i, s.Tags().Stats().Merges, merges, base, n, changes, err)
			}
		}
		if merges == 0 || merges == int64(flushes) {
			t.Errorf("at least %d bytes: %d merges of %d flushes", least, merges, flushes)
		}
		s.Crash()
	}
}

// TestMissingTagsAreCounted: files of tags that are missing count, those of others do not.
func TestMissingTagsAreCounted(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, tagOptions(vfs.NewMem(), newTestClock()))
	defer s.Crash()
	s.tags.Missing([]manifest.LostFile{
		{FileName: manifest.FileName{Kind: manifest.EventFile}, Items: 100},
		{FileName: manifest.FileName{Kind: manifest.TagChanges}, Items: 3},
		{FileName: manifest.FileName{Kind: manifest.TagBase}, Items: 4},
	}, false)
	if n := s.Tags().Stats().Lost; n != 7 {
		t.Errorf("%d are counted, want 7", n)
	}
}

// TestTagsOfAnUnknownBucket: where damage took all that names a bucket, its tags are named, counted
// and not served.
func TestTagsOfAnUnknownBucket(t *testing.T) {
	t.Parallel()
	clock := newTestClock()
	fs, want := taggedDir(t, clock)
	for _, name := range []string{manifest.FirstName, manifest.SecondName, "wal", "flush", "window",
		"overlay", "catalogue", "events"} {
		if err := fs.RemoveAll("/data/" + name); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	s := mustOpen(t, tagOptions(fs, clock))
	defer s.Crash()
	if got := tagsOf(t, s); len(got) != 0 {
		t.Errorf("%v is served", got)
	}
	named, _ := s.Damage()
	if !strings.Contains(fmt.Sprint(named), fmt.Sprintf("the tags of %d series of it are not served",
		len(want))) || s.Tags().Stats().Lost != int64(len(want)) {
		t.Errorf("the start says %q, and counts %+v", named, s.Tags().Stats())
	}
}
