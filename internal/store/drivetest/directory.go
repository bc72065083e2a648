package drivetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/testkit/filetest"
)

// Dir is the data directory of the stores.
const Dir = "/data"

// Check returns what a check of a directory finds that nobody has open.
func Check(t TB, fs vfs.FS, dir string) fsck.Report {
	t.Helper()
	r, err := fsck.CheckDir(context.Background(), fs, dir, fsck.Options{})
	if err != nil {
		t.Fatalf("check: %v", err)
	}
	return r
}

// ReportNames says whether a report names a file, or the directory that is judged as one thing.
func ReportNames(r *fsck.Report, file string) bool {
	for _, d := range append(r.Damages, r.Expected...) {
		if d.File == file || d.File == datadir.Catalogue &&
			strings.HasPrefix(file, datadir.Catalogue+"/") {
			return true
		}
	}
	return false
}

// Clone copies Dir into a new file system, and turns over one bit of a file of the copy if one is
// named.
func Clone(t testing.TB, from vfs.FS, file string, bit int64) *vfs.MemFS {
	t.Helper()
	to := vfs.NewMem()
	if ok, err := vfs.Clone(from, to, Dir, Dir); err != nil || !ok {
		t.Fatalf("clone: %v, %v", ok, err)
	}
	if file != "" {
		filetest.FlipBit(t, to, Dir+"/"+file, bit)
	}
	return to
}

// DamagePart flips a bit in a block of a kind of a segment.
func DamagePart(t testing.TB, fs vfs.FS, path, part string) {
	t.Helper()
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	flip := func(at int64) {
		var b [1]byte
		if _, err := f.ReadAt(b[:], at); err != nil {
			t.Fatal(err)
		}
		b[0] ^= 4
		if _, err := f.WriteAt(b[:], at); err != nil {
			t.Fatal(err)
		}
	}
	for at := st.Size() - 157; at >= 0; at -= 16 {
		flip(at)
		r, err := segment.Open(fs, path)
		if err != nil {
			t.Fatal(err)
		}
		damages := segment.Damages(r.Verify())
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if len(damages) == 1 && damages[0].Part == part {
			return
		}
		flip(at)
	}
	t.Fatalf("no block of %s", part)
}

// Recommit has the MANIFEST say of a segment, which a test has written again, what it is now.
// Nobody has the store open.
func Recommit(t testing.TB, fs vfs.FS, path string) {
	t.Helper()
	r, err := segment.Open(fs, path)
	if err != nil {
		t.Fatal(err)
	}
	info, of := r.Info(), r.Origin()
	m, state, _, err := manifest.Open(fs, Dir, of.Directory, nil)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	e := manifest.Edit{RemoveSegments: []uint64{of.Number}}
	for _, s := range state.Segments {
		if s.Seq == of.Number {
			s.Bytes, s.Sum = info.Size, info.Sum
			e.AddSegments = append(e.AddSegments, s)
		}
	}
	if err := errors.Join(m.Commit(e), m.Close()); err != nil {
		t.Fatal(err)
	}
}

// Spoil writes a segment anew in which one chunk of a series is what no encoder makes, and every
// checksum is right. It returns the points that are lost.
func Spoil(t testing.TB, fs vfs.FS, path string, bucket uint64, key []byte,
	number int64) (points int) {
	t.Helper()
	r, err := segment.Open(fs, path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	w, err := segment.Create(fs, path+".tmp")
	if err != nil {
		t.Fatal(err)
	}
	info := r.Info()
	w.Belongs(r.Origin())
	w.Describe(info.Generation, info.WindowFirst, info.WindowChunks)
	buckets, err := r.Buckets()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range buckets {
		w.AddBucket(b)
	}
	if err := r.Series(func(s segment.Series) error { w.AddSeries(s); return nil }); err != nil {
		t.Fatal(err)
	}
	id := segment.Hash(metric.Series(bucket, key))
	err = r.Each(func(b uint64, h segment.Hash, n int64, data []byte) error {
		head, err := chunk.ParseHeader(data)
		if err != nil {
			return err
		}
		if b == bucket && h == id && n == number {
			data, points = slices.Concat(data, []byte{0x5a}), head.Count // with one byte too many
		}
		return w.Add(b, h, n, head.Count, data)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := fs.Rename(path+".tmp", path); err != nil {
		t.Fatal(err)
	}
	Recommit(t, fs, path)
	return points
}

// MergedFiles returns what is in the directories of merges.
func MergedFiles(t testing.TB, fs vfs.FS) (files []string) {
	t.Helper()
	for _, kind := range []manifest.Kind{manifest.Window, manifest.Overlay} {
		names, err := fs.List(Dir + "/" + datadir.SegmentDirs[kind])
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			files = append(files, datadir.SegmentDirs[kind]+"/"+name)
		}
	}
	return files
}
