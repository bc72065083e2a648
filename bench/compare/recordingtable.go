package compare

import (
	"fmt"
	"io"
	"slices"

	"dalmatiner/bench/measure"
	"dalmatiner/bench/report"
)

// String returns a timing for a cell of the table.
func (t *timing) String() string {
	return measure.Number(t.first) + " / " + measure.Number(t.uncached) + " / " +
		measure.Number(t.repeated)
}

// relative is the competitor that sizes are set in proportion to.
const relative = "VictoriaMetrics"

// renderRecordings writes the table of the recordings, if they were measured: a
// line for each way in which a store takes them, and for each bound.
func (t *Table) renderRecordings(w io.Writer) {
	if len(t.corpora) == 0 {
		return
	}
	fmt.Fprintf(w, "\nRecordings of real series (bench/corpus/DESIGN.md), each to a new server, "+
		"flushed and merged, in bytes per point; all files but logs and caches, once it has ended. "+
		"The last columns are ratios to %s. The bounds are of a file's columns as a whole: names, "+
		"times, differences of values.\n\n", relative)
	head := []string{"store", "keeps"}
	for _, c := range t.corpora {
		head = append(head, c.Name)
	}
	for _, c := range t.corpora {
		head = append(head, c.Name+" ×")
	}
	sizes := []string{"points", ""}
	for _, c := range t.corpora {
		sizes = append(sizes, fmt.Sprint(c.Points()))
	}
	for range t.corpora {
		sizes = append(sizes, "")
	}
	lines := [][]string{head, sizes}
	for _, o := range t.outcomes {
		for _, way := range o.competitor.playings {
			lines = append(lines, t.spaces(o.competitor.name, way.what, o.spacesOf(way.what)))
		}
	}
	for _, program := range t.programs() {
		lines = append(lines, t.spaces("bound", program, t.boundsOf(program)))
	}
	report.WriteTable(w, lines)
}

// programs are those that bounds were taken with.
func (t *Table) programs() []string {
	var out []string
	for _, b := range t.bounds {
		if !slices.Contains(out, b.program) {
			out = append(out, b.program)
		}
	}
	return out
}

// boundsOf returns what tells of a recording what a program makes of it.
func (t *Table) boundsOf(program string) func(recording string) (space float64, ok bool) {
	return func(recording string) (float64, bool) {
		for _, b := range t.bounds {
			if b.program == program && b.name == recording {
				return b.space, true
			}
		}
		return 0, true
	}
}

// spaces is a line of the table of recordings. of returns the space of one; not
// ok where it failed, 0 where it was not measured.
func (t *Table) spaces(name, what string,
	of func(recording string) (space float64, ok bool)) []string {
	line, ratios := []string{name, what}, []string{}
	for _, c := range t.corpora {
		space, ok := of(c.Name)
		cell, ratio := measure.Number(space), ""
		switch {
		case !ok:
			cell = "FAILED"
		case space == 0:
			cell = ""
		default:
			if to, ok := t.relativeTo(c.Name); ok {
				ratio = times(space, to)
			}
		}
		line, ratios = append(line, cell), append(ratios, ratio)
	}
	return append(line, ratios...)
}

// spacesOf returns what tells of a recording what it took in a way; not ok where
// that failed.
func (o *outcome) spacesOf(what string) func(recording string) (space float64, ok bool) {
	return func(recording string) (float64, bool) {
		for _, r := range o.recorded {
			if r.what == what && r.name == recording {
				return r.space, r.err == nil
			}
		}
		return 0, true
	}
}

// relativeTo returns what a recording took in the competitor to which the others
// are set in proportion; not ok where it was not measured.
func (t *Table) relativeTo(name string) (space float64, ok bool) {
	for _, o := range t.outcomes {
		if o.competitor.name == relative {
			space, ok = o.spacesOf("")(name)
			return space, ok && space > 0
		}
	}
	return 0, false
}
