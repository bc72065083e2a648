package test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
)

const (
	damageSeries = 200
	damageSlots  = 1440 // in each of two segments, and behind them in the log
	damageBucket = "damaged"

	chunkSlots = 720 // of a series, encoded together
)

// damage is something that happens to the files of a node that is not running,
// and what must be left of its points.
type damage struct {
	do func(t *testing.T, dir string)
	// Points of the first segment, the second, the log may be missing; and those of
	// the chunk that a part shares with the one behind it, when that is lost: it came
	// late, so it may have overwritten them.
	lost  [3]bool
	named string // what the log must name; "" when nothing is lost that cannot be made again
}

// damages are the cases of TestDamagedFiles.
func damages() map[string]damage {
	return map[string]damage{
		"nothing": {do: func(*testing.T, string) {}},
		"a flipped byte in a segment": {
			do:   func(t *testing.T, dir string) { flip(t, files(t, dir, "flush/*.seg")[0], 100) },
			lost: [3]bool{0: true}, named: "0000000000000001.seg",
		},
		"half a segment": {
			do:   func(t *testing.T, dir string) { halve(t, files(t, dir, "flush/*.seg")[0]) },
			lost: [3]bool{0: true}, named: "0000000000000001.seg",
		},
		"a missing segment": {
			do:   func(t *testing.T, dir string) { remove(t, files(t, dir, "flush/*.seg")[1]) },
			lost: [3]bool{1: true}, named: "0000000000000002.seg",
		},
		"no segments": {
			do:   func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "flush")) },
			lost: [3]bool{0: true, 1: true}, named: "0000000000000001.seg",
		},
		"no MANIFEST": {
			do:    func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "MANIFEST")) },
			named: "MANIFEST",
		},
		"a flipped byte in the MANIFEST": {
			do:    func(t *testing.T, dir string) { flip(t, filepath.Join(dir, "MANIFEST"), 40) },
			named: "MANIFEST",
		},
		"half a MANIFEST": {
			do: func(t *testing.T, dir string) { halve(t, filepath.Join(dir, "MANIFEST")) },
		},
		"no catalogue": {
			do: func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "catalogue")) },
		},
		"a flipped byte in the catalogue": {
			do:    func(t *testing.T, dir string) { flip(t, files(t, dir, "catalogue/*.sst")[0], 20) },
			named: "catalogue",
		},
		"no log": {
			do:   func(t *testing.T, dir string) { remove(t, files(t, dir, "wal/*.wal")...) },
			lost: [3]bool{2: true},
		},
		"half a log": {
			do:   func(t *testing.T, dir string) { halve(t, last(files(t, dir, "wal/*.wal"))) },
			lost: [3]bool{2: true},
		},
		"a log that ends inside a record": {
			do: func(t *testing.T, dir string) {
				path := last(files(t, dir, "wal/*.wal"))
				// copies of heads are at its end
				truncate(t, path, func(size int64) int64 { return size - 20<<10 })
			},
			lost: [3]bool{2: true},
		},
		"a VERSION that is none": {
			do:    func(t *testing.T, dir string) { write(t, filepath.Join(dir, "VERSION"), "what?\n") },
			named: "VERSION",
		},
		"files of others": {
			do: func(t *testing.T, dir string) {
				for _, name := range []string{"notes.txt", "flush/notes.txt", "flush/00000000000000ff.seg.tmp",
					"wal/notes.txt", "catalogue.old"} {
					write(t, filepath.Join(dir, name), "x")
				}
			},
		},
	}
}

// TestDamagedFiles: a node starts whatever happened to its files, serves the
// rest and nothing else, names and counts what is damaged (I5, I6), and takes
// points again.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	base := past(2 * time.Hour)
	whole := filepath.Join(t.TempDir(), "whole")
	prepare(t, whole, base)
	for name, d := range damages() {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			d.do(t, dir)
			n := startNode(t, dir)
			missing := d.missing(t, n, base)
			if d.named != "" {
				if text := n.log.String(); !strings.Contains(text, "damaged") ||
					!strings.Contains(text, d.named) {
					t.Errorf("the log does not name %s as damaged:\n%s", d.named, text)
				}
				if n.figure("damaged_blocks_total") == 0 {
					t.Error("the damage is not counted")
				}
			}
			for part, points := range missing {
				if total := damageSeries * damageSlots; points > 0 && !d.lost[part] {
					t.Errorf("%d of %d points of part %d are missing", points, total, part)
				}
			}
			if d.lost != [3]bool{} && slices.Max(missing[:]) == 0 {
				t.Error("nothing is missing: the damage hit nothing")
			}
			usable(t, n, dir, base)
		})
	}
}

// prepare makes a directory with points in two segments and behind them in the
// log, by kill -9.
func prepare(t *testing.T, dir string, base int64) {
	t.Helper()
	// At some times of the day the window of the points is due for a merge. The last
	// record of the log is to be one of them, and none of what the node measures of
	// itself every second.
	n := startNode(t, dir, "--set", "merge.background=off", "--set", "self_monitor=off")
	for part := range 3 {
		s := openAcked(t, n, damageBucket)
		for id := range damageSeries {
			words := make([]uint64, damageSlots)
			first := base + int64(part*damageSlots)
			for i := range words {
				words[i] = value(uint64(id), first+int64(i))
			}
			s.point(key(t, "d", fmt.Sprint(id)), first, words...)
		}
		s.flush()
		if part < 2 {
			if _, err := n.admin().Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	n.kill()
	if segments := files(t, dir, "flush/*.seg"); len(segments) != 2 {
		t.Fatalf("segments are %q", segments)
	}
}

// missing reads all points and returns how many of each part are unset. No
// slot may have another value than what was sent.
func (d damage) missing(t *testing.T, n *node, base int64) (count [3]int) {
	t.Helper()
	c := n.dial()
	for id := range damageSeries {
		for i, word := range get(t, c, damageBucket, key(t, "d", fmt.Sprint(id)), base, 3*damageSlots) {
			switch slot := base + int64(i); {
			case word == point.Unset && d.mayHide(base, slot):
			case word == point.Unset:
				count[i/damageSlots]++
			case word != value(uint64(id), slot):
				t.Fatalf("I5: series %d, slot %d: %016x, sent was %016x", id, slot, word,
					value(uint64(id), slot))
			}
		}
	}
	return count
}

// mayHide says whether a slot lies in a chunk with points of the next part, and
// that is lost.
func (d damage) mayHide(base, slot int64) bool {
	next := (slot-base)/damageSlots + 1
	return next < 2 && d.lost[next] && slot/chunkSlots == (base+next*damageSlots)/chunkSlots
}

// usable checks that a node takes points and keeps them over a clean stop.
func usable(t *testing.T, n *node, dir string, base int64) {
	t.Helper()
	old, fresh := key(t, "d", "0"), key(t, "new")
	slot := base + 3*damageSlots + 10
	send(t, n, damageBucket, old, slot, point.FromInt(1))
	send(t, n, damageBucket, fresh, slot, point.FromInt(2))
	n.stop()
	n = startNode(t, dir)
	c := n.dial()
	if a, b := get(t, c, damageBucket, old, slot, 1),
		get(t, c, damageBucket, fresh, slot, 1); a[0] != point.FromInt(1) || b[0] != point.FromInt(2) {
		t.Errorf("new points read back as %x and %x", a, b)
	}
	n.stop()
}

func files(t *testing.T, dir, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	return names
}

func last(names []string) string { return names[len(names)-1] }

func flip(t *testing.T, path string, offset int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[offset] ^= 0x10
	write(t, path, string(b))
}

func halve(t *testing.T, path string) {
	t.Helper()
	truncate(t, path, func(size int64) int64 { return size / 2 })
}

func truncate(t *testing.T, path string, to func(size int64) int64) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, to(info.Size())); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
