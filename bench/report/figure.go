// Package report holds the results of benchmarks: figures with budgets, tables
// of them in Markdown for people, the same in Go's benchmark format for
// benchstat, and the files that runs write.
package report

import (
	"fmt"
	"strings"

	"dalmatiner/bench/measure"
)

// Figure is one line of a table.
type Figure struct {
	Area, What string
	Value      float64
	Samples    []float64 // the measurements that the value is the median of; nil where there is one
	Unit       string
	Budget     float64 // the value must not be above; 0 is none
	Least      float64 // the value must not be below; 0 is none
	Note       string  // how the figure came about
	Failed     bool    // there is no value
}

// Median returns the figure of several measurements.
func Median(area, what, unit string, samples []float64) Figure {
	f := Figure{Area: area, What: what, Unit: unit, Samples: samples}
	f.Value, _ = measure.Median(samples)
	return f
}

// Within returns the figure with a budget.
func (f Figure) Within(budget float64) Figure { f.Budget = budget; return f }

// Because returns the figure with a note.
func (f Figure) Because(format string, args ...any) Figure {
	f.Note = fmt.Sprintf(format, args...)
	return f
}

// Verdict compares the value with its bound: "ok", "MISS", "FAILED", or ""
// without one.
func (f *Figure) Verdict() string {
	switch {
	case f.Failed:
		return "FAILED"
	case f.Budget == 0 && f.Least == 0:
		return ""
	case f.Budget != 0 && f.Value > f.Budget, f.Value < f.Least:
		return "MISS"
	}
	return "ok"
}

// Cells returns the figure as a line for WriteTable: area, figure, value,
// budget, verdict, note.
func (f *Figure) Cells() []string {
	value := ""
	if !f.Failed {
		value = measure.Number(f.Value) + " " + f.Unit
	}
	if len(f.Samples) > 0 {
		if _, spread := measure.Median(f.Samples); spread[0] != spread[1] {
			value += fmt.Sprintf(" (%s–%s)", measure.Number(spread[0]), measure.Number(spread[1]))
		}
	}
	budget := ""
	switch {
	case f.Budget != 0:
		budget = "≤ " + measure.Number(f.Budget)
	case f.Least != 0:
		budget = "≥ " + measure.Number(f.Least)
	}
	cells := []string{f.Area, f.What, value, budget, f.Verdict(), f.Note}
	for i := range cells {
		cells[i] = strings.NewReplacer("|", `\|`, "\n", " ").Replace(cells[i])
	}
	return cells
}
