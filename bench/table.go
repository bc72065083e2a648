package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"dalmatiner/bench/measure"
)

// figure is one line of the table.
type figure struct {
	area, what string
	value      float64
	spread     [2]float64 // least and most of several measurements, or zero
	unit       string
	budget     float64 // the value must not be above; 0 is none
	note       string  // how the figure came about
	failed     bool    // there is no value
}

// verdict compares the value with the budget.
func (f *figure) verdict() string {
	switch {
	case f.failed:
		return "FAILED"
	case f.budget == 0:
		return ""
	case f.value <= f.budget:
		return "ok"
	}
	return "MISS"
}

func (f *figure) cells() []string {
	value := ""
	if !f.failed {
		value = measure.Number(f.value) + " " + f.unit
	}
	if f.spread[0] != f.spread[1] {
		value += fmt.Sprintf(" (%s–%s)", measure.Number(f.spread[0]), measure.Number(f.spread[1]))
	}
	budget := ""
	if f.budget != 0 {
		budget = "≤ " + measure.Number(f.budget)
	}
	cells := []string{f.area, f.what, value, budget, f.verdict(), f.note}
	for i := range cells {
		cells[i] = strings.NewReplacer("|", `\|`, "\n", " ").Replace(cells[i])
	}
	return cells
}

// table is what a run found.
type table struct {
	machine string
	begun   time.Time
	figures []figure
}

func (t *table) add(f figure) { t.figures = append(t.figures, f) }

// render writes the table as Markdown, its columns aligned for those who read
// it as text.
func (t *table) render(w io.Writer) {
	lines := [][]string{{"part", "figure", "measured", "budget", "", "how"}}
	misses := 0
	for i := range t.figures {
		f := &t.figures[i]
		if v := f.verdict(); v == "MISS" || v == "FAILED" {
			misses++
		}
		lines = append(lines, f.cells())
	}
	fmt.Fprintf(w, "# Benchmark of %s\n\n%s\n%d of %d figures miss their budget. Processor time is the server's alone; a range is the least and the most of the runs a median is of.\n\n",
		t.begun.UTC().Format("2006-01-02 15:04 UTC"), t.machine, misses, len(t.figures))
	writeTable(w, lines)
}

// writeTable writes lines as a table in Markdown, the first one as its head.
func writeTable(w io.Writer, lines [][]string) {
	rule := make([]string, len(lines[0]))
	for i := range rule {
		rule[i] = "---"
	}
	lines = slices.Insert(lines, 1, rule)
	widths := make([]int, len(lines[0])-1) // the last column is as long as it is
	for _, l := range lines {
		for i := range widths {
			widths[i] = max(widths[i], len([]rune(l[i])), len("---"))
		}
	}
	for _, l := range lines {
		for i, c := range l {
			if i < len(widths) {
				c += strings.Repeat(" ", widths[i]-len([]rune(c)))
			}
			fmt.Fprintf(w, "| %s ", c)
		}
		fmt.Fprintln(w, "|")
	}
}
