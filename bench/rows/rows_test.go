package rows

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBenchFigure(t *testing.T) {
	out := "goos: linux\nBenchmarkStreamBatch-2     	   10000	     27007 ns/op	7035.66 " +
		"MB/s	         5.401 ns/point	       0 B/op\nPASS\n"
	if v, ok := benchFigure(out, "ns/point"); !ok || v != 5.401 {
		t.Errorf("got %v %v, want 5.401", v, ok)
	}
	if _, ok := benchFigure(out, "ns/slot"); ok {
		t.Error("a unit that is not there is found")
	}
	if _, ok := benchFigure("PASS\n", "ns/op"); ok {
		t.Error("a benchmark that did not run has a figure")
	}
}

func TestRowsAreChosenByName(t *testing.T) {
	chosen, err := choose("^ingest-1")
	if err != nil || len(chosen) != 2 {
		t.Errorf("got %v, %v, want two rows", chosen, err)
	}
	if _, err := choose("nothing of that name"); err == nil ||
		!strings.Contains(err.Error(), "ingest-200k") {
		t.Errorf("got %v, want the names there are", err)
	}
}

func TestEntropy(t *testing.T) {
	if got := entropy(map[int64]int{1: 5, 2: 5, 3: 5, 4: 5}); got != 2 {
		t.Errorf("four equal values have %v bits, want 2", got)
	}
	if got := entropy(map[int64]int{7: 9}); got != 0 {
		t.Errorf("a constant has %v bits, want 0", got)
	}
	// log2 1000 and the 2.4 bits of the published mix.
	if got := entropyOfUniform(); math.Abs(got-math.Log2(1000)) > 0.01 {
		t.Errorf("uniform values have %v bits, want %v", got, math.Log2(1000))
	}
	if got := entropyOfMix(); math.Abs(got-2.41) > 0.03 {
		t.Errorf("the mix has %v bits, want 2.41", got)
	}
}

func TestDiskUsage(t *testing.T) {
	dir := t.TempDir()
	for path, size := range map[string]int{
		"flush/1.seg": 90, "window/1.seg": 10, "overlay/1.seg": 10, "catalogue/2.sst": 7,
		"wal/3.wal": 1000, "MANIFEST": 3, "VERSION": 1,
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := diskUsage(dir)
	if want := (usage{segments: 110, catalogue: 7, rest: 4, log: 1000}); err != nil || got != want ||
		got.kept() != 121 {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}
