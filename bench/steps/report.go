package steps

import (
	"fmt"
	"io"
	"strings"

	"dalmatiner/bench/measure"
	"dalmatiner/bench/report"
)

// Render writes the table in the columns of the published one, and what those
// do not tell.
func (r *Result) Render(w io.Writer) {
	fmt.Fprintf(w, "# Load in steps, %s\n\n%s\n", r.head.When(), r.head.Machine)
	fmt.Fprintf(w, "%d senders of %d k series each, classic stream in batches, beside the server "+
		"**on the same cores**; steps of %.0f s, of which the first %.0f s are not in the line; the "+
		"server on its defaults.\n",
		len(r.senders), stepParts, r.length.Seconds(), stepSettle.Seconds())
	fmt.Fprint(w, "Met: points offered a second. Mputs: millions of points stored a second. 99p: "+
		"from sending a point until another connection has read it. ",
		"Ack 99p: of an acknowledged flush of one point, which waits for the log's sync, every "+
			"`wal.interval` (1 s). ",
		"CPU: of the server, in cores, and of the senders. IO: to and from storage, per second. "+
			"Errors: points refused; a failed connection would end the run.\n\n")
	lines := [][]string{
		{"Server", "Time", "Met [k]", "Mputs", "99p [us]", "CPU", "write IO", "read IO", "errors",
			"ack 99p [ms]", "senders' CPU", "memory"}}
	for i := range r.steps {
		s := &r.steps[i]
		lines = append(lines, []string{
			"ddb", fmt.Sprintf("%d:%02d", int(s.begin.Minutes()), int(s.begin.Seconds())%60),
			fmt.Sprintf("%.0f", s.offered/1e3), measure.Number(s.stored() / 1e6),
			fmt.Sprint(p99(s.visible).Microseconds()), fmt.Sprintf("%.2f", s.cores()),
			measure.Number(s.writtenRate()/(1<<20)) + " MiB", measure.Number(s.readRate()/(1<<20)) + " MiB",
			fmt.Sprint(s.errors),
			fmt.Sprint(p99(s.durable).Milliseconds()), fmt.Sprintf("%.2f", s.senderCores()),
			fmt.Sprintf("%.0f MiB", measure.Mebi(s.resident)),
		})
	}
	report.WriteTable(w, lines)
	fmt.Fprintf(w, "\n%s\n", r.verdict())
}

// verdict tells what became of the store after the overload.
func (r *Result) verdict() string {
	over, ok := r.overload()
	if !ok {
		return "No step was beyond what the store takes."
	}
	most := 0
	for i := range r.steps[:over+1] {
		if r.steps[i].stored() > r.steps[most].stored() {
			most = i
		}
	}
	said := []string{fmt.Sprintf("On the way up it stored most, %.2f M points/s, at %.0f k offered.",
		r.steps[most].stored()/1e6, r.steps[most].offered/1e3)}
	for i := range r.steps[:over] {
		for j := over + 1; j < len(r.steps); j++ {
			if up, down := &r.steps[i], &r.steps[j]; up.offered == down.offered {
				said = append(said,
					fmt.Sprintf("At %.0f k the 99p was %d us before the overload and %d us after it, stored "+
						"%.3f and %.3f M points/s.",
						up.offered/1e3, p99(up.visible).Microseconds(), p99(down.visible).Microseconds(),
						up.stored()/1e6, down.stored()/1e6))
			}
		}
	}
	if after, ok := r.recovered(over); ok {
		said = append(said,
			fmt.Sprintf("%.0f s after the last step beyond its capacity it stored what was offered.", after))
	} else {
		said = append(said, "After the overload it did not store again what was offered.")
	}
	said = append(said, fmt.Sprintf("All %d points that were sent are in the account.", r.sent))
	return strings.Join(said, "\n")
}

// servedShare of what is offered counts as all of it: seconds are not exactly
// seconds.
const servedShare = 0.95

// overload returns the last step that was beyond the capacity.
func (r *Result) overload() (last int, ok bool) {
	for i := range r.steps {
		if s := &r.steps[i]; s.stored() < servedShare*s.offered {
			last, ok = i, true
		}
	}
	return last, ok
}

// recovered returns the seconds from the end of a step until what was offered
// was stored.
func (r *Result) recovered(over int) (after float64, ok bool) {
	ended := (r.steps[over].begin + r.length).Seconds()
	for _, s := range r.seconds {
		if s.at > ended && s.stored >= servedShare*s.offered {
			return s.at - ended, true
		}
	}
	return 0, false
}

// Benchmarks returns the steps in Go's benchmark format, a line for each.
func (r *Result) Benchmarks() []report.Benchmark {
	var out []report.Benchmark
	for i := range r.steps {
		s := &r.steps[i]
		name := report.Name("steps", fmt.Sprintf("step=%02d", i+1),
			fmt.Sprintf("offered=%.0fk", s.offered/1e3))
		out = append(out, report.Benchmark{Name: name, Values: []report.Value{
			{Value: s.stored(), Unit: report.HigherIsBetter},
			{Value: p99(s.visible).Seconds(), Unit: "sec-until-readable-p99"},
			{Value: p99(s.durable).Seconds(), Unit: "sec-until-durable-p99"},
			{Value: s.cores(), Unit: "cores"}, {Value: s.writtenRate(), Unit: "B-written/s"},
			{Value: s.readRate(), Unit: "B-read/s"},
			{Value: float64(s.errors), Unit: "errors"}, {Value: float64(s.resident), Unit: "B-resident"},
		}})
	}
	return out
}

// Head tells where and when it was measured.
func (r *Result) Head() *report.Head { return &r.head }

// Charts returns the files with the charts of the run by their names.
func (r *Result) Charts() map[string][]byte {
	out := map[string][]byte{}
	for name, c := range r.charts() {
		out[name] = c.svg()
	}
	return out
}

// charts draws the run.
func (r *Result) charts() map[string]*chart {
	pick := func(name, color string, of func(*second) float64) line {
		l := line{name: name, color: color}
		for i := range r.seconds {
			l.dots = append(l.dots, [2]float64{r.seconds[i].at, of(&r.seconds[i])})
		}
		return l
	}
	return map[string]*chart{
		"steps-rate.svg": {title: "Points a second, offered and stored", log: true, lines: []line{
			pick("offered", "#bbbbbb", func(s *second) float64 { return s.offered }),
			pick("stored", "#1668b8", func(s *second) float64 { return s.stored }),
		}},
		"steps-latency.svg": {title: "99th percentile in seconds", log: true, lines: []line{
			pick("until acknowledged as durable", "#bbbbbb", func(s *second) float64 { return s.durable }),
			pick("until readable", "#c0392b", func(s *second) float64 { return s.visible }),
		}},
		"steps-cpu.svg": {title: "Cores that the server used", lines: []line{
			pick("server", "#2e7d32", func(s *second) float64 { return s.cpu }),
		}},
	}
}
