package store

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/store/replay"
	"dalmatiner/internal/testkit/filetest"
	"dalmatiner/internal/write/intake"
)

// logEnd is a store with a flushed day of three series, and what was sent to it since. What it
// knows is in last: for each series and slot the value that was sent last.
type logEnd struct {
	t     *testing.T
	o     Options
	s     *Store
	clock *testClock
	next  int64
	last  map[[2]int64]uint64
}

const (
	logEndSlots = 24 * 3600 // of the day
	logEndNow   = epoch + logEndSlots
)

func newLogEnd(t *testing.T) *logEnd {
	w := &logEnd{t: t, clock: newTestClock(), last: map[[2]int64]uint64{}}
	w.o = testOptions(vfs.NewCrashableMem(), w.clock)
	w.o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	byHand(&w.o)
	w.clock.Advance(logEndSlots * time.Second)
	w.s = mustOpen(t, w.o)
	for series := range int64(3) {
		w.column(series, epoch, logEndSlots)
	}
	w.commit()
	mustFlush(t, w.s)
	return w
}

// column sends n slots of a series.
func (w *logEnd) column(series, from, n int64) {
	w.t.Helper()
	x := mustSession(w.t, w.s, "a")
	defer x.Close()
	for ; n > 0; n -= 200 {
		var data []byte
		for slot := from; slot < from+min(n, 200); slot++ {
			w.next++
			w.last[[2]int64{series, slot}] = point.FromInt(w.next)
			data = point.Append(data, point.FromInt(w.next))
		}
		x.Points(key(int(series)), uint64(from), data)
		from += 200
	}
	w.done(x)
}

// live sends slots of all series, one after the other, as senders do.
func (w *logEnd) live(from, n int64) {
	w.t.Helper()
	w.clock.Advance(time.Duration(n) * time.Second)
	w.s.clock.Advance()
	x := mustSession(w.t, w.s, "a")
	defer x.Close()
	for slot := from; slot < from+n; slot++ {
		for series := range int64(3) {
			w.next++
			w.last[[2]int64{series, slot}] = point.FromInt(w.next)
			x.Point(key(int(series)), uint64(slot), point.FromInt(w.next))
		}
		w.done(x)
	}
}

func (w *logEnd) done(x *intake.Session) {
	w.t.Helper()
	if _, err := x.Commit(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *logEnd) commit() {
	w.t.Helper()
	if err := w.s.disk.Log.Sync(); err != nil {
		w.t.Fatal(err)
	}
}

// newest returns the path of the newest file of the log.
func (w *logEnd) newest() (path string) {
	w.t.Helper()
	names, err := w.o.FS.List("/data/" + datadir.WAL)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".wal") {
			path = max(path, "/data/"+datadir.WAL+"/"+name)
		}
	}
	return path
}

// put writes a file of the log anew.
func (w *logEnd) put(path string, data []byte) {
	w.t.Helper()
	filetest.Write(w.t, w.o.FS, path, data)
}

// check wants each slot to be what was sent last, unknown, or never a value that was sent before;
// slots below from are known. It returns how many slots are unknown, and how many have nothing
// though something was sent.
func (w *logEnd) check(what string, from int64) (unknown, missing int) {
	w.t.Helper()
	for series := range int64(3) {
		for at := int64(epoch); at < logEndNow+4000; at += 10_000 {
			words, hidden := readUnknown(w.t, w.s, "a", int(series), at, 10_000)
			for i, word := range words {
				slot := at + int64(i)
				sent := w.last[[2]int64{series, slot}]
				switch {
				case hidden[i] && slot < from:
					w.t.Fatalf("%s: slot %d of series %d is unknown: nothing has reached it", what, slot-epoch,
						series)
				case hidden[i]:
					unknown++
				case word == 0 && sent != 0:
					missing++
				case word != sent:
					w.t.Fatalf("%s: slot %d of series %d holds %d, and was sent last as %d", what, slot-epoch,
						series, point.Int(word), point.Int(sent))
				}
			}
		}
	}
	return unknown, missing
}

// lost opens the store after damage and wants it to say and count it, and again after more kills.
// Each kill comes behind the flush that ends the replay: one before it may let the next start hide
// more (replay/DESIGN.md).
func (w *logEnd) lost(what string, from int64) (unknown int) {
	w.t.Helper()
	if r := mustCheck(w.t, w.o.FS, "/data"); r.Damaged == 0 {
		w.t.Errorf("%s: the check says nothing", what)
	}
	for kill := range 4 {
		what := fmt.Sprintf("%s, kill %d", what, kill)
		w.s = mustOpen(w.t, w.o)
		named, n := w.s.Damage()
		text := strings.Join(named, "\n")
		if lost := w.s.Account().Losses(); len(lost) != 1 || lost[0].Cause != replay.LostInReplay {
			w.t.Errorf("%s: the account says %+v", what, lost)
		}
		hidden, _ := w.check(what, from)
		if err := w.s.replay.All(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		if kill == 0 && (n == 0 || strings.Contains(text, "may have overwritten slots") != (hidden > 0)) {
			w.t.Errorf("%s: the start says %q", what, text)
		}
		if kill == 0 {
			unknown = hidden
		} else if hidden != unknown {
			w.t.Errorf("%s: %d slots are unknown, %d were", what, hidden, unknown)
		}
		if kill == 2 {
			if err := w.s.Close(); err != nil {
				w.t.Fatal(err)
			}
		} else {
			w.s.Crash()
		}
	}
	return unknown
}

// TestAnOlderCopyOfTheNewestLogFile put back between two kills takes what was sent since, old slots
// that were sent again among it.
func TestAnOlderCopyOfTheNewestLogFile(t *testing.T) {
	t.Parallel()
	w := newLogEnd(t)
	w.live(logEndNow, 900)
	w.commit()
	path := w.newest()
	older := filetest.Read(t, w.o.FS, path)
	w.column(1, epoch+40_000, 1000)
	w.live(logEndNow+900, 900)
	w.commit()
	w.s.Crash()
	w.put(path, older)
	if n := w.lost("older copy", epoch+40_000-3600-40_000/8); n < 3*40_000 {
		t.Errorf("%d slots are unknown", n)
	}
}

// TestALogThatLostItsEnd: where nothing late was sent, only the last minutes in front of the cut
// are unknown, because the lost records are all younger.
func TestALogThatLostItsEnd(t *testing.T) {
	t.Parallel()
	w := newLogEnd(t)
	w.live(logEndNow, 3600)
	w.commit()
	w.s.Crash()
	path := w.newest()
	data := filetest.Read(t, w.o.FS, path)
	const cut = 30 << 10
	w.put(path, data[:len(data)-cut])
	if n := w.lost("cut", logEndNow+1800); n == 0 || n > 3*1800 {
		t.Errorf("%d slots are unknown, want some minutes of three series", n)
	}
}

// TestACutOf287KB takes late points, too.
func TestACutOf287KB(t *testing.T) {
	t.Parallel()
	w := newLogEnd(t)
	w.live(logEndNow, 900)
	for range 40 {
		w.column(2, epoch+60_000, 1200)
	}
	w.commit()
	w.s.Crash()
	path := w.newest()
	data := filetest.Read(t, w.o.FS, path)
	if len(data) < 300<<10 {
		t.Fatalf("the log has %d bytes", len(data))
	}
	w.put(path, data[:len(data)-287_000])
	w.lost("cut", epoch+60_000-3600-26_400/8)
}

// TestAllOfTheLogBehindAFlush removed: what the flush had is current but for what later points may
// have overwritten.
func TestAllOfTheLogBehindAFlush(t *testing.T) {
	t.Parallel()
	for _, sent := range []struct {
		what       string
		slot, n    int64 // before all others
		from       int64 // what may be unknown
		least, all int   // unknown slots
	}{
		{what: "nothing old", from: logEndNow},
		{"the last slots", logEndNow - 5, 5, logEndNow - 310, 3, 3 * 310},
		{"late", epoch + 70_000, 10, epoch + 70_000 - 3600, 3 * 16_000, 3 * 20_010},
	} {
		w := newLogEnd(t)
		w.column(0, sent.slot, sent.n)
		w.live(logEndNow, 900)
		w.commit()
		w.s.Crash()
		if err := w.o.FS.RemoveAll("/data/" + datadir.WAL); err != nil {
			t.Fatal(err)
		}
		if n := w.lost(sent.what, sent.from); n < sent.least || n > sent.all {
			t.Errorf("%s: %d slots are unknown", sent.what, n)
		}
	}
}
