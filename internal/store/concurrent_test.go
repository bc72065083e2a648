package store

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/write/intake"
)

// beside runs senders and readers while it flushes in turns with and without
// sealing everything. Every point is sent once and holds its index; the senders
// have their own series.
type beside struct {
	senders, series, slots int
	crowd                  int // groups that make a flush slower to begin
	first                  int64
	sent                   []atomic.Int64 // by sender: slots whose points are all received
	flushes                atomic.Int64
	done                   chan struct{}
}

func (b *beside) send(t *testing.T, x *intake.Session, sender int) {
	for i := range b.slots {
		for k := range b.series {
			x.Point(key(sender*b.series+k), uint64(b.first+int64(i)), point.FromInt(int64(i)))
		}
		if _, err := x.Commit(); err != nil {
			t.Error(err)
		}
		b.sent[sender].Store(int64(i + 1))
		for int64(i) > 600*b.flushes.Load() && !b.over() {
			runtime.Gosched() // keeps pace with the flushes
		}
		if b.over() {
			return
		}
	}
}

func (b *beside) over() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// read looks at the newest points of a sender.
func (b *beside) read(t *testing.T, s *Store, sender int) {
	for {
		n := b.sent[sender].Load()
		from := max(n-200, 0)
		for i, w := range readAll(t, s, "b", sender*b.series, b.first+from, int(n-from)) {
			if w != point.FromInt(from+int64(i)) {
				t.Errorf("slot %d of %d holds %x beside a flush", from+int64(i), n, w)
				return
			}
		}
		if b.over() {
			return
		}
	}
}

func (b *beside) run(t *testing.T, s *Store, flushes int) {
	b.sent = make([]atomic.Int64, b.senders)
	var all sync.WaitGroup
	for sender := range b.senders {
		x := mustSession(t, s, "b")
		all.Go(func() {
			b.send(t, x, sender)
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() { b.read(t, s, sender) })
	}
	for i := range b.crowd {
		x := mustSession(t, s, "b")
		x.Point(key(b.senders*b.series+i), uint64(b.first), point.FromInt(0))
		if _, err := x.Commit(); err != nil {
			t.Error(err)
		}
		defer func() { _ = x.Close() }() // it has committed
	}
	for i := range flushes {
		b.flushes.Store(int64(i + 1))
		for sender := range b.sent {
			for b.sent[sender].Load() < 100*int64(i) && !t.Failed() {
				runtime.Gosched()
			}
		}
		var err error
		if i%2 == 0 {
			_, err = s.Flush(context.Background())
		} else {
			err = s.flusher.Sealed()
		}
		if err != nil {
			t.Error(err)
		}
	}
	close(b.done)
	all.Wait()
}

// Senders, readers and flushes at once: a reader never misses what was there
// before, and after a crash behind any commit the account counts exactly the
// points that are stored (I1, I3).
func TestFlushesBesideSendersAndReaders(t *testing.T) {
	fs := vfs.NewCrashableMem()
	o := testOptions(fs, newTestClock())
	o.WALMaxSize = 16 << 10 // small files: what is trimmed is gone
	o.MaxOpenFiles = 2
	var clones []*vfs.MemFS
	n := 0
	o.flushStep = func(step int) {
		if step == flush.StepMerged {
			return // that is the merger's, beside the flushes
		}
		if n++; step == flush.StepLogTrimmed && n%3 == 0 {
			clones = append(clones, fs.CrashClone(vfs.CrashCloneCfg{}))
		}
	}
	s := mustOpen(t, o)
	if _, err := s.EnsureBucket("b"); err != nil {
		t.Fatal(err)
	}
	b := beside{senders: 3, series: 2, slots: 25000, crowd: 20, first: epoch - 25000,
		done: make(chan struct{})}
	b.run(t, s, 40)
	if _, err := s.Flush(context.Background()); err != nil {
		t.Error(err)
	}
	if size := s.disk.Log.Size(); size > o.WALMaxSize {
		t.Errorf("the log has %d bytes after a flush of everything, the limit is %d", size, o.WALMaxSize)
	}
	s.Crash()
	o.flushStep = func(int) {}
	for i, clone := range clones {
		o.FS = clone
		s = mustOpen(t, o)
		stored := uint64(0)
		for k := range b.senders*b.series + b.crowd {
			for _, w := range readAll(t, s, "b", k, b.first, b.slots) {
				if w != 0 {
					stored++
				}
			}
		}
		info, _ := s.BucketByName("b")
		if c := s.Account().Total(info.ID); c.StoredPoints() != stored || c.ReceivedPoints() != stored {
			t.Errorf("crash %d: %d points are stored, the account is %+v", i, stored, c)
		}
		if names, n := s.Damage(); n != 0 {
			t.Errorf("crash %d: damage %v", i, names)
		}
		s.Crash()
	}
}

// A point that comes between the capture of its group and that of the account
// is in the account of the flush and not in its segment: the log keeps it.
func TestAPointInTheMiddleOfACapture(t *testing.T) {
	fs := vfs.NewCrashableMem()
	clock := newTestClock()
	o := testOptions(fs, clock)
	o.WALMaxSize = 16 << 10
	var h history
	var x *intake.Session
	var clone *vfs.MemFS
	send := func(slot int64, words ...uint64) {
		w := call{Series: 1, Slot: slot, Words: words}
		w.Send(x)
		h.add(w)
		if _, err := x.Commit(); err != nil {
			t.Error(err)
		}
	}
	// The size of the log asks for flushes, too. Of those that run until the test's own has
	// ended the first one does what is asked for, and no other.
	var asked atomic.Bool
	mine := false
	o.flushStep = func(step int) {
		if step == flush.StepCaptured {
			mine = asked.CompareAndSwap(true, false)
		}
		if !mine {
			return
		}
		switch step {
		case flush.StepCaptured:
			for i := range int64(200) { // more than a file of the log
				send(epoch-200+i, point.FromInt(100+i))
			}
			send(epoch-900, point.FromInt(7)) // late
		case flush.StepLogTrimmed:
			clone = fs.CrashClone(vfs.CrashCloneCfg{})
		}
	}
	s := mustOpen(t, o)
	x = mustSession(t, s, "b")
	send(epoch-300, point.FromInt(1), point.FromInt(2))
	for range 3 {
		asked.Store(true)
		if _, err := s.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		h.check(t, s, "b", len(h.writes))
		crashed := o
		crashed.FS, crashed.flushStep = clone, func(int) {}
		after := mustOpen(t, crashed)
		h.check(t, after, "b", len(h.writes))
		after.Crash()
	}
	s.Crash()
}

// A session that outlives its bucket is refused, and the memory comes back.
func TestASessionOutlivesItsBucket(t *testing.T) {
	s := mustOpen(t, testOptions(vfs.NewMem(), newTestClock()))
	defer s.Crash()
	x := mustSession(t, s, "b")
	x.Point(key(1), epoch, point.FromInt(1))
	if _, err := x.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteBucket("b"); err != nil {
		t.Fatal(err)
	}
	x.Point(key(1), epoch+1, point.FromInt(1)) // a known series
	x.Point(key(2), epoch+1, point.FromInt(1)) // a new one
	x.Points(key(3), epoch, point.Append(point.Append(nil, point.FromInt(1)), point.FromInt(2)))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	c := s.Account().Total(account.DeletedBuckets)
	if c.Accepted != 1 || c.Refused[account.BucketDeleted] != 4 || len(s.Account().Totals()) != 1 {
		t.Errorf("the account is %+v, %+v", c, s.Account().Totals())
	}
	if st := s.Stats(); st.Head.Bytes != 0 || st.Head.Sealed != 0 || st.Series != 0 {
		t.Errorf("the bucket left %d bytes in the head", st.Head.Bytes)
	}
}

// A deletion that a failed flush was to make permanent is with the next one.
func TestADeletionSurvivesAFailedFlush(t *testing.T) {
	mem := vfs.NewMem()
	f := newFaults(mem)
	o := testOptions(f.FS, newTestClock())
	s := mustOpen(t, o)
	for _, bucket := range []string{"b", "other"} {
		x := mustSession(t, s, bucket)
		x.Point(key(1), epoch, point.FromInt(1))
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	flush := func() error { _, err := s.Flush(context.Background()); return err }
	if err := flush(); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteBucket("b"); err != nil {
		t.Fatal(err)
	}
	x := mustSession(t, s, "other")
	x.Point(key(1), epoch+1, point.FromInt(1))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	f.Fail("/flush", errorfs.OpCreate)
	if flush() == nil {
		t.Fatal("the flush did not fail")
	}
	f.Clear()
	if err := flush(); err != nil {
		t.Fatal(err)
	}
	s.Crash()
	s = mustOpen(t, o)
	defer s.Crash()
	if got := s.Buckets(); len(got) != 1 || got[0].Name != "other" {
		t.Errorf("buckets %+v", got)
	}
}
