package store

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/store/snapshot"
	"dalmatiner/internal/testkit/filetest"
)

const (
	logHoleSeries = 4
	logHoleSlots  = 300
)

// logCommit is one write, which is one record of the log, as the test sent it.
type logCommit struct {
	bucket   int
	words    map[[2]int64]uint64 // by series and slot
	lo, hi   int64               // slots
	lsn, end int64               // of the record with its points
	segment  bool                // a flush of everything came behind it
	lost     bool
	aside    [][2]int64 // slots that a start has put into a segment, below a lost record
}

// logWorld is a store and what was sent to it, in order.
type logWorld struct {
	t     *testing.T
	r     *rand.Rand
	clock *testClock
	mem   *vfs.MemFS
	o     Options
	s     *Store
	sent  []logCommit
	next  uint64 // value
	said  bool   // nothing is known of some damage

	spared [][2]int64 // positions of records without points
}

func newLogWorld(t *testing.T, seed uint64) *logWorld {
	w := &logWorld{t: t, r: rand.New(rand.NewPCG(seed, 77)), clock: newTestClock(),
		mem: vfs.NewCrashableMem()}
	w.o = testOptions(w.mem, w.clock)
	w.o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	byHand(&w.o)
	w.clock.Advance(6 * time.Hour)
	w.s = mustOpen(t, w.o)
	return w
}

func logBucket(n int) string { return fmt.Sprintf("b%d", n) }

// put sends points of one shape: a row, slots of one series, or some anywhere.
func (w *logWorld) put() {
	w.t.Helper()
	c := logCommit{bucket: w.r.IntN(2), words: map[[2]int64]uint64{}}
	x := mustSession(w.t, w.s, logBucket(c.bucket))
	defer x.Close()
	from := w.s.disk.Log.End()
	one := func(series, slot int64) {
		w.next++
		c.words[[2]int64{series, slot}] = point.FromInt(int64(w.next))
		x.Point(key(int(series)), uint64(epoch+slot), point.FromInt(int64(w.next)))
	}
	slot, series := w.r.Int64N(logHoleSlots-20), w.r.Int64N(logHoleSeries)
	switch w.r.IntN(3) {
	case 0:
		for n := series; n < logHoleSeries; n++ {
			one(n, slot)
		}
	case 1:
		var data []byte
		for i := range 1 + w.r.Int64N(10) {
			w.next++
			c.words[[2]int64{series, slot + i}] = point.FromInt(int64(w.next))
			data = point.Append(data, point.FromInt(int64(w.next)))
		}
		x.Points(key(int(series)), uint64(epoch+slot), data)
	default:
		for range 1 + w.r.IntN(4) {
			one(w.r.Int64N(logHoleSeries), slot+w.r.Int64N(8))
		}
	}
	if _, err := x.Commit(); err != nil {
		w.t.Fatal(err)
	}
	c.lo, c.hi = logHoleSlots, -1
	for k := range c.words {
		c.lo, c.hi = min(c.lo, k[1]), max(c.hi, k[1])
	}
	c.lsn, c.end = int64(from), int64(w.s.disk.Log.End())
	w.sent = append(w.sent, c)
}

// pad brings so much into the log that the heads of all that is there are repeated.
func (w *logWorld) pad() {
	w.t.Helper()
	x := mustSession(w.t, w.s, "pad")
	defer x.Close()
	for from := w.s.disk.Log.End(); w.s.disk.Log.End() < from+20<<10; {
		var data []byte
		for range 250 {
			data = point.Append(data, w.r.Uint64()>>8|1<<62)
		}
		x.Points(key(0), epoch, data)
		if _, err := x.Commit(); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *logWorld) flush() {
	w.t.Helper()
	mustFlush(w.t, w.s)
	for i := range w.sent {
		w.sent[i].segment = w.sent[i].segment || !w.sent[i].lost
	}
}

// records returns the positions of records with points, by the commit that wrote them.
func (w *logWorld) records() map[int][][2]int64 {
	w.t.Helper()
	at := map[int][][2]int64{}
	s := mustOpen(w.t, w.o)
	defer s.Crash()
	err := s.disk.Log.ReplayAgain(1, func(lsn wal.LSN, rec []byte) error {
		if k := rec[0]; k != 5 && k != 6 && k != 9 {
			w.spared = append(w.spared, [2]int64{int64(lsn), int64(lsn) + int64(len(rec)) + 8})
			return nil
		}
		for i := range w.sent {
			if c := &w.sent[i]; c.lsn <= int64(lsn) && int64(lsn) < c.end {
				at[i] = append(at[i], [2]int64{int64(lsn), int64(lsn) + int64(len(rec)) + 13})
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for i, p := range at {
		if len(p) > 1 { // which of them has which slots is not known here
			w.spared = append(w.spared, p...)
			delete(at, i)
		}
	}
	return at
}

// crash ends the store as a kill does.
func (w *logWorld) crash() {
	w.t.Helper()
	if err := w.s.disk.Log.Sync(); err != nil {
		w.t.Fatal(err)
	}
	mem := whole(w.mem)
	w.s.Crash()
	w.mem, w.o.FS = mem, mem
}

// hurt damages some records that are in no segment yet, and says whose points are lost.
func (w *logWorld) hurt(file string, positions map[int][][2]int64) {
	w.t.Helper()
	var can []int
	for i := range w.sent {
		// twice the same bit would mend it
		if !w.sent[i].segment && !w.sent[i].lost && len(positions[i]) == 1 {
			can = append(can, i)
		}
	}
	if len(can) == 0 {
		return
	}
	data := slices.Clone(filetest.Read(w.t, w.mem, file))
	for range 1 + w.r.IntN(4) {
		i := can[w.r.IntN(len(can))]
		if w.sent[i].lost {
			continue
		}
		p := positions[i][0]
		from, past := 64+p[0]-1, 64+p[1]-1
		if w.r.IntN(4) > 0 {
			data[from+w.r.Int64N(past-from)] ^= 1 << w.r.IntN(8)
			w.sent[i].lost = true
			continue
		}
		past = from + 1 + w.r.Int64N(400)
		if slices.ContainsFunc(w.spared, func(p [2]int64) bool {
			return 64+p[0]-1 < past && from < 64+p[1]-1
		}) {
			continue // without its definition a series is not known
		}
		clear(data[from:min(past, int64(len(data)))])
		for j := range w.sent {
			for _, p := range positions[j] {
				if 64+p[0]-1 < past && from < 64+p[1]-1 {
					w.sent[j].lost = true
				}
			}
		}
	}
	// in place: a store may have it open
	f, err := w.mem.OpenReadWrite(file, vfs.WriteCategoryUnspecified)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := f.WriteAt(data, 0); err != nil {
		w.t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *logWorld) open() {
	w.t.Helper()
	w.s = mustOpen(w.t, w.o)
	w.said = w.said || unknownSaid(w.s)
}

// noteAside notes what a start that has found lost records puts into a segment before it goes
// on: whatever was written before in their slots. Damage to the log does not reach it there.
func (w *logWorld) noteAside() {
	for i := range w.sent {
		lost := &w.sent[i]
		if !lost.lost || lost.segment {
			continue
		}
		for j := range w.sent[:i] {
			if c := &w.sent[j]; c.bucket == lost.bucket && !c.lost {
				c.aside = append(c.aside, [2]int64{lost.lo, lost.hi})
			}
		}
	}
}

func (c *logCommit) isAside(slot int64) bool {
	return slices.ContainsFunc(c.aside, func(r [2]int64) bool { return r[0] <= slot && slot <= r[1] })
}

// truth is what the naive model knows of a slot: the commits in order.
func (w *logWorld) truth(bucket int, series, slot int64) (want, older uint64, hidden, mayBe bool) {
	defined := false
	for i := range w.sent {
		c := &w.sent[i]
		if c.bucket != bucket {
			continue
		}
		for k := range c.words {
			defined = defined || k[0] == series
		}
		word, wrote := c.words[[2]int64{series, slot}]
		if c.lost && !c.segment {
			if defined && c.lo <= slot && slot <= c.hi {
				if wrote && c.isAside(slot) {
					older = word
				}
				want, hidden, mayBe = 0, older != 0, true
			}
		} else if wrote {
			want, older, hidden, mayBe = word, word, false, false
		}
	}
	return want, older, hidden, mayBe
}

// merge merges what there is, once the windows are closed.
func (w *logWorld) merge(n int) {
	w.t.Helper()
	w.clock.Advance(6 * time.Hour)
	w.s.clock.Advance()
	for bucket := range 2 {
		x := mustSession(w.t, w.s, logBucket(bucket))
		x.Point(key(99), uint64(epoch+20_000*int64(n)), point.FromInt(1))
		if err := x.Close(); err != nil {
			w.t.Fatal(err)
		}
	}
	w.flush()
	if _, err := w.s.Merge(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// restored opens a snapshot of the store in place of it.
func (w *logWorld) restored() {
	w.t.Helper()
	if _, err := NewOperations(w.s).Snapshot(w.t.Context(), "one"); err != nil {
		w.t.Fatal(err)
	}
	for i := range w.sent {
		w.sent[i].segment = w.sent[i].segment || !w.sent[i].lost
	}
	w.s.Crash()
	w.o.Dir = "/other"
	if _, err := snapshot.Restore(w.t.Context(),
		snapshot.RestoreOptions{FS: w.mem, From: "/data/snapshots/one", To: w.o.Dir,
			AllowDamage: true}); err != nil {
		w.t.Fatal(err)
	}
	w.open()
}

// Damage to records of the log, whatever is flushed before and behind: no older value is
// shown as current, no slot is unknown that no damaged record named, what is written
// later is shown; through flushes, merges, restarts, snapshots.
func TestDamagedRecordsNeverShowOlderValues(t *testing.T) {
	t.Parallel()
	seeds, told, silent := uint64(60), 0, 0
	if testing.Short() {
		seeds = 12
	}
	for seed := range seeds {
		w := newLogWorld(t, seed)
		w.round(&told, &silent)
		w.s.Crash()
	}
	if told == 0 || silent > int(seeds)/3 {
		t.Errorf("%d slots were unknown; of %d seeds damage said nothing in %d", told, seeds, silent)
	}
}

// logFile is the only file of the log.
func (w *logWorld) logFile() string {
	w.t.Helper()
	names, err := w.mem.List("/data/wal")
	if err != nil {
		w.t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "LAST" })
	if len(names) != 1 {
		w.t.Fatalf("files of the log: %v", names)
	}
	return "/data/wal/" + names[0]
}

// some sends so many commits.
func (w *logWorld) some(n int) {
	w.t.Helper()
	for range n {
		w.put()
	}
}

func (w *logWorld) round(told, silent *int) {
	w.t.Helper()
	w.some(w.r.IntN(60))
	if w.r.IntN(4) > 0 {
		w.flush()
	}
	w.some(1 + w.r.IntN(60))
	if w.r.IntN(4) > 0 {
		w.pad()
	}
	w.crash()
	positions := w.records()
	w.hurt(w.logFile(), positions)
	w.open()
	if w.said { // what was lost is not known: the stated exception
		*silent++
		return
	}
	*told += w.check("opened")
	w.checkOlder("opened")
	if w.r.IntN(2) == 0 {
		w.crash()
		w.open()
		w.check("opened at once again")
	}
	if w.said = w.said || unknownSaid(w.s); w.said {
		return
	}
	w.some(w.r.IntN(30))
	w.check("written again")
	if w.r.IntN(2) == 0 {
		w.crash()
		w.open()
		w.check("written and opened again")
	}
	w.flush()
	w.check("flushed")
	w.checkOlder("flushed")
	w.merge(1)
	w.check("merged")
	w.crash()
	w.open()
	w.check("merged and opened")
	w.restored()
	w.check("restored")
	w.some(w.r.IntN(30))
	w.check("written once more")
	w.merge(2)
	w.check("merged once more")
}
