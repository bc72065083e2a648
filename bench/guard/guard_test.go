package guard

import (
	"slices"
	"strings"
	"testing"

	"dalmatiner/bench/report"
)

func TestTheGuardFailsWhereABoundIsBroken(t *testing.T) {
	for _, c := range []struct {
		name   string
		bounds map[string]float64
		says   string // "" for no failure
	}{
		{"at its bound", map[string]float64{"size: a": 5, "size: b": 7}, ""},
		{"above", map[string]float64{"size: a": 4.9, "size: b": 7}, "size: a is 5 B, the bound is 4.9"},
		{"without one", map[string]float64{"size: a": 5}, `"size: b": 7`},
		{"of nothing", map[string]float64{"size: a": 0, "size: b": 7}, "size: a is 5 B, the bound is 0"},
	} {
		g := &guarded{bounds: c.bounds, skipped: []string{"instructions: there is no way"}}
		g.add(report.Figure{Area: "size", What: "a", Value: 5, Unit: "B"})
		g.add(report.Figure{Area: "size", What: "b", Value: 7, Unit: "B"})
		var out strings.Builder
		err := g.report(&out)
		if (c.says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
		if !strings.Contains(out.String(), "*** skipped: instructions: there is no way ***") {
			t.Errorf("%s: what was skipped is not told in %s", c.name, out.String())
		}
	}
}

// Every operation runs, more than once, and every bound is of something that is
// measured.
func TestOperationsRun(t *testing.T) {
	ops, err := newOperations(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, op := range ops.list {
		names = append(names, op.name)
		for range 3 {
			if err := op.run(); err != nil {
				t.Errorf("%s: %v", op.name, err)
			}
		}
	}
	if err := ops.store.Close(); err != nil {
		t.Error(err)
	}
	for name := range bounds {
		area, what, _ := strings.Cut(name, ": ")
		if area == "instructions" && !slices.Contains(names, what) {
			t.Errorf("a bound for %s, which is no operation: %q", name, names)
		}
	}
}

// No two figures have the same name in Go's benchmark format: benchstat would
// take them for two measurements of one.
func TestNamesDiffer(t *testing.T) {
	seen := map[string]string{}
	for bound := range bounds {
		area, what, _ := strings.Cut(bound, ": ")
		name := report.Name(area, what)
		if other, ok := seen[name]; ok {
			t.Errorf("%q and %q are both %s", bound, other, name)
		}
		seen[name] = bound
	}
}
