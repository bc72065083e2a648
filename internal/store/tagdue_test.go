package store

import (
	"context"
	"dalmatiner/internal/store/drivetest"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
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
		b := drivetest.Bucket(t, s, "b")
		merges, flushes := int64(0), 30
		if least == 1<<40 {
			flushes = 258
		}
		for i := range flushes {
			drivetest.Tag(t, s, drivetest.SetTag(b, i, "host", strings.Repeat(fmt.Sprint(i), 1+i%7*50)))
			if _, err := s.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			base, changes, n := int64(0), int64(0), 0
			for _, name := range drivetest.TagFiles(t, fs) {
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
