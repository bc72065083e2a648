package store

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/manifest"
)

// merged returns the image of a store whose windows and overlays were named by edits
// that others follow, and whose sources are gone.
func merged(t *testing.T) (*vfs.MemFS, Options) {
	t.Helper()
	clock, mem := newTestClock(), vfs.NewCrashableMem()
	o := testOptions(mem, clock)
	byHand(&o)
	s := mustOpen(t, o)
	flushToMerge(t, s, clock)
	if r, err := s.Merge(t.Context()); err != nil || r.Removed == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	sendNoise(t, s, "a", epoch+12*3600+1, epoch+12*3600+2)
	mustFlush(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return mem, o
}

// TestEveryByteOfBothCopies flips a bit of every byte of MANIFEST at the same place in
// both copies: the windows and overlays that edits behind it named hold their points, none
// is counted as lost, and a check before the start says what the start does.
func TestEveryByteOfBothCopies(t *testing.T) {
	mem, o := merged(t)
	stat, err := mem.Stat(o.FS.PathJoin(o.Dir, manifest.FirstName))
	if err != nil {
		t.Fatal(err)
	}
	step := int64(1)
	if testing.Short() {
		step = 7
	}
	for at := int64(16); at < stat.Size(); at += step {
		fs := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
		o.FS = fs
		for _, name := range []string{manifest.FirstName, manifest.SecondName} {
			flipByte(t, fs, fs.PathJoin(o.Dir, name), at)
		}
		said, err := CheckDir(t.Context(), fs, o.Dir, CheckOptions{})
		if err != nil || said.Damaged == 0 {
			t.Fatalf("byte %d: the check says %+v, %v", at, said, err)
		}
		s := mustOpen(t, o)
		if n := missingNoise(t, s, "a", epoch, epoch+1440); n != 0 {
			t.Fatalf("byte %d: %d points are missing", at, n)
		}
		if lost := s.Account().Lost(); len(lost) > 0 {
			t.Fatalf("byte %d: counted as lost: %+v", at, lost)
		}
		names, _ := s.Damage()
		for _, d := range said.Damages {
			if strings.HasSuffix(d.File, ".seg") && !strings.Contains(strings.Join(names, "\n"), d.File) {
				t.Fatalf("byte %d: the check names %v, the start %v", at, d, names)
			}
		}
		s.Crash()
	}
}
