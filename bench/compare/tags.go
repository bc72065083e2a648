package compare

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"

	"dalmatiner/bench/measure"
	"dalmatiner/bench/report"
)

const (
	taggedMetric = "load"
	// tagMessage is how many series are sent together.
	tagMessage = 2000
)

// tag is a name and a value that a series has.
type tag struct{ name, value string }

// tagsOf returns the five tags of a series by their names: ten series are a host's.
func tagsOf(i int) [5]tag {
	host := i / 10
	return [5]tag{
		{"dc", fmt.Sprintf("dc-%d", host%10)},
		{"host", fmt.Sprintf("host-%05d", host)},
		{"item", strconv.Itoa(i % 10)},
		{"rack", fmt.Sprintf("rack-%04d", host%10_000)},
		{"role", fmt.Sprintf("role-%02d", host/10%50)},
	}
}

// lookup is a question for the number of series that have tags.
type lookup struct {
	what    string
	equal   []tag
	pattern tag                      // a regular expression of the whole value; or none
	holds   func(series [5]tag) bool // the same, without either language
}

func lookups() []lookup {
	value := func(want ...tag) func([5]tag) bool {
		return func(series [5]tag) bool {
			found := 0
			for _, t := range series {
				for _, w := range want {
					if t == w {
						found++
					}
				}
			}
			return found == len(want)
		}
	}
	rack, dc, role, item := tag{"rack", "rack-0042"}, tag{"dc", "dc-3"}, tag{"role", "role-13"},
		tag{"item", "7"}
	return []lookup{
		{what: "one value, few", equal: []tag{rack}, holds: value(rack)},
		{what: "one value, a tenth", equal: []tag{dc}, holds: value(dc)},
		{what: "three values", equal: []tag{dc, role, item}, holds: value(dc, role, item)},
		{what: "regular expression", pattern: tag{"host", "host-.*42."}, holds: func(series [5]tag) bool {
			host := series[1].value
			return strings.HasSuffix(host[:len(host)-1], "42")
		}},
	}
}

// want returns the number of series that a lookup finds among the first.
func (l *lookup) want(series int) (n int) {
	for i := range series {
		if l.holds(tagsOf(i)) {
			n++
		}
	}
	return n
}

// tagging is how a store takes series with tags, and is asked for them.
type tagging struct {
	protocol string
	dial     func(ctx context.Context, s *instance) (conn, error)
	// encode appends a message with a point at a second for each of the series from first on.
	encode func(dst []byte, first, n int, at int64) []byte
	ask    func(l *lookup, at int64) (port, path string)
}

// tagLines are lines of Graphite with tags.
var tagLines = tagging{
	protocol: graphiteProtocol, dial: overTCP("graphite"),
	encode: func(dst []byte, first, n int, at int64) []byte {
		for i := first; i < first+n; i++ {
			dst = append(dst, taggedMetric...)
			for _, t := range tagsOf(i) {
				dst = append(append(append(append(dst, ';'), t.name...), '='), t.value...)
			}
			dst = fmt.Appendf(dst, " 1 %d\n", at)
		}
		return dst
	},
	ask: func(l *lookup, at int64) (port, path string) {
		var where []string
		for _, t := range l.equal {
			where = append(where, fmt.Sprintf("%s = '%s'", t.name, t.value))
		}
		if l.pattern.name != "" {
			where = append(where, fmt.Sprintf("%s =~ '%s'", l.pattern.name, l.pattern.value))
		}
		text := fmt.Sprintf("SELECT sum(count(%s FROM %s WHERE %s, 1s)) AFTER %d FOR 1s", taggedMetric,
			graphiteBucket, strings.Join(where, " AND "), at*1000)
		return "http", "/?q=" + url.QueryEscape(text)
	},
}

// tagWrites are requests of remote write.
var tagWrites = tagging{
	protocol: remoteWriteProtocol, dial: overRemoteWrite,
	encode: func(dst []byte, first, n int, at int64) []byte {
		var request []byte
		for i := first; i < first+n; i++ {
			series := appendLabel(nil, "__name__", taggedMetric)
			for _, t := range tagsOf(i) {
				series = appendLabel(series, t.name, t.value)
			}
			request = appendBytes(request, seriesField, appendSample(series, 1, at*1000))
		}
		return s2.EncodeSnappy(nil, request)
	},
	ask: func(l *lookup, at int64) (port, path string) {
		var where []string
		for _, t := range l.equal {
			where = append(where, fmt.Sprintf("%s=%q", t.name, t.value))
		}
		if l.pattern.name != "" {
			where = append(where, fmt.Sprintf("%s=~%q", l.pattern.name, l.pattern.value))
		}
		second := strconv.FormatInt(at, 10)
		v := url.Values{"query": {fmt.Sprintf("count(%s{%s})", taggedMetric, strings.Join(where, ","))},
			"start": {second}, "end": {second}, "step": {"60"}}
		return "http", "/api/v1/query_range?" + v.Encode()
	},
}

// taggedSeries is what many series with tags cost.
type taggedSeries struct {
	seconds  float64 // until all were taken
	cpu      float64 // seconds, until the server was idle again
	resident int64   // bytes then
	disk     int64   // bytes when it has ended
	start    float64 // seconds until it answers, with all of them
	started  int64   // resident bytes then, and idle
	timings  []timing
	err      error
}

// tags measures series with tags: taking them, and finding them behind a restart.
func (m *measurer) tags(ctx context.Context, s *instance, out *taggedSeries) error {
	way, at := s.competitor.tagging, time.Now().Unix()-60
	c, err := way.dial(ctx, s)
	if err != nil {
		return err
	}
	defer c.abandon()
	before, err := s.cpuTime()
	if err != nil {
		return err
	}
	begun := time.Now()
	var message []byte
	for first := 0; first < m.tagged; first += tagMessage {
		message = way.encode(message[:0], first, min(tagMessage, m.tagged-first), at)
		if err := c.send(ctx, message); err != nil {
			return err
		}
	}
	if err := c.finish(ctx); err != nil {
		return err
	}
	out.seconds = time.Since(begun).Seconds()
	if _, err := s.settle(ctx); err != nil {
		return err
	}
	after, err := s.cpuTime()
	if err != nil {
		return err
	}
	out.cpu = (after - before).Seconds()
	if out.resident, _, err = s.memory(); err != nil {
		return err
	}
	if err := s.counted(ctx, int64(m.tagged)); err != nil {
		return err
	}
	if err := s.stop(); err != nil {
		return err
	}
	if out.disk, err = usage(s.dir, []string{"log", "prometheus.yml", "data/cache"}); err != nil {
		return err
	}
	return m.askTags(ctx, s.competitor, s.dir, at, out)
}

// askTags starts a server on a directory and asks it for series by their tags.
func (m *measurer) askTags(ctx context.Context, p *competitor, dir string, at int64,
	out *taggedSeries) error {
	begun := time.Now()
	s, err := startServer(ctx, p, dir)
	if err != nil {
		return err
	}
	defer s.kill()
	out.start = time.Since(begun).Seconds()
	if _, err := s.awaitIdle(ctx); err != nil {
		return err
	}
	if out.started, _, err = s.memory(); err != nil {
		return err
	}
	for _, l := range lookups() {
		q := question{what: l.what, mean: true}
		want := answer{"": {float64(l.want(m.tagged))}}
		port, path := p.tagging.ask(&l, at)
		// What is asked first has nothing kept, and the others nothing of an answer.
		times, err := q.ask(ctx, s, port, path+p.uncached, want)
		if err != nil {
			return err
		}
		t := timing{first: times[0]}
		t.uncached, _ = measure.Median(times[1:])
		if times, err = q.ask(ctx, s, port, path, want); err != nil {
			return err
		}
		t.repeated, _ = measure.Median(times[1:])
		out.timings = append(out.timings, t)
	}
	return nil
}

// renderTags writes the table of series with tags, if they were measured.
func (t *Table) renderTags(w io.Writer) {
	head := []string{"store", "protocol", "s", "CPU s", "MiB", "MiB on disk", "start s", "MiB started"}
	for _, l := range lookups() {
		head = append(head, fmt.Sprintf("%s (%d) ms", l.what, l.want(t.sizes.tagged)))
	}
	lines := [][]string{head}
	for _, o := range t.outcomes {
		r := o.tags
		if r == nil {
			continue
		}
		line := []string{o.competitor.name, o.competitor.tagging.protocol, "FAILED"}
		if r.err == nil {
			line = append(line[:2], measure.Number(r.seconds), measure.Number(r.cpu), mebi(r.resident),
				mebi(r.disk), measure.Number(r.start), mebi(r.started))
			for i := range r.timings {
				line = append(line, r.timings[i].String())
			}
		}
		lines = append(lines, append(line, make([]string, len(head)-len(line))...))
	}
	if len(lines) == 1 {
		return
	}
	fmt.Fprintf(w, "\n## Series with tags\n\n%d new series with five tags each (10, 50, 100,000, "+
		"10,000 and 10 values, of 1,000,000 series) and one point each, over one connection, to a new "+
		"server. "+
		"Seconds until all were taken; processor time and resident memory once it is flushed and idle "+
		"again; all files but caches once it has ended, Prometheus' log among them, as its head has "+
		"written no block; a start with all of it, and the memory then. "+
		"Lookups are questions for the number of series that have a point at one second, `count(…)` in "+
		"PromQL and `sum(count(…, 1s))` here, with the number that each finds: first / uncached / "+
		"repeated, the latter two medians of up to %d; every answer compared.\n\n",
		t.sizes.tagged, repeats)
	report.WriteTable(w, lines)
}
