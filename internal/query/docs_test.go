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

	"dalmatiner/internal/api/tagline"
	"dalmatiner/internal/demo/shop"
	"dalmatiner/internal/model/term"
	"dalmatiner/internal/query"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/store/eventstest"
	"dalmatiner/internal/store/tagstore"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/testkit/golden"
)

const wholeShop = ` AFTER "2026-11-20 12:00" FOR 10s`

// tagsOf takes the changes of an import into an index.
type tagsOf struct{ index *tags.Index }

func (t tagsOf) Apply(_ context.Context, list []tags.Change) (out tagstore.Applied, err error) {
	for i := range list {
		t.index.Apply(&list[i])
	}
	return out, nil
}

// shopEngine answers from what ddb demo shop writes, a day later.
func shopEngine(t *testing.T) *query.Engine {
	m := newMemory(t)
	m.addBucket(shop.Bucket, shop.Resolution, 0)
	all, err := shop.All()
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		m.load(shop.Bucket, all[i].Key, all[i].Slot, all[i].Words)
	}
	x := withTags(m)
	bucketID := func(string) (uint64, error) { return m.buckets[shop.Bucket].ID, nil }
	out, err := tagline.Import(t.Context(), strings.NewReader(shop.Tags()), tagsOf{x.Tags}, bucketID,
		func(int64) {})
	if err != nil || out.Refused > 0 {
		t.Fatal(out, err)
	}
	var store eventstest.Store
	for _, e := range shop.Events {
		at, err := e.Nanoseconds()
		if err != nil {
			t.Fatal(err)
		}
		body, err := term.AppendFromJSON(nil, []byte(e.JSON))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Write(shop.Bucket, []events.Event{{Time: at, Body: body}}); err != nil {
			t.Fatal(err)
		}
	}
	now := func() time.Time { return time.Unix(shop.Start+24*shop.Hour, 0) }
	return &query.Engine{Source: sourceOf(x), Events: &store, Now: now}
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
	for _, e := range shop.Events {
		if row := fmt.Sprintf("| %s | `%s` |", e.Time, e.JSON); !strings.Contains(got, row) {
			t.Errorf("the page does not show the event: %s", row)
		}
	}
	for _, s := range shop.Short {
		if row := fmt.Sprintf("| `%s` | %s |", s[0], s[1]); !strings.Contains(got, row) {
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
		if s.Times != nil {
			fmt.Fprintf(&b, "   times %s", strings.Trim(fmt.Sprint(s.Times), "[]"))
		}
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
	for _, v := range s.Values {
		text := strconv.FormatFloat(v, 'g', 6, 64)
		if v != v {
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
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s |\n", signature, f.About, f.Example,
			strings.Join(results, "; "))
	}
	return b.String()
}

// Every function has what the list of functions shows, and no two of them take
// the same arguments.
func TestFunctionsAreDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range query.Functions() {
		if f.About == "" || f.Example == "" || f.Since == "" || f.Group == "" || len(f.Signature) == 0 ||
			f.Returns == "" {
			t.Errorf("incomplete: %+v", f)
		}
		if seen[f.Help] {
			t.Errorf("%s is there twice", f.Help)
		}
		seen[f.Help] = true
	}
	for _, want := range []string{"avg(metric, time) -> metric", "sum(metric*) -> metric",
		"histogram(metric, integer, integer, time) -> histogram"} {
		if !seen[want] {
			t.Errorf("%s is not there", want)
		}
	}
}
