package tagstore_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/store"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/testkit/filetest"
)

// damageTags flips a bit in files of tags.
func damageTags(t *testing.T, fs vfs.FS, names ...string) {
	t.Helper()
	for _, name := range names {
		filetest.FlipBit(t, fs, "/data/tags/"+name, 76*8) // of the first block
	}
}

// TestACheckWritesTagsAgain: the check of a running node finds a damaged copy and writes it again
// from the other one.
func TestACheckWritesTagsAgain(t *testing.T) {
	t.Parallel()
	clock := drivetest.NewClock()
	fs, want := taggedDir(t, clock)
	s := storetest.Start(t, options(fs, clock))
	defer s.Crash()
	op := store.NewOperations(s.Store)
	for i, name := range drivetest.TagFiles(t, fs) {
		was := filetest.Read(t, fs, "/data/tags/"+name)
		damageTags(t, fs, name)
		r, err := op.Check(context.Background(), fsck.Options{})
		if err != nil || !slices.Equal(r.Rewritten, []string{"tags/" + name}) || r.NotRewritten != "" ||
			r.Damaged != 1 {
			t.Fatalf("%s: %+v, %v", name, r, err)
		}
		if !bytes.Equal(filetest.Read(t, fs, "/data/tags/"+name), was) {
			t.Errorf("%s is not what it was", name)
		}
		if _, err := fs.Stat("/data/lost+found/" + name + ".1"); err != nil {
			t.Error(err)
		}
		if named, n := s.Damage(); n != uint64(i+1) || !strings.Contains(named[i], name) {
			t.Errorf("%s is not named once in %q", name, named)
		}
		if st := s.Tags().Stats(); st.Rewritten != int64(i+1) || st.Lost != 0 {
			t.Errorf("%s: %+v", name, st)
		}
		if r, err := op.Check(context.Background(), fsck.Options{}); err != nil || r.Damaged > 0 ||
			len(r.Rewritten) > 0 {
			t.Fatalf("%s: the next check says %+v, %v", name, r, err)
		}
	}
	want.Same(t, s, "after the checks")
}

// TestACheckReplacesLostTags: what both copies of a file lack is still in memory, and goes into a
// new base: a later start finds all of it.
func TestACheckReplacesLostTags(t *testing.T) {
	t.Parallel()
	clock := drivetest.NewClock()
	whole, want := taggedDir(t, clock)
	names := drivetest.TagFiles(t, whole)
	for i := 0; i < len(names); i += 2 {
		fs := drivetest.Clone(t, whole, "", 0)
		s := storetest.Start(t, options(fs, clock))
		damageTags(t, fs, names[i:i+2]...)
		r, err := store.NewOperations(s.Store).Check(context.Background(), fsck.Options{})
		paths := []string{"tags/" + names[i], "tags/" + names[i+1]}
		if err != nil || !slices.Equal(r.Rewritten, paths) || r.NotRewritten != "" {
			t.Fatalf("%s: %+v, %v", names[i], r, err)
		}
		if st := s.Tags().Stats(); st.Lost != 0 || st.Rewritten != 2 || st.Files != 1 {
			t.Errorf("%s: %+v", names[i], st)
		}
		s.Crash()
		s = storetest.Start(t, options(fs, clock))
		want.Same(t, s, names[i])
		if named, n := s.Damage(); n > 0 {
			t.Errorf("%s: the start says %q", names[i], named)
		}
		if _, err := fs.Stat("/data/lost+found/" + names[i] + ".1"); err != nil {
			t.Error(err)
		}
		s.Crash()
	}
}

// TestLostTagsAreCounted: the check and the start count the series of a block, and the changes of
// a record, that both copies lack.
func TestLostTagsAreCounted(t *testing.T) {
	t.Parallel()
	clock, whole := drivetest.NewClock(), vfs.NewMem()
	s := storetest.Start(t, options(whole, clock))
	b := drivetest.Bucket(t, s, "b")
	var list []tags.Change
	for i := range 1000 {
		list = append(list, drivetest.SetTag(b, i, "host", fmt.Sprint("web", i)))
	}
	drivetest.Tag(t, s, list...)
	if _, err := s.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	changes := drivetest.TagFiles(t, whole)
	clone := drivetest.Clone(t, whole, "", 0)
	if err := s.Tags().Merge(context.Background(), true); err != nil {
		t.Fatal(err)
	}
	s.Crash()
	for _, test := range []struct {
		fs    vfs.FS
		names []string
		text  string
	}{{clone, changes, "1000 changes of tags"},
		{whole, drivetest.TagFiles(t, whole), "1000 series with their tags"}} {
		for _, missing := range []bool{false, true} {
			fs := test.fs
			if !missing {
				fs = drivetest.Clone(t, test.fs.(*vfs.MemFS), "", 0)
				damageTags(t, fs, test.names...)
			} else {
				for _, name := range test.names {
					filetest.Rewrite(t, fs, "/data/tags/"+name, func(data []byte) []byte { return data[:86] })
				}
			}
			if r := drivetest.Check(t, fs, "/data"); !strings.Contains(fmt.Sprint(r.Damages), test.text) {
				t.Errorf("the check says %v, not %s", r.Damages, test.text)
			}
			s := storetest.Start(t, options(fs, clock))
			if st := s.Tags().Stats(); st.Lost != 1000 {
				t.Errorf("%+v", st)
			}
			if named, _ := s.Damage(); !strings.Contains(fmt.Sprint(named),
				test.text+" are lost in both copies") {
				t.Errorf("the start says %q, not %s", named, test.text)
			}
			s.Crash()
		}
	}
}

// TestTagsAreWrittenAgainWhenThereIsRoom: a start that finds the disk full serves everything, and a
// flush behind it has the damaged copy written again.
func TestTagsAreWrittenAgainWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	clock := drivetest.NewClock()
	mem, want := taggedDir(t, clock)
	names := drivetest.TagFiles(t, mem)
	damageTags(t, mem, names[0])
	var full atomic.Bool
	full.Store(true)
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && op.Kind == errorfs.OpCreate && strings.Contains(op.Path, names[0]) {
			return syscall.ENOSPC
		}
		return nil
	}))
	s := storetest.Start(t, options(fs, clock))
	defer s.Crash()
	want.Same(t, s, "while the disk is full")
	ctx := context.Background()
	for range 2 { // still full
		if err := s.Tags().Maintain(ctx); err != nil || s.Tags().Stats().Rewritten != 0 {
			t.Fatalf("%+v, %v", s.Tags().Stats(), err)
		}
	}
	full.Store(false)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		s.Tags().Run(stop)
	}()
	if _, err := s.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); s.Tags().Stats().Rewritten != 1; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("the flush had nothing written again: %+v", s.Tags().Stats())
		}
	}
	close(stop)
	<-ended
	if r := s.Check(t); r.Damaged > 0 {
		t.Errorf("%v", r.Damages)
	}
}
