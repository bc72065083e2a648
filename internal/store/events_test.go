package store

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/store/snapshot"
	"dalmatiner/internal/testkit/filetest"
)

// eventHistory is what a test has sent, and what of it must outlive a crash.
type eventHistory struct {
	sent  []events.Event
	acked int
}

func (h *eventHistory) send(t testing.TB, s *Store, r *rand.Rand, clock *testClock, ack bool) {
	t.Helper()
	var list []events.Event
	for range 1 + r.IntN(40) {
		e := events.Event{Time: clock.Now().UnixNano() - r.Int64N(1e9),
			Body: fmt.Appendf(nil, "event %d %x", len(h.sent)+len(list), r.Uint64())}
		if r.IntN(2) == 0 {
			for i := range e.ID {
				e.ID[i] = byte(r.Uint32())
			}
		}
		list = append(list, e)
	}
	repeats := uint64(0)
	fresh := len(list)
	for _, e := range h.sent[:min(len(h.sent), 5)] { // with ids: those that were given, too
		list = append(list, e)
		repeats++
	}
	w, err := s.Events().Write("e", list)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Counts; got.StoredPoints() != uint64(len(list)) || got.Duplicate != repeats {
		t.Fatalf("counts %+v of %d events with %d repeats", got, len(list), repeats)
	}
	h.sent = append(h.sent, list[:fresh]...)
	if ack {
		if err := s.Intake().WaitDurable(context.Background(), w.Token); err != nil {
			t.Fatal(err)
		}
		h.acked = len(h.sent)
	}
}

func readEvents(t testing.TB, s *Store, bucket string) (list []events.Event, gaps []events.Gap) {
	t.Helper()
	gaps, err := s.Events().Read(context.Background(), bucket, 0, math.MaxInt64,
		func(e *events.Event) error {
			list = append(list, events.Event{Time: e.Time, ID: e.ID, Body: bytes.Clone(e.Body)})
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return list, gaps
}

func sameEvent(a, b events.Event) bool {
	return eventfile.Compare(&a, &b) == 0 && bytes.Equal(a.Body, b.Body)
}

// check compares what is stored with what was sent, and both with the account (I1, I2, I3). A crash
// leaves a prefix, which is all that was sent from then on.
func (h *eventHistory) check(t testing.TB, s *Store) {
	t.Helper()
	got, gaps := readEvents(t, s, "e")
	if len(gaps) > 0 {
		t.Fatalf("gaps %v", gaps)
	}
	if len(got) < h.acked || len(got) > len(h.sent) {
		t.Fatalf("%d events are stored of %d that were sent, %d acknowledged", len(got), len(h.sent),
			h.acked)
	}
	want := slices.Clone(h.sent[:len(got)])
	slices.SortFunc(want, func(a, b events.Event) int { return eventfile.Compare(&a, &b) })
	if !slices.EqualFunc(got, want, sameEvent) {
		t.Fatal("what is stored is no prefix of what was sent")
	}
	info, err := s.BucketByName("e")
	if err != nil {
		t.Fatal(err)
	}
	c := s.Events().Account().Total(info.ID)
	if c.Accepted+c.Late != uint64(len(got)) {
		t.Fatalf("the account says %+v, %d events are stored", c, len(got))
	}
	counts, _, err := s.Events().Count(context.Background(), "e", 1, math.MaxInt64, math.MaxInt64)
	if err != nil || counts[0] != int64(len(got)) {
		t.Fatalf("%d events are counted, %d are stored: %v", counts, len(got), err)
	}
	h.sent, h.acked = h.sent[:len(got)], len(got)
}

func eventBucket(t testing.TB, s *Store) {
	t.Helper()
	if _, err := s.CreateBucket(buckets.Info{Name: "e", Resolution: 1000, PPF: 3600,
		Grace: int64(time.Second)}); err != nil {
		t.Fatal(err)
	}
}

// eventStore opens a store of a clock that stands, with the bucket e, and returns what to open it
// again with. It flushes and merges by hand. change, unless it is nil, changes the options before.
func eventStore(t testing.TB, fs vfs.FS, change func(*Options)) (*testClock, Options, *Store) {
	t.Helper()
	clock := newTestClock()
	o := testOptions(fs, clock)
	byHand(&o)
	if change != nil {
		change(&o)
	}
	s := mustOpen(t, o)
	eventBucket(t, s)
	return clock, o, s
}

func TestEventsOutliveACrashAfterEveryStep(t *testing.T) {
	t.Parallel()
	for step := flush.StepLogSynced; step <= flush.StepSidesSynced; step++ {
		for _, points := range []bool{false, true} {
			r := rand.New(rand.NewPCG(uint64(step), 8))
			fs := vfs.NewCrashableMem()
			var clone *vfs.MemFS
			armed := false
			clock, o, s := eventStore(t, fs, func(o *Options) {
				o.WALSync = wal.Always
				o.flushStep = func(n int) {
					if armed && n == step && clone == nil {
						clone = fs.CrashClone(vfs.CrashCloneCfg{})
					}
				}
			})
			var h eventHistory
			var hp history
			for i := range 5 {
				h.send(t, s, r, clock, true)
				if points {
					sendSome(t, s, &hp, r, clock)
				}
				if i < 4 {
					mustFlush(t, s)
				}
			}
			armed = true
			mustFlush(t, s)
			if err := s.Events().Merger.Merge(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.Crash()
			if clone == nil {
				if step == flush.StepSegmentSynced && !points {
					continue // there is no segment without points
				}
				t.Fatalf("step %d was not reached", step)
			}
			o.FS, armed = clone, false
			s = mustOpen(t, o)
			h.check(t, s)
			h.send(t, s, r, clock, true) // and the store goes on from there
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = mustOpen(t, o)
			h.check(t, s)
			checkClean(t, s)
			s.Crash()
		}
	}
}

func checkClean(t testing.TB, s *Store) {
	t.Helper()
	r, err := NewOperations(s).Check(context.Background(), fsck.Options{})
	if err != nil || r.Damaged > 0 {
		t.Fatalf("%v, %v", r.Damages, err)
	}
	if names, n := s.Damage(); n > 0 {
		t.Fatal(names)
	}
}

// Crashes at any time, with any part of what was not synced, leave a prefix of what was sent with
// all that was acknowledged.
func TestEventsAnyCrashLeavesAPrefix(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 9))
		fs := vfs.NewCrashableMem()
		clock, o, s := eventStore(t, fs, func(o *Options) { o.WALInterval = time.Millisecond })
		var h eventHistory
		for range 30 {
			switch r.IntN(8) {
			case 0:
				mustFlush(t, s)
				h.acked = len(h.sent)
			case 1:
				if err := s.Events().Merger.Merge(t.Context()); err != nil {
					t.Fatal(err)
				}
			case 2:
				clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101),
					RNG: rand.New(rand.NewPCG(seed, r.Uint64()))})
				s.Crash()
				fs = clone
				o.FS = fs
				s = mustOpen(t, o)
				h.check(t, s)
			default:
				h.send(t, s, r, clock, r.IntN(3) == 0)
			}
			clock.Advance(time.Duration(r.Int64N(2e9)))
			s.clock.Advance()
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, o)
		h.acked = len(h.sent)
		h.check(t, s)
		checkClean(t, s)
		s.Crash()
	}
}

// eventFiles returns the files of events of a directory.
func eventFiles(t testing.TB, s *Store) (paths []string) {
	t.Helper()
	names, err := s.o.FS.List(s.path("events"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		paths = append(paths, s.path("events", name))
	}
	return paths
}

func TestAFlippedBitInEventsIsNamed(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	clock, o, s := eventStore(t, fs, nil)
	var h eventHistory
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		h.send(t, s, r, clock, false)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := eventFiles(t, s)[0]
	whole := filetest.Read(t, fs, path)
	step := 1 + len(whole)/40
	for at := 0; at < len(whole); at += step {
		if at > len(whole)*3/4 { // the copies of index and tail lie at the end
			step = 1 + len(whole)/400
		}
		data := slices.Clone(whole)
		data[at] ^= 0x10
		filetest.Write(t, fs, path, data)
		s = mustOpen(t, o)
		got, gaps := readEvents(t, s, "e")
		missing := int64(0)
		for _, g := range gaps {
			missing += g.Events
		}
		names, _ := s.Damage()
		if len(got)+int(missing) != len(h.sent) || !strings.Contains(fmt.Sprint(names), "events/") {
			t.Fatalf("byte %d: %d events, gaps %v of %d; damage %q", at, len(got), gaps, len(h.sent), names)
		}
		report, err := NewOperations(s).Check(context.Background(), fsck.Options{})
		if err != nil || report.Damaged == 0 {
			t.Fatalf("byte %d: the check finds %+v, %v", at, report, err)
		}
		s.Crash()
	}
}

// A file that is gone is a gap, which the next flush notes: it is one after another start, too.
func TestAMissingFileOfEventsStaysAGap(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	clock, o, s := eventStore(t, fs, nil)
	var h eventHistory
	r := rand.New(rand.NewPCG(1, 2))
	h.send(t, s, r, clock, false)
	mustFlush(t, s)
	lost := len(h.sent)
	if err := fs.Remove(eventFiles(t, s)[0]); err != nil {
		t.Fatal(err)
	}
	s.Crash()
	for range 3 {
		s = mustOpen(t, o)
		got, gaps := readEvents(t, s, "e")
		if len(gaps) != 1 || gaps[0].Events != int64(lost) || len(got) != 0 {
			t.Fatalf("%d events, gaps %v", len(got), gaps)
		}
		if l := s.Events().Account().Losses(); len(l) != 1 || l[0].Cause != events.LostFile ||
			l[0].Points != uint64(lost) {
			t.Fatalf("%+v", l)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLostLogRecordsOfEventsAreGaps(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	clock, o, s := eventStore(t, fs, nil)
	body := bytes.Repeat([]byte("event"), 400)
	const batches = 30
	for i := range batches {
		if _, err := s.Events().Write("e",
			[]events.Event{{Time: clock.Now().UnixNano() + int64(i), Body: body}}); err != nil {
			t.Fatal(err)
		}
		if err := s.disk.Log.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	s.Crash()
	names, err := fs.List(s.path(datadir.WAL))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	path := s.path(datadir.WAL, names[0])
	data := filetest.Read(t, fs, path)
	at := bytes.Index(data[len(data)/8:], body[:50])
	if at < 0 {
		t.Fatal("no event is in the log")
	}
	at += len(data) / 8
	if last := bytes.LastIndex(data, body[:50]); at > last/2 {
		at = bytes.Index(data, body[:50]) + 3*len(body) // in front of the repeated heads
	}
	data[at] ^= 1
	filetest.Write(t, fs, path, data)
	for range 2 {
		s = mustOpen(t, o)
		got, gaps := readEvents(t, s, "e")
		if len(got) != batches-1 || len(gaps) != 1 || gaps[0].Events != 1 {
			t.Fatalf("%d events, gaps %v", len(got), gaps)
		}
		info, _ := s.BucketByName("e")
		c, l := s.Events().Account().Total(info.ID), s.Events().Account().Losses()
		if c.StoredPoints() != batches || len(l) != 1 || l[0].Points != 1 ||
			l[0].Cause != events.LostRecord {
			t.Fatalf("%+v %+v", c, l)
		}
		if err := s.Close(); err != nil { // the flush takes the gap
			t.Fatal(err)
		}
	}
}

func TestASnapshotHasTheEvents(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	clock, o, s := eventStore(t, fs, nil)
	var h eventHistory
	r := rand.New(rand.NewPCG(1, 4))
	h.send(t, s, r, clock, false)
	mustFlush(t, s)
	h.send(t, s, r, clock, false)
	if _, err := NewOperations(s).Snapshot(context.Background(), "one"); err != nil {
		t.Fatal(err)
	}
	sent := len(h.sent)
	h.send(t, s, r, clock, false)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := fs.MkdirAll("/restored", 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := snapshot.Restore(context.Background(),
		snapshot.RestoreOptions{FS: fs, From: s.path(datadir.Snapshots, "one"),
			To: "/restored"}); err != nil {
		t.Fatal(err)
	}
	o.Dir = "/restored"
	s = mustOpen(t, o)
	h.sent, h.acked = h.sent[:sent], sent
	h.check(t, s)
	checkClean(t, s)
	s.Crash()
}

func TestEventsOfADeletedBucketStayAway(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	clock, o, s := eventStore(t, fs, nil)
	var h eventHistory
	r := rand.New(rand.NewPCG(1, 5))
	h.send(t, s, r, clock, false)
	mustFlush(t, s)
	h.send(t, s, r, clock, false)
	info, _ := s.BucketByName("e")
	before := s.Events().Account().Total(info.ID)
	if err := s.DeleteBucket("e"); err != nil {
		t.Fatal(err)
	}
	eventBucket(t, s)
	s.Crash()
	s = mustOpen(t, o)
	if got, gaps := readEvents(t, s, "e"); len(got) > 0 || len(gaps) > 0 {
		t.Fatalf("%d events of the deleted bucket, gaps %v", len(got), gaps)
	}
	if got := s.Events().Account().Total(account.DeletedBuckets); got != before {
		t.Fatalf("account %+v, want %+v", got, before)
	}
	if err := s.Events().Merger.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if files := eventFiles(t, s); len(files) > 0 {
		t.Fatalf("%q are left", files)
	}
	s.Crash()
}
