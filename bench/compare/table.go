package compare

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"dalmatiner/bench/corpus"
	"dalmatiner/bench/measure"
	"dalmatiner/bench/report"
)

// Table is what a run found. The first outcome is the store's.
type Table struct {
	head      report.Head
	loadAfter string // average, at the end
	sizes     sizes
	quick     bool
	outcomes  []*outcome
	corpora   []*corpus.Corpus
	bounds    []bound
}

// Failures returns what failed: a competitor that cannot be had is no failure.
func (t *Table) Failures() error {
	var errs []error
	for _, o := range t.outcomes {
		for _, l := range o.loads {
			errs = append(errs, named(o, l.protocol, l.err))
		}
		errs = append(errs, named(o, "live", o.liveErr), named(o, "day", o.dayErr),
			named(o, "queries", o.askErr), named(o, "recordings", o.recordingErrors()))
		if o.tags != nil {
			errs = append(errs, named(o, "tags", o.tags.err))
		}
	}
	return errors.Join(errs...)
}

func named(o *outcome, part string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s, %s: %w", o.competitor.name, part, err)
}

var heads = []string{
	"store", "protocol", "rows", "CPU s / M points", "M points/s", "peak MiB", "bytes / point",
	"cores", "MiB",
	"Q1 ms", "Q2 ms", "Q3 ms",
	"CPU, protocol", "CPU, best", "peak", "bytes", "cores", "Q1", "Q2", "Q3",
}

// Render writes the table as Markdown, its columns aligned for those who read
// it as text.
func (t *Table) Render(w io.Writer) {
	fmt.Fprintf(w, "# The store beside others, %s\n\n%sAt the end: %s.%s\n\n", t.head.When(),
		t.head.Machine, t.loadAfter, t.warning())
	t.renderShort(w)
	d := t.sizes.day
	fmt.Fprintf(w, "## Everything\n\nSent was haggar's mix, to one store at a time. CPU, rate and "+
		"peak memory: %d known series in rows of a second, as many as the column tells, as fast as "+
		"they are taken, flushed and merged. "+
		"Cores and MiB: %d series that send a point a second, for %.0f s; in parentheses the share of "+
		"the points that could be sent in time, where some could not. Bytes and queries: %d series for "+
		"a day and %d for its last hour, flushed and merged; "+
		"queries over HTTP of a process that has just started: first / uncached / repeated, the latter "+
		"two medians of up to %d; uncached is without answers that are kept, repeated with them; every "+
		"answer compared with what was sent. "+
		"The columns after Q3 tell how many times the store's figure it is: over the same protocol, "+
		"else over each one's best; of queries uncached / repeated.\n\n",
		t.sizes.series, t.sizes.live, t.sizes.liveMeasured.Seconds(), d.long, d.wide, repeats)
	lines := [][]string{heads}
	for _, o := range t.outcomes {
		lines = append(lines, t.rows(o)...)
	}
	report.WriteTable(w, lines)
	t.renderRecordings(w)
	t.renderTags(w)
	fmt.Fprintf(w, "\n| store | version | settings beside its defaults | points are on disk | notes "+
		"|\n| --- | --- | --- | --- | --- |\n")
	for _, o := range t.outcomes {
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", o.competitor.name, o.version,
			o.competitor.settings, o.competitor.fsync, cell(strings.Join(t.notes(o), "; ")))
	}
}

func (t *Table) warning() string {
	if t.quick {
		return " **Measured with -quick, a tenth of everything: to try, not to compare.**"
	}
	return ""
}

func cell(text string) string { return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text) }

// Head tells where and when it was measured.
func (t *Table) Head() *report.Head { return &t.head }

// Benchmarks returns the table in Go's benchmark format.
func (t *Table) Benchmarks() []report.Benchmark {
	var out []report.Benchmark
	for _, o := range t.outcomes {
		store := "store=" + o.competitor.name
		add := func(what string, values ...report.Value) {
			out = append(out, report.Benchmark{Name: report.Name("compare", store, what), Values: values})
		}
		for _, l := range o.loads {
			if l.err == nil {
				add("protocol="+l.protocol, report.Value{Value: l.cpu / 1e6, Unit: "sec/point"},
					report.Value{Value: l.rate * 1e6, Unit: report.HigherIsBetter},
					report.Value{Value: float64(l.peak), Unit: "B-resident"})
			}
		}
		if o.skipped == nil && o.liveErr == nil {
			add("live", report.Value{Value: o.cores, Unit: "cores"},
				report.Value{Value: float64(o.resting), Unit: "B-resident"})
		}
		if o.space > 0 {
			add("space", report.Value{Value: o.space, Unit: "B/point"})
		}
		for i, q := range o.timings {
			add(fmt.Sprintf("Q%d", i+1), report.Value{Value: q.first / 1e3, Unit: "first-sec"},
				report.Value{Value: q.uncached / 1e3, Unit: "uncached-sec"},
				report.Value{Value: q.repeated / 1e3, Unit: "repeated-sec"})
		}
		if o.tags != nil && o.tags.err == nil {
			o.tags.benchmarks(add)
		}
		for _, r := range o.recorded {
			if r.err == nil {
				add("recording="+strings.TrimSpace(r.name+" "+r.what),
					report.Value{Value: r.space, Unit: "B/point"})
			}
		}
	}
	return out
}

// benchmarks returns what series with tags cost in Go's benchmark format.
func (r *taggedSeries) benchmarks(add func(what string, values ...report.Value)) {
	add("tags", report.Value{Value: r.seconds, Unit: "sec"},
		report.Value{Value: float64(r.resident), Unit: "B-resident"},
		report.Value{Value: float64(r.disk), Unit: "B-disk"})
	for i, l := range lookups() {
		t := r.timings[i]
		add("tags/"+l.what, report.Value{Value: t.first / 1e3, Unit: "first-sec"},
			report.Value{Value: t.uncached / 1e3, Unit: "uncached-sec"},
			report.Value{Value: t.repeated / 1e3, Unit: "repeated-sec"})
	}
}

// rows returns the lines of a competitor: one for every protocol, the figures that
// do not depend on it in the first.
func (t *Table) rows(o *outcome) [][]string {
	if o.skipped != nil {
		return [][]string{
			append([]string{o.competitor.name, "SKIPPED"}, slices.Repeat([]string{""}, len(heads)-2)...)}
	}
	own := t.outcomes[0]
	var rows [][]string
	loads := o.loads
	if len(loads) == 0 { // that part was not chosen
		loads = []loaded{{}}
	}
	for i, l := range loads {
		row := []string{o.competitor.name, l.protocol, fmt.Sprint(l.rows)}
		ratios := slices.Repeat([]string{""}, 8)
		switch {
		case l.err != nil:
			row = append(row, "FAILED", "", "")
		case l.rows == 0:
			row = append(row[:2], "", "", "", "")
		default:
			row = append(row, measure.Number(l.cpu), measure.Number(l.rate), mebi(l.peak))
			if same := own.over(l.protocol); same != nil {
				ratios[0] = times(l.cpu, same.cpu)
			}
			if best := own.best(); i == 0 && best != nil {
				ratios[1], ratios[2] = times(l.cpu, best.cpu), times(float64(l.peak), float64(best.peak))
			}
		}
		rest := slices.Repeat([]string{""}, 6)
		if i == 0 {
			t.once(o, rest, ratios)
		}
		rows = append(rows, slices.Concat(row, rest, ratios))
	}
	return rows
}

// inTime is the share of the live load's points below which its figure is not
// set in proportion: of so many fewer points, it is another load's.
const inTime = 0.97

// once fills in the figures of a competitor that are taken over its best protocol
// only.
func (t *Table) once(o *outcome, rest, ratios []string) {
	own := t.outcomes[0]
	switch {
	case o.dayErr != nil:
		rest[0] = "FAILED"
	case o.space > 0:
		rest[0], ratios[3] = measure.Number(o.space), times(o.space, own.space)
	}
	switch {
	case o.liveErr != nil:
		rest[1] = "FAILED"
	case o.cores > 0:
		rest[1], rest[2], ratios[4] = measure.Number(o.cores), mebi(o.resting), times(o.cores, own.cores)
		if o.share < inTime {
			rest[1], ratios[4] = fmt.Sprintf("%s (%.0f %%)", rest[1], 100*o.share), ""
		}
	}
	for i := range 3 {
		switch {
		case i < len(o.timings):
			rest[3+i] = o.timings[i].String()
			if i < len(own.timings) {
				a, b := &o.timings[i], &own.timings[i]
				ratios[5+i] = times(a.uncached, b.uncached) + " / " + times(a.repeated, b.repeated)
			}
		case o.askErr != nil || o.dayErr != nil:
			rest[3+i] = "FAILED"
		}
	}
}

// over returns what the store's load over a protocol cost, best what its best
// did; nil is none.
func (o *outcome) over(protocol string) *loaded {
	for i := range o.loads {
		if l := &o.loads[i]; l.protocol == protocol && l.err == nil {
			return l
		}
	}
	return nil
}

func (o *outcome) best() *loaded { return o.over(o.competitor.protocols[0].name) }

func times(v, own float64) string {
	if own <= 0 {
		return ""
	}
	return measure.Number(v/own) + " ×"
}

func mebi(bytes int64) string { return fmt.Sprint(bytes >> 20) }

// notes are what a reader must know of a competitor beside the figures.
func (t *Table) notes(o *outcome) []string {
	notes := slices.Clone(o.notes)
	if o.skipped != nil {
		notes = append(notes, "SKIPPED, it cannot be had: "+o.skipped.Error())
	}
	for _, l := range o.loads {
		if l.note != "" {
			notes = append(notes, l.protocol+": "+strings.TrimSuffix(l.note, "; "))
		}
		if l.err != nil {
			notes = append(notes, l.protocol+" FAILED: "+l.err.Error())
		}
	}
	for _, part := range []struct {
		name string
		err  error
	}{{"live", o.liveErr}, {"day", o.dayErr}, {"queries", o.askErr},
		{"recordings", o.recordingErrors()}} {
		if part.err != nil {
			notes = append(notes, part.name+" FAILED: "+part.err.Error())
		}
	}
	return notes
}
