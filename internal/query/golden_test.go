package query_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/model/term"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/store/eventstest"
	"dalmatiner/internal/testkit/golden"
)

// TestGolden runs the files of testdata. DESIGN.md describes their form.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.dql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden.Same(t, file, runScript(t, string(text)))
		})
	}
}

// script is the state of a test file.
type script struct {
	t      *testing.T
	source *memory
	engine *query.Engine
	now    int64
	rounds int64 // slots in a round; 0 = as in production
	both   bool  // with compat, too
	index  *indexed
	events eventstest.Store
}

// runScript returns text with the results of its queries filled in.
func runScript(t *testing.T, text string) string {
	s := &script{t: t, source: newMemory(t)}
	s.engine = &query.Engine{Source: sourceOf(s.source), Events: &s.events, Now: func() time.Time {
		return time.UnixMilli(s.now)
	}}
	var out strings.Builder
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		out.WriteString(lines[i] + "\n")
		words := strings.Fields(lines[i])
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if words[0] != "query" {
			s.command(words)
			continue
		}
		var q []string
		for i++; i < len(lines) && lines[i] != "----"; i++ {
			q = append(q, lines[i])
			out.WriteString(lines[i] + "\n")
		}
		text := strings.Join(q, "\n")
		result := s.query(text, query.Options{})
		out.WriteString("----\n" + result)
		if old := s.query(text, query.Options{Compat: true}); s.both && old != result {
			out.WriteString("---- compat\n" + old)
		}
		for ; i+1 < len(lines) && lines[i+1] != ""; i++ {
		}
	}
	return out.String()
}

func (s *script) number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *script) command(words []string) {
	switch {
	case words[0] == "now" && len(words) == 2:
		s.now = s.number(words[1])
	case words[0] == "index" && len(words) == 1:
		s.index = withTags(s.source)
		s.engine.Source = sourceOf(s.index)
	case words[0] == "tag" && len(words) >= 4:
		s.tag(words[1:])
	case words[0] == "event" && len(words) >= 4:
		s.event(words[1], s.number(words[2]), strings.Join(words[3:], " "))
	case words[0] == "gap" && len(words) == 4:
		s.events.Gaps = append(s.events.Gaps,
			events.Gap{Start: s.number(words[1]), End: s.number(words[2]), Events: s.number(words[3])})
	case words[0] == "compat" && len(words) == 1:
		s.both = true
	case words[0] == "rounds" && len(words) == 2:
		s.rounds = s.number(words[1])
	case words[0] == "bucket" && len(words) == 4:
		s.source.addBucket(words[1], s.number(words[2]), s.number(words[3]))
	case words[0] == "limits" && len(words) == 5:
		s.engine.Limits = query.Limits{MaxPoints: s.number(words[1]), MaxSeries: s.number(words[2]),
			MaxOutput: s.number(words[3]), MaxMemory: s.number(words[4])}
	case words[0] == "load" && len(words) >= 5 && words[3][0] == '@':
		q, err := dql.Parse("SELECT " + words[2] + " BUCKET x LAST 1s")
		if err != nil {
			s.t.Fatal(err)
		}
		var run []uint64
		for _, item := range words[4:] {
			run = s.appendItem(run, item)
		}
		s.source.load(words[1], q.Fields[0].Expr.(*dql.Select).Metric.Key, s.number(words[3][1:]), run)
	default:
		s.t.Fatalf("unknown command %q", words)
	}
}

// event stores an event of a time in nanoseconds.
func (s *script) event(bucket string, at int64, text string) {
	body, err := term.AppendFromJSON(nil, []byte(text))
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.events.Write(bucket, []events.Event{{Time: at, Body: body}}); err != nil {
		s.t.Fatal(err)
	}
}

// appendItem appends the points of one item: v, vxN, v+dxN, v-dxN, or _ and
// _xN for unset slots. Values with a dot are floats.
func (s *script) appendItem(dst []uint64, item string) []uint64 {
	item, count, repeated := strings.Cut(item, "x")
	n := int64(1)
	if repeated {
		n = s.number(count)
	}
	value, step := item, "0"
	if i := strings.LastIndexAny(item, "+-"); i > 0 {
		value, step = item[:i], item[i:]
	}
	for i := range n {
		switch {
		case value == "_":
			dst = append(dst, point.Unset)
		case strings.Contains(item, ".") || value == "NaN" || value == "Inf":
			dst = append(dst, point.FromFloat(s.float(value)+float64(i)*s.float(step)))
		default:
			dst = append(dst, point.FromInt(s.number(value)+i*s.number(step)))
		}
	}
	return dst
}

func (s *script) float(text string) float64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

func (s *script) query(text string, opt query.Options) string {
	r, err := s.engine.WithRounds(s.rounds).Query(context.Background(), text, opt)
	if err != nil {
		kind := "error"
		for name, target := range map[string]error{
			"unsupported": query.ErrUnsupported, "no results": query.ErrNoResults,
			"unknown bucket": buckets.ErrUnknown,
		} {
			if errors.Is(err, target) {
				kind = name
			}
		}
		if limit := (*query.LimitError)(nil); errors.As(err, &limit) {
			kind = "limit"
		}
		return kind + ": " + err.Error() + "\n"
	}
	if r.Plan != nil {
		return r.Plan.String()
	}
	var out strings.Builder
	fmt.Fprintf(&out, "start %d\n", r.Start)
	for _, one := range r.Series {
		fmt.Fprintf(&out, "%s res %d coverage %.3g:", one.Name, one.Resolution, one.Coverage)
		if one.Unknown != nil {
			fmt.Fprintf(&out, " unknown %v:", one.Unknown)
		}
		for _, v := range one.Values {
			out.WriteString(" " + strconv.FormatFloat(v, 'g', -1, 64))
		}
		if one.Metadata != nil {
			fmt.Fprintf(&out, " %v", one.Metadata)
		}
		out.WriteString("\n")
		if one.Times != nil {
			out.WriteString("  from")
			for _, ms := range one.Times {
				out.WriteString(time.UnixMilli(ms).UTC().Format(" 2006-01-02T15:04"))
			}
			out.WriteString("\n")
		}
	}
	for _, u := range r.Unmatched {
		fmt.Fprintf(&out, "unmatched %s at %d: %s and %d more\n", u.Selector, u.Pos,
			strings.Join(u.Series, ", "), u.More)
	}
	for _, m := range r.Missing {
		fmt.Fprintf(&out, "missing %s at %d: %s %q\n", m.Selector, m.Pos, m.Reason, m.Near)
	}
	return out.String()
}

// The order of a source is not the order of results.
func TestHitsAreSortedByKey(t *testing.T) {
	m := newBucket(t)
	for i := range 50 {
		m.load("b", key(t, "a", fmt.Sprintf("%02d", i)), 0, ints(1, func(int64) int64 {
			return int64(i)
		}))
	}
	e := &query.Engine{Source: sourceOf(m), Now: time.Now}
	r, err := e.Query(context.Background(), "SELECT a.* BUCKET b AS $2 BETWEEN 1 AND 1000",
		query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range r.Series {
		if s.Name != metric.Quote(fmt.Sprintf("%02d", i)) || s.Values[0] != float64(i) {
			t.Errorf("series %d is %s with %v", i, s.Name, s.Values)
		}
	}
}
