package query_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/query"
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/exec"
	"dalmatiner/internal/query/plan"
	"dalmatiner/internal/query/readers"
)

// A plan is data: runs of it at the same time give the same, and none of them changes it.
func TestAPlanNeverChanges(t *testing.T) {
	drawn, made := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		drawn++
		g := generator{t: rt, exact: rapid.Bool().Draw(rt, "exact")}
		source := adder{g.source(t)}
		text, width := g.query(), rapid.SampledFrom([]int{0, 0, 9, 100}).Draw(rt, "width")
		if rapid.IntRange(0, 2).Draw(rt, "long columns") == 0 { // that begin at multiples of their length
			text = fmt.Sprintf("SELECT m.0 BUCKET b, %s BETWEEN %d AND 3000000", g.selector(),
				rapid.IntRange(1, 1_000_000).Draw(rt, "begin"))
			width = 1
		}
		q, err := dql.Parse(text)
		if err != nil {
			rt.Fatal(err)
		}
		times, err := plan.TimeRange(q, 3_000_000, nil, false)
		if err != nil {
			return // as below
		}
		opt := plan.Options{
			Range: times,
			Shown: plan.Shown{
				Confidence: rapid.Bool().Draw(rt, "sure"),
				Compat:     rapid.IntRange(0, 4).Draw(rt, "compat") == 0,
				Explain:    rapid.IntRange(0, 9).Draw(rt, "explain") == 0,
			},
			Limits: query.Limits{}.Stricter(query.Limits{}), Now: 3_000_000,
			Width:      width,
			Readers:    rapid.IntRange(0, 2).Draw(rt, "readers"),
			RoundSlots: rapid.Int64Range(1, 300).Draw(rt, "rounds"), AloneSlots: -1,
		}
		p, err := plan.Make(t.Context(), sourceOf(source), q, opt)
		if err != nil {
			return // other tests look at refusals
		}
		made++
		before := planText(p)
		env := exec.Env{Now: time.Now, Readers: readers.New(3)}
		var results [3]*exec.Result
		var errs [3]error
		var wg sync.WaitGroup
		for i := range results {
			wg.Go(func() { results[i], errs[i] = exec.Run(t.Context(), p, env) })
		}
		wg.Wait()
		if after := planText(p); after != before {
			rt.Fatalf("%s: the plan was\n%s\nand is\n%s", q.Text, before, after)
		}
		for i, r := range results {
			switch first := results[0]; {
			case !errors.Is(errs[i], errs[0]):
				rt.Fatalf("%s: run %d: %v, the first: %v", q.Text, i, errs[i], errs[0])
			case errs[0] == nil && !sameResult(r, first):
				rt.Fatalf("%s: run %d gives\n%+v, the first\n%+v", q.Text, i, r, first)
			}
		}
	})
	if made*5 < drawn { // half of them have one
		t.Errorf("only %d of %d queries had a plan", made, drawn)
	}
}

func sameResult(a, b *exec.Result) bool {
	if a.Stats != b.Stats || len(a.Series) != len(b.Series) ||
		(a.Explained == nil) != (b.Explained == nil) {
		return false
	}
	for i, s := range a.Series {
		o := b.Series[i]
		if s.Name != o.Name || s.Start != o.Start || s.Resolution != o.Resolution ||
			s.Points != o.Points || s.LastPoint != o.LastPoint || s.HeldUntil != o.HeldUntil ||
			s.Coverage != o.Coverage || s.Interval != o.Interval ||
			!sameBits(s.Values, o.Values) || !sameBits(s.Min, o.Min) || !sameBits(s.Max, o.Max) ||
			!sameBits(s.Confidence, o.Confidence) {
			return false
		}
	}
	return true
}

// planText writes all that a plan holds; pointers within it as addresses.
func planText(p *plan.Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v\n", *p)
	for _, n := range p.Nodes {
		fmt.Fprintf(&b, "%+v %+v\n", *n, reflect.ValueOf(n.Op).Elem())
	}
	for _, s := range p.Spans {
		fmt.Fprintf(&b, "%+v\n", *s)
	}
	for _, r := range p.Roots {
		if r.Columns != nil {
			fmt.Fprintf(&b, "%+v\n", *r.Columns)
		}
	}
	return b.String()
}
