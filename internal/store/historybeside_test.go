package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/compaction"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/testkit/filetest"
	"dalmatiner/internal/write/intake"
)

// markedBeside is a store in use, and the reader of a bucket in it.
type markedBeside struct {
	t      *testing.T
	s      *Store
	clock  *testClock
	over   atomic.Bool
	rounds atomic.Int64 // of the reader
	all    sync.WaitGroup
}

// beside calls do again and again until the test is over.
func (b *markedBeside) beside(do func(r *rand.Rand, x *intake.Session) error) {
	x := mustSession(b.t, b.s, "b")
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	b.all.Go(func() {
		var err error
		for !b.over.Load() && err == nil {
			if err = do(r, x); err != nil {
				b.t.Error(err)
			}
		}
		if err := x.Close(); err != nil {
			b.t.Error(err)
		}
	})
}

// send sends points of two series, most of them on time.
func (b *markedBeside) send(sender int) {
	n := 0
	b.beside(func(r *rand.Rand, x *intake.Session) error {
		now := b.s.Now().Unix()
		for range 20 {
			slot := now - r.Int64N(3)
			if n++; n%1000 == 0 {
				slot -= r.Int64N(1000)
			}
			x.Point(key(r.IntN(2)*2+sender), uint64(slot), point.FromInt(int64(n)))
		}
		if sender == 0 {
			b.clock.Advance(time.Second)
			b.s.clock.Advance()
		}
		_, err := x.Commit()
		return err
	})
}

// disturb does now and then what else there is.
func (b *markedBeside) disturb(r *rand.Rand, _ *intake.Session) (err error) {
	switch r.IntN(12) {
	case 0:
		_, err = b.s.DeleteSeries(context.Background(), "b", deletion.Choice{Key: key(r.IntN(4))}, false)
		if errors.Is(err, deletion.ErrUnknownSeries) {
			err = nil
		}
	case 1:
		err = b.s.SetTTL("b", 500*r.Int64N(3))
	case 2:
		_, err = b.s.Flush(context.Background())
	case 3:
		_, err = b.s.Merge(context.Background())
	default:
		for at := b.rounds.Load(); b.rounds.Load() < at+2 && !b.over.Load(); {
			runtime.Gosched()
		}
	}
	return err
}

// read reads twice behind a mark, and returns of how many series points were unchanged.
func (b *markedBeside) read(h Bucket) (known int) {
	m := h.Mark()
	from := max(b.s.Now().Unix()-2000, epoch-100)
	was, is := readMarked(b.t, h, from), readMarked(b.t, h, from)
	below, oldest := h.Since(m, from).Below, int64(0)
	if ttl := h.Info().TTL; ttl > 0 {
		oldest = b.s.Now().Unix() - ttl
	}
	b.rounds.Add(1)
	for series := range was {
		any := false
		for i := range was[series] {
			slot := from + int64(i)
			if was[series][i] != is[series][i] && slot < below && slot >= oldest {
				b.t.Fatalf("series %d slot %d held %x and then %x, nothing changed below %d", series, slot,
					was[series][i], is[series][i], below)
			}
			any = any || was[series][i] != 0 && slot < below
		}
		if any {
			known++
		}
	}
	return known
}

// TestMarksBesideSenders: beside senders on time and late, deletions, lifetimes, flushes and
// merges, two reads between a mark and the question what has not changed since have the same words
// there.
func TestMarksBesideSenders(t *testing.T) {
	b := &markedBeside{t: t, clock: newTestClock()}
	o := testOptions(vfs.NewMem(), b.clock)
	o.FlushBytes, o.CachePoints, o.BackgroundMerge = 20_000, 60, true
	b.s = mustOpen(t, o)
	defer b.s.Crash()
	if _, err := b.s.CreateBucket(buckets.Info{Name: "b", Resolution: 1000, PPF: 1000}); err != nil {
		t.Fatal(err)
	}
	defer b.all.Wait()
	defer b.over.Store(true)
	b.send(0)
	b.send(1)
	b.beside(b.disturb)
	h, err := b.s.Bucket("b")
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	for deadline := time.Now().Add(time.Minute); known < 3000 && !t.Failed() &&
		time.Now().Before(deadline); {
		known += b.read(h)
	}
	t.Logf("%d rounds, %d series were unchanged", b.rounds.Load(), known)
}

// readMarked reads what four series have in 2,100 slots.
func readMarked(t *testing.T, h Bucket, from int64) (words [4][]uint64) {
	for series := range words {
		words[series] = make([]uint64, 2100)
		if err := h.Series(key(series)).Read(context.Background(), from, words[series]); err != nil {
			t.Fatal(err)
		}
	}
	return words
}

// TestMarksBesideDamage: what is read while the device does not give all of it, does not count as
// unchanged, neither for a mark before nor for the read's own, and a merge that leaves out damage
// is a change.
func TestMarksBesideDamage(t *testing.T) {
	clock, _, f, o := faultyDevice()
	s := mustOpen(t, o)
	defer func() { s.Crash() }()
	flushed := drivetest.FlushToMerge(t, s, passing(s, clock))
	h, err := s.Bucket("a")
	if err != nil {
		t.Fatal(err)
	}
	unchanged := func(m Mark) bool { return h.Since(m, epoch).Below >= epoch+1440 }
	before := h.Mark()
	if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440); n != 0 || !unchanged(before) {
		t.Fatalf("%d words are missing before; unchanged: %v", n, unchanged(before))
	}
	f.Set(filetest.BadStart(flushed))
	for range 2 { // the second time it is known
		m := h.Mark()
		if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440); n == 0 {
			t.Fatal("the device gives everything")
		}
		if unchanged(before) || unchanged(m) {
			t.Errorf("unchanged is what was read before: %v, and what was read around damage: %v",
				unchanged(before), unchanged(m))
		}
	}
	f.Clear()
	m := h.Mark()
	if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440); n != 0 || !unchanged(m) {
		t.Errorf("%d words are missing when it can be read again; unchanged: %v", n, unchanged(m))
	}
	x := mustSession(t, s, "a")
	x.Point(key(12345), uint64(s.Now().Unix()), point.FromInt(1))
	if _, err := x.Commit(); err != nil {
		t.Fatal(err)
	}
	if unchanged(m) {
		t.Error("a new series may be one of which the name was lost: all is said to be unchanged")
	}
	f.Set(filetest.BadStart(flushed))
	for range compaction.MaxUnread {
		if _, err := s.Merge(t.Context()); !errors.Is(err, syscall.EIO) {
			t.Fatalf("a merge of what cannot be read: %v", err)
		}
	}
	m = h.Mark()
	if _, err := s.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.Clear()
	if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440); n == 0 || unchanged(m) {
		t.Errorf("%d words are missing behind a merge without them; unchanged: %v", n, unchanged(m))
	}
}
