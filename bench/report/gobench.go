package report

import (
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Benchmark is a measurement in Go's benchmark format: one line, with one
// value or several.
type Benchmark struct {
	Name   string // without "Benchmark" before it; see Name
	Values []Value
}

// Value is a value with its unit as benchstat knows it.
type Value struct {
	Value float64
	Unit  string
}

// Units of figures in Go's benchmark format, where they differ. benchstat puts
// a prefix before "sec" and "B" itself.
var units = map[string]struct {
	unit  string
	scale float64
}{
	"":           {"count", 1},
	"×":          {"ratio", 1},
	"s":          {"sec", 1},
	"ms":         {"sec", 1e-3},
	"ns":         {"sec", 1e-9},
	"MiB":        {"B", 1 << 20},
	"MB":         {"B", 1e6},
	"M points/s": {HigherIsBetter, 1e6},
	"% of CPU":   {"%CPU", 1},
}

// HigherIsBetter is the unit of points that are taken.
const HigherIsBetter = "points/s"

// higherIsBetter are the units in which more is better.
var higherIsBetter = map[string]bool{
	HigherIsBetter: true,
	"MB/s":         true,
	"IOPS":         true,
	"kevents/s":    true,
	"kseries/s":    true,
}

// Benchmarks returns the figures as lines in Go's benchmark format: one for
// each measurement, so that benchstat sees how they vary.
func (t *Table) Benchmarks() []Benchmark {
	var out []Benchmark
	for i := range t.Figures {
		f := &t.Figures[i]
		if f.Failed {
			continue
		}
		samples := f.Samples
		if len(samples) == 0 {
			samples = []float64{f.Value}
		}
		for _, v := range samples {
			out = append(out, Benchmark{Name(f.Area, f.What), []Value{f.goValue(v)}})
		}
	}
	return out
}

// goValue converts a value of the figure.
func (f *Figure) goValue(v float64) Value {
	if u, ok := units[f.Unit]; ok {
		return Value{v * u.scale, u.unit}
	}
	if per, ok := strings.CutPrefix(f.Unit, "a "); ok { // what the area counts, such as allocations
		return Value{v, word(f.Area) + "/" + word(per)}
	}
	return Value{v, strings.Join(strings.Fields(f.Unit), "")}
}

// Name makes the name of a benchmark of texts, each a level of it.
func Name(levels ...string) string {
	var out []string
	for _, l := range levels {
		out = append(out, word(l))
	}
	name := []rune(strings.Join(out, "/"))
	if len(name) > 0 {
		name[0] = unicode.ToUpper(name[0])
	}
	return string(name)
}

// word makes one word of a text: what a name may not have, and hyphens, behind
// which a number would mean GOMAXPROCS, become underscores.
func word(text string) string {
	text = strings.ReplaceAll(text, "÷", "per")
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(".%=", r)
	}), "_")
}

// writeBenchmarks writes lines in Go's benchmark format. What is not to keep
// benchstat from comparing two files, such as the commit, is in comments.
func writeBenchmarks(w io.Writer, h *Head, lines []Benchmark) {
	fmt.Fprintf(w, "# commit %s, source %s, %s, %s, %s\n", h.Machine.Commit, h.Machine.Source,
		h.When(), runtime.Version(), h.Machine.Load)
	fmt.Fprintf(w, "goos: %s\ngoarch: %s\npkg: dalmatiner/bench\ncpu: %s\n", runtime.GOOS,
		runtime.GOARCH, h.Machine.CPU)
	better := map[string]string{}
	for _, l := range lines {
		for _, v := range l.Values {
			better[v.Unit] = "lower"
			if higherIsBetter[v.Unit] {
				better[v.Unit] = "higher"
			}
		}
	}
	for _, unit := range slices.Sorted(maps.Keys(better)) {
		fmt.Fprintf(w, "Unit %s better=%s\n", unit, better[unit])
	}
	for _, l := range lines {
		fmt.Fprintf(w, "Benchmark%s 1", l.Name)
		for _, v := range l.Values {
			fmt.Fprintf(w, " %s %s", strconv.FormatFloat(v.Value, 'g', 10, 64), v.Unit)
		}
		fmt.Fprintln(w)
	}
}
