package store

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/wal"
)

func loseManifest(t testing.TB, fs vfs.FS, s *Store) {
	t.Helper()
	for _, name := range []string{manifest.FirstName, manifest.SecondName} {
		if err := fs.Remove(s.path(name)); err != nil {
			t.Fatal(err)
		}
	}
}

// Without a MANIFEST, files of events are taken in as segments are.
func TestEventsWithoutAManifest(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	clock, o, s := eventStore(t, fs, nil)
	var h eventHistory
	var hp history
	r := rand.New(rand.NewPCG(1, 3))
	for range 5 {
		h.send(t, s, r, clock, false)
		sendSome(t, s, &hp, r, clock)
		mustFlush(t, s)
	}
	if err := s.Events().Merger.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.send(t, s, r, clock, false)
	if err := s.disk.Log.Sync(); err != nil {
		t.Fatal(err)
	}
	s.Crash()
	loseManifest(t, fs, s)
	s = mustOpen(t, o)
	h.acked = len(h.sent)
	h.check(t, s)
	s.Crash()
}

// A bucket that never had a point is in no segment: its files of events say what it is. It comes
// back with its name, its id and its properties, also where the log is gone, and takes events that
// outlive the next crash.
func TestABucketWithEventsOnlyOutlivesTheManifest(t *testing.T) {
	t.Parallel()
	for _, withLog := range []bool{true, false} {
		fs := vfs.NewMem()
		clock, o, s := eventStore(t, fs, func(o *Options) { o.WALSync = wal.Always })
		if err := s.SetTTL("e", 777_777); err != nil {
			t.Fatal(err)
		}
		var h eventHistory
		r := rand.New(rand.NewPCG(1, 6))
		for range 3 {
			h.send(t, s, r, clock, false)
			mustFlush(t, s)
		}
		if withLog {
			h.send(t, s, r, clock, true)
		}
		want, _ := s.BucketByName("e")
		s.Crash()
		loseManifest(t, fs, s)
		if !withLog {
			if err := fs.RemoveAll(s.path(datadir.WAL)); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			s = mustOpen(t, o)
			if got, err := s.BucketByName("e"); err != nil || got != want {
				t.Fatalf("with log %v: the bucket is %+v, want %+v: %v", withLog, got, want, err)
			}
			if err := s.Events().Merger.Merge(t.Context()); err != nil { // what nobody knows goes
				t.Fatal(err)
			}
			h.acked = len(h.sent)
			h.check(t, s)
			h.send(t, s, r, clock, true)
			s.Crash()
		}
	}
}

// A deleted bucket stays away where its deletion is durable beside the MANIFEST: in the log.
func TestADeletedBucketWithEventsStaysAwayWithoutAManifest(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	clock, o, s := eventStore(t, fs, nil)
	var h eventHistory
	r := rand.New(rand.NewPCG(1, 7))
	h.send(t, s, r, clock, false)
	mustFlush(t, s)
	clock.Advance(time.Second)
	s.clock.Advance()
	if err := s.DeleteBucket("e"); err != nil {
		t.Fatal(err)
	}
	s.Crash()
	loseManifest(t, fs, s)
	s = mustOpen(t, o)
	if list := s.Buckets(); len(list) > 0 {
		t.Fatalf("the deleted bucket came back: %+v", list)
	}
	s.Crash()
}

// Two buckets of one name had it one after the other: the one that had it first was deleted. What
// is left of it is named, and never part of an answer.
func TestOfTwoBucketsOfANameTheLaterComesBack(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	clock, o, s := eventStore(t, fs, nil)
	var old, h eventHistory
	r := rand.New(rand.NewPCG(1, 8))
	old.send(t, s, r, clock, false)
	mustFlush(t, s)
	if err := s.DeleteBucket("e"); err != nil {
		t.Fatal(err)
	}
	eventBucket(t, s)
	h.send(t, s, r, clock, false)
	mustFlush(t, s)
	want, _ := s.BucketByName("e")
	s.Crash()
	loseManifest(t, fs, s)
	s = mustOpen(t, o)
	if got, err := s.BucketByName("e"); err != nil || got != want {
		t.Fatalf("the bucket is %+v, want %+v: %v", got, want, err)
	}
	h.acked = len(h.sent)
	h.check(t, s)
	names, _ := s.Damage()
	if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "events/") }) {
		t.Fatalf("the events of the older bucket are not named: %q", names)
	}
	s.Crash()
}
