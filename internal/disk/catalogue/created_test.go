package catalogue

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/testkit/filetest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// reportsCreated opens a catalogue whose mark is known to be at least at, first to inspect it, and
// returns whether it is said to have lost anything; both must say the same.
func reportsCreated(t *testing.T, what string, fs vfs.FS, at uint64) bool {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	mark, found, err := Inspect(fs, testDir, quiet, func(segment.Series) error { return nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	inspected := len(found) > 0 || mark < at
	c, err := Open(fs, testDir, quiet)
	if err != nil && !errors.Is(err, ErrDamaged) {
		t.Fatalf("%s: %v", what, err)
	}
	opened := err != nil || c.FoundMark() < at
	if err == nil {
		if c.Mark() == 0 {
			t.Errorf("%s: open, and without a mark", what)
		}
		closeChecked(t, c)
	}
	if inspected != opened {
		t.Errorf("%s: Inspect says damage: %v (%v, mark %d), Open: %v (%v)", what, inspected, found, mark,
			opened, err)
	}
	return opened
}

// Whatever happens to one file of a catalogue, or to all of it, is said, before its first
// flush as well as behind it, and also when the last start has flushed nothing. Damage in
// the last record of the MANIFEST is the tear of a crash. It is said of a catalogue that was
// made, and of others where it lists a flush.
func TestDamageIsSaidFromTheFirstStart(t *testing.T) {
	fs := dataFS(t)
	nothing := func(*Catalogue) error { return nil }
	flush := func(c *Catalogue) error { return errors.Join(c.Put(testSeries(3)), c.Flush()) }
	for i, state := range []struct {
		name string
		do   func(*Catalogue) error
	}{{"made", nothing}, {"opened again", nothing}, {"flushed", flush},
		{"opened behind a flush", nothing}} {
		c := open(t, fs)
		if err := state.do(c); err != nil {
			t.Fatal(err)
		}
		at := c.Mark()
		closeChecked(t, c)
		if reportsCreated(t, state.name+", no damage", clone(fs), at) {
			t.Fatalf("%s: an intact catalogue is said to be damaged", state.name)
		}
		gone := clone(fs)
		if err := gone.RemoveAll(testDir); err != nil {
			t.Fatal(err)
		}
		if !reportsCreated(t, state.name+", without its directory", gone, at) {
			t.Errorf("%s: the directory is gone and nothing is said", state.name)
		}
		needed := 0
		for _, path := range filesOf(t, fs) {
			name := fs.PathBase(path)
			if strings.HasSuffix(name, ".log") || strings.HasPrefix(name, "MANIFEST-") &&
				!isListed(t, fs, name) {
				continue // pebble keeps the MANIFEST before, and a log that is not used
			}
			needed++
			damageOne(t, state.name, fs, path, at, i > 0)
		}
		if needed < 4 {
			t.Errorf("%s: %d files", state.name, needed)
		}
	}
}

func isListed(t *testing.T, fs vfs.FS, name string) bool {
	t.Helper()
	for _, path := range filesOf(t, fs) {
		if strings.HasPrefix(fs.PathBase(path), "marker.manifest.") && strings.HasSuffix(path, name) {
			return true
		}
	}
	return false
}

// damageOne removes, empties and flips bits of one file; where torn is set, not of the last
// record of a MANIFEST.
func damageOne(t *testing.T, state string, fs *vfs.MemFS, path string, at uint64, torn bool) {
	t.Helper()
	name := fs.PathBase(path)
	removed := clone(fs)
	if err := removed.Remove(path); err != nil {
		t.Fatal(err)
	}
	if !reportsCreated(t, state+", without "+name, removed, at) {
		t.Errorf("%s: %s is gone and nothing is said", state, name)
	}
	var data []byte
	emptied := clone(fs)
	filetest.Rewrite(t, emptied, path, func(b []byte) []byte { data = b; return nil })
	if len(data) > 0 && !reportsCreated(t, state+", empty "+name, emptied, at) {
		t.Errorf("%s: %s is empty and nothing is said", state, name)
	}
	end := len(data)
	for i := 0; torn && strings.HasPrefix(name, "MANIFEST-") && i < len(data); {
		size, _ := chunkAt(data, i)
		end = i
		i += max(size, 1)
	}
	for i := 0; i < end; i += 1 + len(data)/101 {
		flipped := clone(fs)
		filetest.Rewrite(t, flipped, path, func(b []byte) []byte { b[i] ^= 1 << (i % 8); return b })
		if strings.HasSuffix(name, ".sst") { // Open reads of a table what it needs
			_, found, err := Inspect(flipped, testDir, slog.New(slog.DiscardHandler),
				func(segment.Series) error {
					return nil
				})
			if err != nil || len(found) == 0 {
				t.Errorf("%s: byte %d of %s: %v, %v", state, i, name, found, err)
			}
		} else if !reportsCreated(t, state+", a bit of "+name, flipped, at) {
			t.Errorf("%s: byte %d of %d of %s is flipped and nothing is said", state, i, len(data), name)
		}
	}
}

// A crash at any step between the opening and the closing of the first start, or of the second, is
// no damage.
func TestACrashWhileItIsMadeIsNoDamage(t *testing.T) {
	fs := dataFS(t)
	for start, at := range []uint64{0, 1} {
		var mu sync.Mutex
		var crashes []*vfs.MemFS
		var steps []string
		c := open(t, errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			mu.Lock()
			defer mu.Unlock()
			for _, percent := range []int{0, 50, 100} {
				crashes = append(crashes, fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent,
					RNG: rand.New(rand.NewPCG(3, uint64(len(crashes))))}))
				steps = append(steps, op.Path)
			}
			return nil
		})))
		closeChecked(t, c)
		if len(crashes) < 60 {
			t.Fatalf("start %d: %d crashes", start, len(crashes))
		}
		for i, crashed := range crashes {
			if reportsCreated(t, "a crash", crashed, at) {
				t.Errorf("start %d, crash %d of %d is said to be damage, in front of %s", start, i,
					len(crashes), steps[i])
			}
		}
	}
}
