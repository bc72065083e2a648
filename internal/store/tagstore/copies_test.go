package tagstore_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/store/snapshot"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/testkit/filetest"
)

// TestEveryByteOfTags: a flipped bit in any byte of any copy is named by a check and by a start,
// loses nothing, and the start writes the copy again.
func TestEveryByteOfTags(t *testing.T) {
	t.Parallel()
	clock := drivetest.NewClock()
	whole, want := taggedDir(t, clock)
	names := drivetest.TagFiles(t, whole)
	if len(names) != 6 {
		t.Fatalf("the directory has %q", names)
	}
	for _, name := range names {
		file := "tags/" + name
		was := filetest.Read(t, whole, "/data/"+file)
		step := 1
		if testing.Short() {
			step = 7
		}
		for at := rand.IntN(step); at < len(was); at += step {
			fs := drivetest.Clone(t, whole, file, int64(at*8+rand.IntN(8)))
			if r := drivetest.Check(t, fs, "/data"); !drivetest.ReportNames(&r, file) || r.Damaged != 1 {
				t.Fatalf("byte %d of %s: the check says %v", at, file, r.Damages)
			}
			s := storetest.Start(t, options(fs, clock))
			want.Same(t, s, fmt.Sprintf("byte %d of %s", at, file))
			if named, n := s.Damage(); n != 1 || !strings.Contains(named[0], file) {
				t.Fatalf("byte %d of %s: the start says %q", at, file, named)
			}
			s.Crash()
			if !bytes.Equal(filetest.Read(t, fs, "/data/"+file), was) {
				t.Fatalf("byte %d of %s: the copy was not written again", at, file)
			}
			if _, err := fs.Stat("/data/lost+found/" + name + ".1"); err != nil {
				t.Fatalf("byte %d of %s: %v", at, file, err)
			}
			if r := drivetest.Check(t, fs, "/data"); r.Damaged > 0 {
				t.Fatalf("byte %d of %s: after the start the check says %v", at, file, r.Damages)
			}
		}
	}
}

// TestBothCopiesOfTags: what both copies lack is named, counted and not invented; the rest is
// served, and the start behind it finds a whole directory.
func TestBothCopiesOfTags(t *testing.T) {
	t.Parallel()
	clock := drivetest.NewClock()
	whole, want := taggedDir(t, clock)
	names := drivetest.TagFiles(t, whole)
	for i := 0; i < len(names); i += 2 {
		for _, missing := range []bool{false, true} {
			fs := drivetest.Clone(t, whole, "", 0)
			for _, name := range names[i : i+2] {
				if missing {
					if err := fs.Remove("/data/tags/" + name); err != nil {
						t.Fatal(err)
					}
				} else {
					filetest.Rewrite(t, fs, "/data/tags/"+name, func(data []byte) []byte {
						data[76] ^= 1 // the first block
						return data
					})
				}
			}
			if r := drivetest.Check(t, fs, "/data"); r.Damaged == 0 {
				t.Fatalf("%s: the check finds nothing", names[i])
			}
			s := storetest.Start(t, options(fs, clock))
			got := drivetest.TagsOf(t, s)
			for k, v := range got {
				if want[k] != v {
					t.Fatalf("%s: %v is invented", names[i], k)
				}
			}
			if n := len(want) - len(got); n != 1 && n != 2 {
				t.Fatalf("%s: %d of %d tags are left", names[i], len(got), len(want))
			}
			if _, n := s.Damage(); n == 0 || s.Tags().Stats().Lost < int64(len(want)-len(got)) {
				t.Fatalf("%s, missing %t: nothing is counted: %+v", names[i], missing, s.Tags().Stats())
			}
			if err := s.Tags().Merge(context.Background(), false); err != nil {
				t.Fatal(err)
			}
			s.Crash()
			if r := drivetest.Check(t, fs, "/data"); r.Damaged != 1 ||
				!strings.Contains(fmt.Sprint(r.Damages), "items are lost") {
				t.Fatalf("%s: after the start the check says %v", names[i], r.Damages)
			}
			s = storetest.Start(t, options(fs, clock))
			got.Same(t, s, names[i])
			if n := s.Tags().Stats().Lost; n == 0 {
				t.Fatalf("%s: the next start counts nothing", names[i])
			}
			if named, n := s.Damage(); n > 0 {
				t.Fatalf("%s: the next start says %q", names[i], named)
			}
			s.Crash()
		}
	}
}

// TestTagsWithoutTheManifest: where both copies of the MANIFEST are lost, the files say what they
// are.
func TestTagsWithoutTheManifest(t *testing.T) {
	t.Parallel()
	clock := drivetest.NewClock()
	fs, want := taggedDir(t, clock)
	for _, name := range []string{manifest.FirstName, manifest.SecondName} {
		if err := fs.Remove("/data/" + name); err != nil {
			t.Fatal(err)
		}
	}
	s := storetest.Start(t, options(fs, clock))
	defer s.Crash()
	want.Same(t, s, "without the MANIFEST")
}

// TestTagsInASnapshot: a snapshot has the tags of its moment, in both copies, and a restore brings
// them.
func TestTagsInASnapshot(t *testing.T) {
	t.Parallel()
	clock := drivetest.NewClock()
	fs, want := taggedDir(t, clock)
	s := storetest.Start(t, options(fs, clock))
	b := drivetest.Bucket(t, s, "b")
	c := drivetest.SetTag(b, 9, "late", "x")
	drivetest.Tag(t, s, c)
	want.Apply("b", &c)
	if _, err := store.NewOperations(s.Store).Snapshot(context.Background(), "snap"); err != nil {
		t.Fatal(err)
	}
	drivetest.Tag(t, s, drivetest.SetTag(b, 10, "later", "y"))
	if err := s.Tags().Merge(context.Background(), true); err != nil {
		t.Fatal(err)
	}
	s.Crash()
	for _, link := range []bool{false, true} {
		to := fmt.Sprint("/restored", link)
		r, err := snapshot.Restore(context.Background(),
			snapshot.RestoreOptions{FS: fs, From: "/data/snapshots/snap", To: to, Link: link})
		if err != nil || r.Check.TagEntries == 0 {
			t.Fatalf("restore: %+v, %v", r, err)
		}
		o := options(fs, clock)
		o.Dir = to
		again := storetest.Start(t, o)
		want.Same(t, again, "restored")
		if named, n := again.Damage(); n > 0 {
			t.Errorf("restored: %q", named)
		}
		again.Crash()
	}
}

// TestTagsExpire: the tags of a series go with its last point.
func TestTagsExpire(t *testing.T) {
	t.Parallel()
	clock, fs := drivetest.NewClock(), vfs.NewMem()
	s := storetest.Start(t, options(fs, clock))
	b := drivetest.Bucket(t, s, "b")
	if err := s.SetTTL("b", 3600); err != nil {
		t.Fatal(err)
	}
	x := drivetest.Session(t, s, "b")
	for i := range 3 {
		x.Point(drivetest.Key(i), uint64(clock.Now().Unix()), point.FromInt(1))
		drivetest.Tag(t, s, drivetest.SetTag(b, i, "host", "web"))
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	s.Pass(t, clock, 2*24*time.Hour)
	x = drivetest.Session(t, s, "b")
	x.Point(drivetest.Key(0), uint64(clock.Now().Unix()), point.FromInt(1))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Merge(context.Background()); err != nil {
		t.Fatal(err)
	}
	want := drivetest.TagModel{{"b", string(drivetest.Key(0)), "host"}: "web"}
	want.Same(t, s, "expired")
	s.Crash()
	s = storetest.Start(t, options(fs, clock))
	defer s.Crash()
	want.Same(t, s, "expired, after a start")
}

// TestTagsBesideAll: a check of a running store finds nothing wrong while tags are changed,
// flushed and merged.
func TestTagsBesideAll(t *testing.T) {
	t.Parallel()
	clock, fs := drivetest.NewClock(), vfs.NewMem()
	s := storetest.Start(t, options(fs, clock))
	defer s.Crash()
	b := drivetest.Bucket(t, s, "b")
	done := make(chan error, 1)
	go func() {
		for i := range 200 {
			if _, err := s.Tags().Apply(context.Background(),
				[]tags.Change{drivetest.SetTag(b, i%20, "host", fmt.Sprint(i))}); err != nil {
				done <- err
				return
			}
			if i%5 == 0 {
				if _, err := s.Flush(context.Background()); err != nil {
					done <- err
					return
				}
			}
			if i%20 == 0 {
				if err := s.Tags().Merge(context.Background(), true); err != nil {
					done <- err
					return
				}
			}
		}
		done <- nil
	}()
	op := store.NewOperations(s.Store)
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
		r, err := op.Check(context.Background(), fsck.Options{})
		if err != nil || r.Damaged > 0 {
			t.Fatalf("%v: %v", r.Damages, err)
		}
	}
}
