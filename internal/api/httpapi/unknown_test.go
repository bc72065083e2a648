package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"dalmatiner/internal/query"
)

// TestUnknownInAnswers: both forms name the slots that damage took, of the series that
// have some, and say when older values stand there.
func TestUnknownInAnswers(t *testing.T) {
	for _, more := range []int64{0, 3} {
		for _, older := range []bool{false, true} {
			holes := &query.Holes{Slots: 5, Ranges: [][2]int64{{-1000, 2000}, {4000, 6000}}, More: more,
				Why: []string{"damage in \"x\"", "y"}}
			r := &query.Result{
				Older: older, Series: []query.Series{{Name: "a", Min: []float64{}, Unknown: holes},
					{Name: "b"}}}
			o := testOptions(newFakeStore(t))
			o.Engine = engineFunc(func(context.Context, string) (*query.Result, error) { return r, nil })
			h := New(o)
			var text any
			if err := json.Unmarshal(ask("x").send(h).Body.Bytes(), &text); err != nil {
				t.Fatal(err)
			}
			packed, rest := unpack(t, ask("x", "Accept: application/msgpack").send(h).Body.Bytes())
			if len(rest) != 0 {
				t.Fatalf("%d bytes are left", len(rest))
			}
			for form, v := range map[string]any{"json": text, "msgpack": packed} {
				again, err := json.Marshal(v) // both with the types of JSON
				if err != nil {
					t.Fatal(err)
				}
				var got struct {
					Damaged *string
					Results []struct{ Unknown *query.Holes }
				}
				if err := json.Unmarshal(again, &got); err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(got.Results[0].Unknown, holes) || got.Results[1].Unknown != nil {
					t.Errorf("%s: got %s", form, again)
				}
				if (got.Damaged != nil) != older || older && *got.Damaged != "shown" {
					t.Errorf("%s: older %v: got %s", form, older, again)
				}
				if strings.Contains(string(again), `"more"`) != (more > 0) {
					t.Errorf("%s: more %d: got %s", form, more, again)
				}
			}
		}
	}
}

// TestDamagedParameter: it reaches the engine, and what cannot be marked is refused.
func TestDamagedParameter(t *testing.T) {
	o := testOptions(newFakeStore(t))
	var older bool
	o.Engine = optionsFunc(func(opt query.Options) { older = opt.Older })
	h := New(o)
	for query, want := range map[string]struct {
		status int
		older  bool
		says   string
	}{
		"":                       {http.StatusOK, false, ""},
		"&damaged=hide":          {http.StatusOK, false, ""},
		"&damaged=show":          {http.StatusOK, true, ""},
		"&damaged=yes":           {http.StatusBadRequest, false, "known are show"},
		"&damaged=show&compat=1": {http.StatusBadRequest, false, "ask with compat=0"},
	} {
		older = false
		w := get("/?q=x" + query).send(h)
		if w.Code != want.status || older != want.older || !strings.Contains(w.Body.String(), want.says) {
			t.Errorf("%q: %d, older %v: %s", query, w.Code, older, w.Body)
		}
	}
}

// optionsFunc is an engine that sees the options of a query and finds nothing.
type optionsFunc func(query.Options)

func (f optionsFunc) Query(_ context.Context, _ string, opt query.Options) (*query.Result, error) {
	f(opt)
	return &query.Result{}, nil
}
