package compare

import (
	"fmt"
	"io"
	"strings"

	"dalmatiner/bench/measure"
	"dalmatiner/bench/report"
)

// renderShort writes what README.md has of the page: for each store its best
// protocol, and bytes per point of the generated mix and of the recordings.
func (t *Table) renderShort(w io.Writer) {
	fmt.Fprintf(w, "## In short\n\n")
	lines := [][]string{{"", "CPU s / M points", "cores", "MiB, live", "Q1 ms", "Q2 ms", "Q3 ms"}}
	sizes := []string{"bytes / point", "generated"}
	for _, c := range t.corpora {
		sizes = append(sizes, c.Name)
	}
	spaces := [][]string{sizes}
	for _, o := range t.outcomes {
		if o.skipped != nil {
			continue
		}
		line := []string{title(o, ""), "", "", "", "", "", ""}
		if best := o.best(); best != nil {
			line[1] = measure.Number(best.cpu)
		}
		if o.liveErr == nil && o.cores > 0 {
			line[2], line[3] = measure.Number(o.cores), mebi(o.resting)
		}
		for i := range o.timings {
			line[4+i] = o.timings[i].String()
		}
		lines = append(lines, line)
		for i, way := range o.competitor.playings {
			mix := 0.0
			if i == 0 {
				mix = o.space
			}
			spaces = append(spaces, t.short(title(o, way.what), mix, o.spacesOf(way.what)))
		}
		if len(o.competitor.playings) == 0 {
			spaces = append(spaces, t.short(title(o, ""), o.space, o.spacesOf("")))
		}
	}
	for _, program := range t.programs() {
		spaces = append(spaces, t.short("bound: "+program, 0, t.boundsOf(program)))
	}
	report.WriteTable(w, lines)
	fmt.Fprintln(w)
	report.WriteTable(w, spaces)
	fmt.Fprintln(w)
}

// title returns the name of a store and of what it keeps.
func title(o *outcome, what string) string {
	name := strings.ToUpper(o.competitor.name[:1]) + o.competitor.name[1:]
	if what != "" {
		name += ", " + what
	}
	return name
}

// short is a line of sizes; what was not measured is empty.
func (t *Table) short(name string, mix float64,
	of func(recording string) (space float64, ok bool)) []string {
	line := []string{name, ""}
	if mix > 0 {
		line[1] = measure.Number(mix)
	}
	for _, c := range t.corpora {
		cell := ""
		if space, ok := of(c.Name); ok && space > 0 {
			cell = measure.Number(space)
		}
		line = append(line, cell)
	}
	return line
}
