package store

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/write"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/logrecord"
)

// pressedStore opens a store with a limit whose use the test adds to.
type pressedStore struct {
	*Store
	clock *testClock
}

const testLimit = 64 << 20

func openPressed(t *testing.T, change func(*Options)) *pressedStore {
	t.Helper()
	clock := newTestClock()
	p := &pressedStore{clock: clock}
	o := testOptions(vfs.NewMem(), clock)
	o.Memory = memory.New(testLimit, clock.Now, nil)
	if change != nil {
		change(&o)
	}
	p.Store = mustOpen(t, o)
	t.Cleanup(p.Crash)
	return p
}

// A flood of new series: it is refused at a point, counted to the last one, and
// the series that were known are served all the time. When it is over, new
// series are taken again without help.
func TestAFloodOfSeriesLeavesRoomForKnownOnes(t *testing.T) {
	// Not beside other tests: a merge that gets no processor holds its memory at the last look.
	s := openPressed(t, nil)
	known, flood := mustSession(t, s.Store, "known"), mustSession(t, s.Store, "flood")
	const series = 600
	slot, most := uint64(epoch), int64(0)
	serve := func() {
		s.o.Memory.Look() // the one before may be long ago where other processes compute
		most = max(most, s.o.Memory.UsedBytes())
		for i := range series {
			known.Point(key(i), slot, point.FromInt(int64(i)))
		}
		slot++
		if _, err := known.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	serve()
	sent := 0
	for ; sent < 300_000; sent++ {
		flood.Point(key(sent), slot, point.FromInt(1))
		if sent%10_000 == 0 {
			serve()
		}
	}
	if _, err := flood.Commit(); err != nil {
		t.Fatal(err)
	}
	serve()
	c, k := s.total(t, "flood"), s.total(t, "known")
	if c.ReceivedPoints() != uint64(sent) || c.Refused[account.Memory] == 0 ||
		c.Refused[account.Memory] != c.RefusedTotal() || c.StoredPoints() < 10_000 {
		t.Errorf("of %d points of new series the account has %+v", sent, c)
	}
	if k.RefusedTotal() != 0 || k.StoredPoints() != (slot-epoch)*series {
		t.Errorf("known series in %d rounds: %+v", slot-epoch, k)
	}
	t.Logf("%d series stored, at most %d bytes in use", c.StoredPoints(), most)
	if most > testLimit {
		for _, p := range s.o.Memory.Pools() {
			t.Log(p.Name, p.Use)
		}
		t.Errorf("%d bytes in use, the limit is %d", most, testLimit)
	}
	// What the flood left is idle now.
	drivetest.Eventually(t, "new series are taken again", func() bool {
		s.clock.Advance(10 * time.Millisecond)
		return !s.columns.Names().IsFull()
	})
	flood.Point(key(sent), slot, point.FromInt(1))
	if err := flood.Close(); err != nil {
		t.Fatal(err)
	}
	if after := s.total(t, "flood"); after.StoredPoints() != c.StoredPoints()+1 {
		t.Errorf("one more series after the flood: %+v", after)
	}
	if err := known.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range series {
		for j, w := range readAll(t, s.Store, "known", i, epoch, int(slot-epoch)) {
			if w != point.FromInt(int64(i)) {
				t.Fatalf("series %d, slot %d holds %x", i, j, w)
			}
		}
	}
}

// At the end of the memory all blocks are closed, and those that a flood of new series leaves hold
// little beside what a flush takes to write them. That is counted while they are open: counted
// behind the sealing it went beyond the limit at once.
func TestOpenBlocksCountWhatTheirFlushTakes(t *testing.T) {
	t.Parallel()
	s := openPressed(t, byHand)
	x := mustSession(t, s.Store, "flood")
	i := 0
	for ; x.Totals().Refused == 0 && i < 1_000_000; i++ {
		x.Point(key(i), epoch, point.FromInt(1))
		if i%10_000 == 0 {
			if _, err := x.Commit(); err != nil {
				t.Fatal(err)
			}
			// it names the series, and their points stay in blocks
			if err := s.flusher.Sealed(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := x.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := s.flusher.Sealed(); err != nil {
		t.Fatal(err)
	}
	s.flusher.Gate().Lock() // no flush takes what is sealed
	defer s.flusher.Gate().Unlock()
	s.flusher.Count()
	open, blocks := s.flusher.Need(), s.arenas.InUse()
	s.upkeep.Relieve(memory.Hold)
	drivetest.Eventually(t, "all blocks are sealed", func() bool { return s.arenas.InUse() == 0 })
	s.flusher.Count()
	s.o.Memory.Look()
	t.Logf("%d series: blocks of %d bytes, a flush needs %d; sealed %d, it needs %d; %d in use", i,
		blocks, open, s.pressure.SealedBytes(), s.flusher.Need(), s.o.Memory.UsedBytes())
	if sealed := s.flusher.Need(); sealed > open || sealed < blocks {
		t.Errorf("a flush needs %d bytes for %d series behind the sealing, and was to need %d", sealed, i,
			open)
	}
	if used := s.o.Memory.UsedBytes(); used > testLimit || i < 50_000 {
		t.Errorf("%d bytes in use with %d series, the limit is %d", used, i, testLimit)
	}
}

func (s *pressedStore) total(t *testing.T, bucket string) account.Counts {
	t.Helper()
	info, err := s.BucketByName(bucket)
	if err != nil {
		t.Fatal(err)
	}
	return s.Account().Total(info.ID)
}

// At the end of the memory a sender waits and a non-blocking one is refused; both go
// on when it is given back.
func TestSendersAreHeldAtTheEndOfTheMemory(t *testing.T) {
	s := openPressed(t, nil)
	// First: at the end of the memory no bucket is made.
	nonBlocking, patient := drivetest.SessionWith(t, s.Store, "b", write.Options{NeverWait: true}),
		mustSession(t, s.Store, "b")
	extra := make(chan int64, 1)
	extra <- testLimit
	s.o.Memory.Add(memory.Pool{Name: "test", Use: func() int64 { n := <-extra; extra <- n; return n }})
	// Points that nothing can free yet: the store is young and idle.
	s.pressure.AddSealed(testLimit / 8)
	drivetest.Eventually(t, "the level is Hold", func() bool {
		return s.o.Memory.Look() == memory.Hold
	})
	s.defineSeries(t, "b", 2)
	nonBlocking.Point(key(0), epoch, point.FromInt(1))
	if err := nonBlocking.Close(); err != nil {
		t.Fatal(err)
	}
	if c := s.total(t, "b"); c.Refused[account.Overload] != 1 || c.ReceivedPoints() != 1 {
		t.Errorf("the point that cannot wait: %+v", c)
	}
	done := make(chan error, 1)
	go func() {
		patient.Point(key(1), epoch, point.FromInt(1))
		done <- patient.Close()
	}()
	drivetest.Eventually(t, "the sender is held", func() bool { return s.Stats().Senders.Held == 1 })
	<-extra
	extra <- 0
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if c := s.total(t, "b"); c.Accepted != 1 {
		t.Errorf("the point that waited: %+v", c)
	}
	s.pressure.AddSealed(-testLimit / 8)
}

// defineSeries enters series as a replay does, whatever the level.
func (s *pressedStore) defineSeries(t *testing.T, bucket string, n int) {
	t.Helper()
	b := s.buckets.Get(bucket)
	owners := s.columns.NewOwnership(0, &s.damage)
	group := s.columns.Groups.Next()
	for i := range n {
		owners.Define(b, &logrecord.Record{Bucket: b.ID, Group: group, Column: i, Key: key(i)}, 0, 0,
			false)
	}
}

// Names that fill their share keep new series out, and nobody waits for them.
func TestNamesHaveAShare(t *testing.T) {
	s := openPressed(t, nil)
	x := mustSession(t, s.Store, "b")
	x.Point(key(0), epoch, point.FromInt(1))
	s.columns.Names().Add(testLimit / namesPart)
	x.Point(key(1), epoch, point.FromInt(1))
	x.Point(key(0), epoch+1, point.FromInt(1))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if c := s.total(t, "b"); c.Accepted != 2 || c.Refused[account.Memory] != 1 {
		t.Errorf("%+v", c)
	}
}

// Under pressure the loaded indexes go, and the blocks of segments that were kept, blocks close
// early, and a merge yields; it is done when the pressure is gone, and it ends when it is told to.
func TestRelief(t *testing.T) {
	// The merge that a flush asks for would load indexes again.
	s := openPressed(t, func(o *Options) { o.BackgroundMerge = false })
	x := mustSession(t, s.Store, "b")
	for slot := range uint64(20) { // of 60: enough for rows
		for i := range 2 * head.Width {
			x.Point(key(i), epoch+slot, point.FromInt(1))
		}
	}
	if _, err := x.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		readAll(t, s.Store, "b", 0, epoch, 1)
	}
	if s.upkeep.WatchIndexes(); s.upkeep.IndexBytes() == 0 || s.files.CachedBytes() == 0 {
		t.Fatalf("%d bytes of the index are loaded, %d of blocks kept", s.upkeep.IndexBytes(),
			s.files.CachedBytes())
	}
	x.Point(key(0), epoch+20, point.FromInt(2))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	s.upkeep.Relieve(memory.Urgent)
	if rows, _, _ := s.arenas.Bytes(); rows == 0 {
		t.Error("a block that was just written is closed")
	}
	if n := s.Stats().Segments.IndexBytes; n != 0 {
		t.Errorf("%d bytes of the index stay", n)
	}
	if n := s.Stats().Segments.Files.Kept; n != 0 {
		t.Errorf("%d bytes of blocks of segments stay", n)
	}
	s.clock.Advance(10 * time.Second)
	s.Store.clock.Advance()
	s.upkeep.Relieve(memory.Urgent)
	drivetest.Eventually(t, "the idle block is encoded and its memory is given back", func() bool {
		s.upkeep.Relieve(memory.Urgent)
		rows, tables, warm := s.arenas.Bytes()
		return rows+tables+warm == 0
	})
	var held atomic.Bool
	held.Store(true)
	waited := make(chan error, 1)
	go func() { waited <- s.pressure.Hold(t.Context(), held.Load, false) }()
	drivetest.Eventually(t, "a sender waits", func() bool { return s.pressure.WaitingSenders() == 1 })
	if !s.upkeep.Yields(false) {
		t.Error("a merge does not yield to a sender that waits")
	}
	held.Store(false)
	s.pressure.MakeRoom()
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	if s.upkeep.Yields(false) || !s.upkeep.Yields(true) {
		t.Error("a merge yields to nobody, or not where others compute all the time")
	}
	if got := readAll(t, s.Store, "b", 0, epoch, 21); got[0] != point.FromInt(1) ||
		got[20] != point.FromInt(2) {
		t.Errorf("series 0 holds %x", got)
	}
}

// What a flush is to take is gone with the series: deleted before they were
// named, they would otherwise count for ever and end in refusals.
func TestDeletedSeriesNeedNoFlush(t *testing.T) {
	s := mustOpen(t, testOptions(vfs.NewMem(), newTestClock()))
	defer func() { s.Crash() }()
	for range 3 {
		x := mustSession(t, s, "a")
		for i := range 600 {
			x.Point(key(i), epoch, 1<<56|7)
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.DeleteSeries(t.Context(), "a", deletion.Choice{Prefix: true}, false); err != nil {
			t.Fatal(err)
		}
	}
	mustFlush(t, s)
	if n := s.flusher.Need(); n != 0 {
		t.Errorf("the next flush is said to take %d bytes, and there is nothing", n)
	}
}
