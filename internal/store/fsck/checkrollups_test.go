package fsck_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/store/storetest"
)

// I4: a rollup that is not what its chunks give is found by a check, however
// right its checksum is.
func TestWrongRollupsAreFound(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(h *chunk.Header, digest *uint64) bool{
		"a wrong sum":    func(h *chunk.Header, _ *uint64) bool { h.Sum.Lo++; return true },
		"a wrong digest": func(_ *chunk.Header, digest *uint64) bool { *digest ^= 1 << 63; return true },
		"a missing one":  func(*chunk.Header, *uint64) bool { return false },
	} {
		t.Run(name, func(t *testing.T) {
			fs, clock := vfs.NewMem(), drivetest.NewClock()
			s := storetest.FillRows(t, storetest.OptionsAt(fs, clock))
			s.Pass(t, clock, 2*time.Hour)
			drivetest.FillUnit(t, s, "rows", drivetest.Key(drivetest.RowSeries))
			mergeRows(t, s, clock)
			s.Crash()
			if r := drivetest.Check(t, fs, "/data"); r.Damaged != 0 {
				t.Fatalf("before: %v", r.Damages)
			}
			names, err := fs.List("/data/window")
			if err != nil || len(names) == 0 {
				t.Fatal(names, err)
			}
			rewriteRollups(t, fs, "/data/window/"+names[0], change)
			r := drivetest.Check(t, fs, "/data")
			if !slices.ContainsFunc(r.Damages, func(d fsck.Damage) bool {
				return strings.HasPrefix(d.Part, "rollups") &&
					strings.HasSuffix(d.Part, "digest") == (name == "a wrong digest") &&
					strings.Contains(d.Detail, "10 chunks from")
			}) {
				t.Fatalf("not found among %v", r.Damages)
			}
		})
	}
}

// One damaged block of a window is one place: rollups of chunks that cannot be
// read are not called wrong.
func TestRollupsOfADamagedBlockAreNotWrong(t *testing.T) {
	t.Parallel()
	fs, clock := vfs.NewMem(), drivetest.NewClock()
	s := storetest.FillRows(t, storetest.OptionsAt(fs, clock))
	mergeRows(t, s, clock)
	s.Crash()
	names, err := fs.List("/data/window")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	drivetest.DamagePart(t, fs, "/data/window/"+names[0], "data")
	if r := drivetest.Check(t, fs, "/data"); r.Damaged != 1 || r.Damages[0].Part != "data" {
		t.Fatalf("%d places: %v", r.Damaged, r.Damages)
	}
}

// copyRollups copies the rollup l of a series from r to w, with its first entry changed or left out
// if it is the rollup Small.
func copyRollups(r *segment.Reader, w *segment.Writer, l segment.Rollup, bucket uint64,
	h segment.Hash, change func(h *chunk.Header, digest *uint64) bool) error {
	var all [segment.MaxSpans]chunk.Header
	spans, _, err := r.Rollups(l, bucket, h, &all)
	if err != nil || spans == 0 {
		return err
	}
	var digests [segment.MaxSpans]uint64
	if _, _, err = r.RollupDigests(l, bucket, h, &digests); err != nil {
		return err
	}
	var data []byte
	var kept []uint64
	first := l == segment.Small
	for i := range all {
		if spans>>i&1 == 0 {
			continue
		}
		keep := !first || change(&all[i], &digests[i])
		if first = false; keep {
			data = chunk.AppendRollup(data, &all[i])
			kept = append(kept, digests[i])
		} else {
			spans &^= 1 << i
		}
	}
	if spans == 0 {
		return nil
	}
	return w.AddRollups(l, bucket, h, spans, kept, data)
}

// rewriteRollups writes a window again, with one entry of the rollup Small of
// every series changed or left out.
func rewriteRollups(t *testing.T, fs vfs.FS, path string,
	change func(h *chunk.Header, digest *uint64) bool) {
	t.Helper()
	r, err := segment.Open(fs, path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := segment.Create(fs, path+".new")
	if err != nil {
		t.Fatal(err)
	}
	info := r.Info()
	w.Belongs(r.Origin())
	w.Describe(info.Generation, info.WindowFirst, info.WindowChunks)
	var last segment.Hash
	err = r.Each(func(bucket uint64, h segment.Hash, number int64, data []byte) error {
		if h != last {
			last = h
			if err := errors.Join(copyRollups(r, w, segment.Small, bucket, h, change),
				copyRollups(r, w, segment.Large, bucket, h, change)); err != nil {
				return err
			}
		}
		header, err := chunk.ParseHeader(data)
		return errors.Join(err, w.Add(bucket, h, number, header.Count, data))
	})
	if err := errors.Join(err, r.Series(func(e segment.Series) error {
		w.AddSeries(e)
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	buckets, err := r.Buckets()
	for _, b := range buckets {
		w.AddBucket(b)
	}
	_, finishErr := w.Finish()
	if err := errors.Join(err, finishErr, r.Close(), fs.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
	drivetest.Recommit(t, fs, path)
}
