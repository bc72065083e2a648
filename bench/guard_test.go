package main

import (
	"slices"
	"strings"
	"testing"
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
		g.add(figure{area: "size", what: "a", value: 5, unit: "B"})
		g.add(figure{area: "size", what: "b", value: 7, unit: "B"})
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
