package tagstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/model/incarnation"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/tags"
)

// TestALongRowInABase: a series with more tags than a block holds comes through a base.
func TestALongRowInABase(t *testing.T) {
	t.Parallel()
	clock, fs, want := drivetest.NewClock(), vfs.NewMem(), drivetest.TagModel{}
	s := storetest.Start(t, options(fs, clock))
	b := drivetest.Bucket(t, s, "b")
	for i := range 3 {
		c := drivetest.SetTag(b, 1, "first", "x")
		for j := range 40 {
			c.Set = append(c.Set, tags.Tag{TagName: tags.TagName{Name: fmt.Append(nil, "t", i, "-", j)},
				Value: []byte(strings.Repeat(fmt.Sprintf("%02d", j), 2000))})
		}
		drivetest.Tag(t, s, c)
		want.Apply("b", &c)
	}
	c := drivetest.SetTag(b, 2, "host", "short")
	drivetest.Tag(t, s, c)
	want.Apply("b", &c)
	if _, err := s.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := s.Tags().Merge(context.Background(), true); err != nil {
		t.Fatal(err)
	}
	s.Crash()
	if names := drivetest.TagFiles(t, fs); len(names) != 2 {
		t.Fatalf("the directory has %q", names)
	}
	s = storetest.Start(t, options(fs, clock))
	defer s.Crash()
	want.Same(t, s, "from the base")
}

// TestMergesForgetRemovals: what was removed long ago is in no base.
func TestMergesForgetRemovals(t *testing.T) {
	t.Parallel()
	ctx, clock, fs := context.Background(), drivetest.NewClock(), vfs.NewMem()
	s := storetest.Start(t, options(fs, clock))
	defer s.Crash()
	b := drivetest.Bucket(t, s, "b")
	c := drivetest.SetTag(b, 1, "kept", "x")
	c.Removed = []tags.TagName{{Name: []byte("gone")}}
	drivetest.Tag(t, s, c)
	removals := func() (n int) {
		if err := s.Tags().Walk(func(c *tags.Change) error {
			n += len(c.Removed)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, wait := range []time.Duration{0, incarnation.TTL - time.Hour, 2 * time.Hour} {
		clock.Advance(wait)
		drivetest.Tag(t, s, drivetest.SetTag(b, 2, "at", fmt.Sprint(wait)))
		if _, err := s.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		if err := s.Tags().Merge(ctx, true); err != nil {
			t.Fatal(err)
		}
		if n := removals(); (n == 1) != (wait != 2*time.Hour) {
			t.Errorf("%s later %d removals are remembered", wait, n)
		}
	}
}

// TestAMergeOfTagsThatFails: whichever write of a base fails, nothing is lost and nothing counts
// that is not whole; the next merge takes place.
func TestAMergeOfTagsThatFails(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for n := int64(0); ; n++ {
		clock := drivetest.NewClock()
		mem, want := taggedDir(t, clock)
		var left atomic.Int64
		left.Store(1 << 40)
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if strings.Contains(op.Path, ".base") && op.Kind.ReadOrWrite() == errorfs.OpIsWrite &&
				left.Add(-1) == -1 {
				return syscall.ENOSPC
			}
			return nil
		}))
		s := storetest.Start(t, options(fs, clock))
		left.Store(n)
		err := s.Tags().Merge(ctx, true)
		failed := left.Load() < 0
		left.Store(1 << 40)
		if r := s.Check(t); r.Damaged > 0 {
			t.Fatalf("write %d fails: %v", n, r.Damages)
		}
		st := s.Tags().Stats()
		if err == nil && st.Files != 1 || err != nil &&
			(st.Files == 1 || !errors.Is(err, syscall.ENOSPC)) {
			t.Fatalf("write %d fails: %+v, %v", n, st, err)
		}
		if err := s.Tags().Merge(ctx, true); err != nil {
			t.Fatalf("behind write %d, which fails: %v", n, err)
		}
		s.Crash()
		s = storetest.Start(t, options(mem, clock))
		want.Same(t, s, fmt.Sprintf("write %d fails", n))
		s.Crash()
		if !failed {
			if n < 5 {
				t.Errorf("a merge writes %d times", n)
			}
			return
		}
	}
}

// TestAMergeWithoutItsCommit: where the MANIFEST takes no edit, a merge says so and replaces
// nothing.
func TestAMergeWithoutItsCommit(t *testing.T) {
	t.Parallel()
	clock := drivetest.NewClock()
	mem, want := taggedDir(t, clock)
	var fails atomic.Bool
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if fails.Load() && strings.Contains(op.Path, "MANIFEST") &&
			op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return syscall.EIO
		}
		return nil
	}))
	s := storetest.Start(t, options(fs, clock))
	before := s.Tags().Stats()
	fails.Store(true)
	err := s.Tags().Merge(context.Background(), true)
	if after := s.Tags().Stats(); err == nil || after.Files != before.Files || after.Merges != 0 {
		t.Errorf("%+v, %+v before, %v", after, before, err)
	}
	s.Crash()
	s = storetest.Start(t, options(mem, clock))
	defer s.Crash()
	want.Same(t, s, "after the merge")
}
