package tagstore_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/storetest"
)

// TestMissingTagsAreCounted: files of tags that are missing count, those of others do not.
func TestMissingTagsAreCounted(t *testing.T) {
	t.Parallel()
	s := storetest.Start(t, options(vfs.NewMem(), drivetest.NewClock()))
	defer s.Crash()
	s.Tags().Missing([]manifest.LostFile{
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
	clock := drivetest.NewClock()
	fs, want := taggedDir(t, clock)
	for _, name := range []string{manifest.FirstName, manifest.SecondName, "wal", "flush", "window",
		"overlay", "catalogue", "events"} {
		if err := fs.RemoveAll("/data/" + name); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	s := storetest.Start(t, options(fs, clock))
	defer s.Crash()
	if got := drivetest.TagsOf(t, s); len(got) != 0 {
		t.Errorf("%v is served", got)
	}
	named, _ := s.Damage()
	if !strings.Contains(fmt.Sprint(named), fmt.Sprintf("the tags of %d series of it are not served",
		len(want))) || s.Tags().Stats().Lost != int64(len(want)) {
		t.Errorf("the start says %q, and counts %+v", named, s.Tags().Stats())
	}
}
