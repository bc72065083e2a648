package startup_test

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/storetest"
)

// catalogueSaid says whether the check and the start name damage in the catalogue; both
// must. The start counts it once, and the next one not at all.
func catalogueSaid(t *testing.T, what string, fs vfs.FS, clock *drivetest.Clock) bool {
	t.Helper()
	report := drivetest.Check(t, fs, "/data")
	checked := drivetest.ReportNames(&report, datadir.Catalogue+"/")
	s := storetest.Start(t, storetest.OptionsAt(fs, clock))
	names, n := s.Damage()
	started := n > 0
	if n > 1 || started && (len(names) != 1 || !strings.HasPrefix(names[0], datadir.Catalogue+":")) {
		t.Errorf("%s: the start counts %d: %v", what, n, names)
	}
	if checked != started {
		t.Errorf("%s: damage for the check: %v (%v), for the start: %v", what, checked, report.Damages,
			started)
	}
	s.Crash()
	report = drivetest.Check(t, fs, "/data")
	s = storetest.Start(t, storetest.OptionsAt(fs, clock))
	if names, n := s.Damage(); n > 0 || len(report.Damages) > 0 {
		t.Errorf("%s: the next start counts %v, the check %v", what, names, report.Damages)
	}
	s.Crash()
	return started
}

// A catalogue that was there is missed from the first start on, before anything was
// flushed, and so is each of its files.
func TestACatalogueIsMissedFromTheFirstStart(t *testing.T) {
	t.Parallel()
	clock, fs := drivetest.NewClock(), vfs.NewMem()
	for _, state := range []string{"made", "opened again", "sent to"} {
		s := storetest.Start(t, storetest.OptionsAt(fs, clock))
		if state == "sent to" {
			drivetest.SendRows(t, s, 0, 3)
		}
		s.Crash()
		if catalogueSaid(t, state, drivetest.Clone(t, fs, "", 0), clock) {
			t.Errorf("%s: an intact catalogue is said to be damaged", state)
		}
		dir := "/data/" + datadir.Catalogue
		names, err := fs.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range append(names, "") {
			needed := name == "" || strings.HasPrefix(name, "marker.") || strings.HasSuffix(name, ".sst")
			damaged := drivetest.Clone(t, fs, "", 0)
			if err := damaged.RemoveAll(damaged.PathJoin(dir, name)); err != nil {
				t.Fatal(err)
			}
			if said := catalogueSaid(t, state+" without "+name, damaged, clock); needed && !said {
				t.Errorf("%s: %q is gone and nothing is said", state, name)
			}
		}
	}
}

// A crash anywhere in the first start leaves nothing that is said to be damaged.
func TestACrashInTheFirstStartIsNoDamage(t *testing.T) {
	t.Parallel()
	clock, fs := drivetest.NewClock(), vfs.NewCrashableMem()
	var crashes []*vfs.MemFS
	var mu sync.Mutex
	over := false
	watched := errorfs.Wrap(fs, errorfs.InjectorFunc(func(errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if n := uint64(len(crashes)); !over {
			crashes = append(crashes,
				fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: int(n%3) * 50,
					RNG: rand.New(rand.NewPCG(5, n))}))
		}
		return nil
	}))
	s := storetest.Start(t, storetest.OptionsAt(watched, clock))
	mu.Lock()
	over = true
	mu.Unlock()
	s.Crash()
	if len(crashes) < 60 {
		t.Errorf("%d crashes", len(crashes))
	}
	for i, crashed := range crashes {
		names, err := crashed.List("/data")
		if err != nil || !datadir.IsStore(names) {
			continue
		}
		if catalogueSaid(t, "crash", crashed, clock) {
			t.Errorf("crash %d of %d is said to be damage", i, len(crashes))
		}
	}
}
