package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"dalmatiner/bench/measure"
)

// Head tells what was measured, where and when.
type Head struct {
	Machine measure.Machine
	Begun   time.Time
}

// When prints the time of the start.
func (h *Head) When() string { return h.Begun.UTC().Format("2006-01-02 15:04 UTC") }

// Table is what a run found.
type Table struct {
	Head
	Figures []Figure
}

// Add adds a figure.
func (t *Table) Add(f Figure) { t.Figures = append(t.Figures, f) }

// Render writes the table as Markdown.
func (t *Table) Render(w io.Writer) {
	lines := [][]string{{"part", "figure", "measured", "budget", "", "how"}}
	misses := 0
	for i := range t.Figures {
		f := &t.Figures[i]
		if v := f.Verdict(); v == "MISS" || v == "FAILED" {
			misses++
		}
		lines = append(lines, f.Cells())
	}
	fmt.Fprintf(w, "# Benchmark of %s\n\n%s\n%d of %d figures miss their budget. Processor time is "+
		"the server's alone; a range is the least and the most of the runs a median is of.\n\n",
		t.When(), t.Machine, misses, len(t.Figures))
	WriteTable(w, lines)
}

// WriteTable writes lines as a table in Markdown, the first one as its head,
// with columns aligned for those who read it as text.
func WriteTable(w io.Writer, lines [][]string) {
	rule := make([]string, len(lines[0]))
	for i := range rule {
		rule[i] = "---"
	}
	lines = slices.Insert(slices.Clone(lines), 1, rule)
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
