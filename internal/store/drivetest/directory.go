package drivetest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/segment"
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
