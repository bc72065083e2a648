package query_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/events"
	"dalmatiner/internal/eventstest"
	"dalmatiner/internal/golden"
	"dalmatiner/internal/point"
	"dalmatiner/internal/query"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/term"
)

// shop is the data of docs/dql.md: one point a second from 2026-11-20
// 12:00:00 UTC, ten seconds long.
var shop = map[string]string{
	"web.eu.requests": "10 12 11 13 15 14 10 9 11 12",
	"web.us.requests": "20 21 19 25 24 22 20 18 21 23",
	"web.eu.errors":   "0 0 1 0 2 0 0 1 0 0",
	"temp":            "– 21 – – 22 – – – 20 –",
	"visits":          "100 103 103 110 2 5 9 9 12 20",
}

// shopTags are those series of it that have tags: metric, name in collection fleet, tags.
var shopTags = []string{
	"web.eu.requests requests site=eu host=web1 k8s:app=shop",
	"web.us.requests requests site=us host=web2 k8s:app=shop",
	"web.eu.errors errors site=eu host=web1",
}

// shopEvents are the events of the bucket: time, event.
var shopEvents = []string{
	`2026-11-20T12:00:01.25Z {"name":"login","user":{"name":"ann"},"tries":[1,40]}`,
	`2026-11-20T12:00:04.000000001Z {"name":"login","user":{"name":"bob"},"tries":[3,90,210]}`,
	`2026-11-20T12:00:06.5Z {"name":"deploy","version":"1.4","user":{"name":"ann"}}`,
}

const (
	shopStart = 1795176000 // slot
	wholeShop = ` AFTER "2026-11-20 12:00:00" FOR 10s`
)

// shopEngine answers as it would at 12:00:10.
func shopEngine(t *testing.T) *query.Engine {
	m := newMemory(t)
	m.addBucket("shop", 1000, 0)
	for name, values := range shop {
		var words []uint64
		for v := range strings.FieldsSeq(values) {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				words = append(words, point.Unset)
				continue
			}
			words = append(words, point.FromInt(n))
		}
		m.load("shop", key(t, strings.Split(name, ".")...), shopStart, words)
	}
	x := withTags(m)
	for _, line := range shopTags {
		words := strings.Fields(line)
		c := tags.Change{Bucket: m.buckets["shop"].ID, Collection: []byte("fleet"), Key: key(t, strings.Split(words[0], ".")...), Name: key(t, words[1])}
		for _, word := range words[2:] {
			name, value, _ := strings.Cut(word, "=")
			namespace, name, found := strings.Cut(name, ":")
			if !found {
				namespace, name = "", namespace
			}
			c.Set = append(c.Set, tags.Tag{TagName: tags.TagName{Namespace: []byte(namespace), Name: []byte(name)}, Value: []byte(value)})
		}
		x.Tags.Apply(&c)
	}
	var store eventstest.Store
	for _, line := range shopEvents {
		at, text, _ := strings.Cut(line, " ")
		when, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			t.Fatal(err)
		}
		body, err := term.AppendFromJSON(nil, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Write("shop", []events.Event{{Time: when.UnixNano(), Body: body}}); err != nil {
			t.Fatal(err)
		}
	}
	return &query.Engine{Source: sourceOf(x), Events: &store, Now: func() time.Time { return time.Unix(shopStart+10, 0) }}
}

// TestDocumentation runs every example of docs/dql.md and compares its tables
// with the registry.
func TestDocumentation(t *testing.T) {
	const file = "../../docs/dql.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	e := shopEngine(t)
	got := runExamples(t, e, string(text))
	got = functionTables(t, e, got)
	golden.Same(t, file, got)
	for _, line := range shopTags {
		words := strings.Fields(line)
		if row := fmt.Sprintf("| `%s` | `%s` | `%s` |", words[0], words[1], strings.Join(words[2:], "` `")); !strings.Contains(got, row) {
			t.Errorf("the page does not show the tags: %s", row)
		}
	}
	for _, line := range shopEvents {
		at, event, _ := strings.Cut(line, " ")
		if row := fmt.Sprintf("| %s | `%s` |", at, event); !strings.Contains(got, row) {
			t.Errorf("the page does not show the event: %s", row)
		}
	}
	for name, values := range shop {
		if row := fmt.Sprintf("| `%s` | %s |", name, values); !strings.Contains(got, row) {
			t.Errorf("the page does not show the data: %s", row)
		}
	}
}

var exampleBlock = regexp.MustCompile("(?s)```dql( compat)?\n(.*?)```\n")

// runExamples fills in the results of the page's examples: blocks of queries,
// each from a line that begins in the first column, with indented results.
func runExamples(t *testing.T, e *query.Engine, text string) string {
	n := 0
	out := exampleBlock.ReplaceAllStringFunc(text, func(block string) string {
		parts := exampleBlock.FindStringSubmatch(block)
		var b strings.Builder
		fmt.Fprintf(&b, "```dql%s\n", parts[1])
		var q string
		flush := func() {
			if q != "" {
				n++
				b.WriteString(answer(e, q, query.Options{Compat: parts[1] != ""}))
			}
			q = ""
		}
		for line := range strings.Lines(parts[2]) {
			if strings.HasPrefix(line, "  ") {
				continue
			}
			flush()
			b.WriteString(line)
			q = line
		}
		flush()
		b.WriteString("```\n")
		return b.String()
	})
	if n < 40 {
		t.Errorf("the page has only %d examples", n)
	}
	return out
}

// answer returns what the page shows of a result.
func answer(e *query.Engine, q string, opt query.Options) string {
	r, err := e.Query(context.Background(), strings.TrimSpace(q), opt)
	if err != nil {
		return "  " + err.Error() + "\n"
	}
	if r.Plan != nil {
		return "  " + strings.ReplaceAll(strings.TrimSpace(r.Plan.String()), "\n", "\n  ") + "\n"
	}
	wide := 0
	for _, s := range r.Series {
		wide = max(wide, len(s.Name))
	}
	var b strings.Builder
	for _, s := range r.Series {
		fmt.Fprintf(&b, "  %-*s  %s", wide, s.Name, values(s))
		if s.Coverage < 1 {
			fmt.Fprintf(&b, "   coverage %.3g", s.Coverage)
		}
		if s.Metadata != nil {
			m, _ := json.Marshal(s.Metadata)
			fmt.Fprintf(&b, "   %s", m)
		}
		b.WriteString("\n")
	}
	for i := range r.Events {
		for _, ev := range r.Events[i].Events {
			at := time.Unix(0, ev.Time).UTC().Format(time.RFC3339Nano)
			fmt.Fprintf(&b, "  %s  %s  %s\n", r.Events[i].Name, at, term.Root(ev.Body).AppendJSON(nil))
		}
	}
	return b.String()
}

func values(s query.Series) string {
	var list []string
	for i, v := range s.Values {
		text := strconv.FormatFloat(v, 'g', 6, 64)
		if v != v || i < s.Lead {
			text = "null"
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

var tableBlock = regexp.MustCompile(`(?s)<!-- functions: (\w+) -->\n(.*?)<!-- end -->`)

// functionTables writes the tables of the registry into the page.
func functionTables(t *testing.T, e *query.Engine, text string) string {
	groups := map[string]bool{}
	for _, f := range query.Functions() {
		groups[f.Group] = true
	}
	out := tableBlock.ReplaceAllStringFunc(text, func(block string) string {
		group := tableBlock.FindStringSubmatch(block)[1]
		if !groups[group] {
			t.Errorf("the page has a table of %s", group)
		}
		delete(groups, group)
		return fmt.Sprintf("<!-- functions: %s -->\n%s<!-- end -->", group, functionTable(t, e, group))
	})
	for g := range groups {
		t.Errorf("the page has no table of the functions of the group %s", g)
	}
	return out
}

func functionTable(t *testing.T, e *query.Engine, group string) string {
	var b strings.Builder
	b.WriteString("| function | value | example | result |\n|---|---|---|---|\n")
	for _, f := range query.Functions() {
		if f.Group != group {
			continue
		}
		signature, _, _ := strings.Cut(f.Help, " ->")
		r, err := e.Query(context.Background(), "SELECT "+f.Example+wholeShop, query.Options{})
		if err != nil {
			t.Errorf("example of %s: %v", f.Help, err)
			continue
		}
		if !strings.Contains(f.Example, f.Name+"(") {
			t.Errorf("the example of %s does not use it: %s", f.Help, f.Example)
		}
		var results []string
		for _, s := range r.Series {
			results = append(results, values(s))
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s |\n", signature, f.About, f.Example, strings.Join(results, "; "))
	}
	return b.String()
}

// Every function has what the list of functions shows, and no two of them take
// the same arguments.
func TestFunctionsAreDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range query.Functions() {
		if f.About == "" || f.Example == "" || f.Since == "" || f.Group == "" || len(f.Signature) == 0 || f.Returns == "" {
			t.Errorf("incomplete: %+v", f)
		}
		if seen[f.Help] {
			t.Errorf("%s is there twice", f.Help)
		}
		seen[f.Help] = true
	}
	for _, want := range []string{"avg(metric, time) -> metric", "sum(metric*) -> metric", "histogram(metric, integer, integer, time) -> histogram"} {
		if !seen[want] {
			t.Errorf("%s is not there", want)
		}
	}
}
