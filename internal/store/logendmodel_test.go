package store

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/testkit/filetest"
)

// logEndModel sends to two buckets: what is of this moment, what is some minutes old, and what is
// hours old, and flushes, kills and starts between.
type logEndModel struct {
	logEnd
	r *rand.Rand
}

const modelHours = 8

func newLogEndModel(t *testing.T, seed uint64) *logEndModel {
	w := &logEndModel{logEnd: logEnd{t: t, clock: newTestClock(), last: map[[2]int64]uint64{}},
		r: rand.New(rand.NewPCG(seed, 38))}
	w.o = testOptions(vfs.NewCrashableMem(), w.clock)
	w.o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	w.o.WALMaxSize = []int64{64 << 10, 1 << 30}[w.r.IntN(2)] // with small files of the log
	byHand(&w.o)
	w.clock.Advance(modelHours * time.Hour)
	w.s = mustOpen(t, w.o)
	return w
}

// send sends some points of one shape.
func (w *logEndModel) send() {
	w.t.Helper()
	now := w.clock.Now().Unix()
	x := mustSession(w.t, w.s, "a")
	defer x.Close()
	for range 1 + w.r.IntN(20) {
		series, slot := w.r.Int64N(3), now-w.r.Int64N(3)
		switch w.r.IntN(12) {
		case 0:
			slot = now - w.r.Int64N(900)
		case 1:
			if w.r.IntN(8) == 0 {
				slot = now - w.r.Int64N(modelHours*3600)
			}
		}
		w.next++
		w.last[[2]int64{series, slot}] = point.FromInt(w.next)
		x.Point(key(int(series)), uint64(slot), point.FromInt(w.next))
	}
	w.done(x)
	w.clock.Advance(time.Duration(w.r.IntN(30)) * time.Second)
	w.s.clock.Advance()
}

func (w *logEndModel) step() {
	w.t.Helper()
	switch n := w.r.IntN(40); {
	case n == 0:
		mustFlush(w.t, w.s)
	case n == 1: // what the store does by itself when it is due
		w.s.upkeep.EverySecond()
		if err := w.s.flusher.Sealed(); err != nil {
			w.t.Fatal(err)
		}
	case n == 2:
		w.commit()
		w.s.Crash()
		w.s = mustOpen(w.t, w.o)
	default:
		w.send()
	}
}

// noOlder wants no slot to hold what was sent before the last value.
func (w *logEndModel) noOlder(what string) {
	w.t.Helper()
	if _, err := w.s.BucketByName("a"); err != nil {
		return // the log had it, before the first flush
	}
	for series := range int64(3) {
		words, unknown := readUnknown(w.t, w.s, "a", int(series), epoch, 2*modelHours*3600)
		for i, word := range words {
			sent := w.last[[2]int64{series, epoch + int64(i)}]
			if word != 0 && (unknown[i] || word != sent) {
				w.t.Fatalf("%s: slot %d of series %d holds %d, and was sent last as %d", what, i, series,
					point.Int(word), point.Int(sent))
			}
		}
	}
}

// TestNoLossOfALogShowsAnOlderValue: whatever damage takes from the end of a log, or all of it, and
// however often the node is killed behind it, sends and flushes, no slot has a value that is not
// the one that was sent last.
func TestNoLossOfALogShowsAnOlderValue(t *testing.T) {
	t.Parallel()
	rounds := uint64(150)
	if testing.Short() {
		rounds = 40
	}
	for seed := range rounds {
		w := newLogEndModel(t, seed)
		var path string
		var older []byte
		for range 20 + w.r.IntN(200) {
			w.step()
			if w.r.IntN(60) == 0 {
				w.commit()
				if path = w.newest(); path != "" {
					older = filetest.Read(t, w.o.FS, path)
				}
			}
		}
		w.commit()
		w.s.Crash()
		newest := w.newest()
		what := fmt.Sprintf("seed %d, removed", seed)
		switch data := filetest.Read(t, w.o.FS, newest); {
		case w.r.IntN(3) == 0:
			if err := w.o.FS.RemoveAll("/data/" + datadir.WAL); err != nil {
				t.Fatal(err)
			}
		case path == newest && w.r.IntN(2) == 0:
			what = fmt.Sprintf("seed %d, older by %d of %d bytes", seed, len(data)-len(older), len(data))
			w.put(path, older)
		default:
			cut := 1 + w.r.IntN(len(data)-64)
			what = fmt.Sprintf("seed %d, cut of %d of %d bytes", seed, cut, len(data))
			w.put(newest, data[:len(data)-cut])
		}
		for kill := range 5 {
			w.s = mustOpen(t, w.o)
			what := fmt.Sprintf("%s, kill %d", what, kill)
			w.noOlder(what)
			for range w.r.IntN(10) {
				w.step()
			}
			w.noOlder(what + ", sent again")
			w.commit()
			w.s.Crash()
		}
	}
}

// TestNoPowerCutIsALossOfTheLog: what was not synced is gone, and nobody calls that a loss.
func TestNoPowerCutIsALossOfTheLog(t *testing.T) {
	t.Parallel()
	rounds := uint64(60)
	if testing.Short() {
		rounds = 20
	}
	for seed := range rounds {
		w := newLogEndModel(t, 1000+seed)
		for cut := range 4 {
			for range 10 + w.r.IntN(60) {
				w.step()
				if w.r.IntN(5) == 0 {
					w.commit()
				}
			}
			mem := w.o.FS.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{
				UnsyncedDataPercent: []int{0, 50, 100}[w.r.IntN(3)],
				RNG:                 rand.New(rand.NewPCG(seed, uint64(cut))),
			})
			w.s.Crash()
			w.o.FS = mem
			w.s = mustOpen(t, w.o)
			if named, n := w.s.Damage(); n > 0 {
				t.Fatalf("seed %d, power cut %d: %s", seed, cut, strings.Join(named, "; "))
			}
			if lost, holes := w.s.Account().Losses(), w.s.disk.Manifest.Holes(); len(lost)+len(holes) > 0 {
				t.Fatalf("seed %d, power cut %d: lost %+v, holes %v", seed, cut, lost, holes)
			}
		}
		w.s.Crash()
	}
}
