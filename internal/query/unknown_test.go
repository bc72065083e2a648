package query_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/codec/sumtree"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/source"
)

// damaged is a memory of which damage took slots: below them lie older words.
type damaged struct {
	*memory
	lost map[string][]source.Unknown // by key
}

func (d damaged) Read(ctx context.Context, b source.Info, key []byte, from int64,
	dst []uint64) (source.Cost, error) {
	cost, err := d.memory.Read(ctx, b, key, from, dst)
	for _, u := range d.lost[string(key)] {
		u.From, u.Past = max(u.From, from), min(u.Past, from+int64(len(dst)))
		if u.From < u.Past {
			clear(dst[u.From-from : u.Past-from])
			cost.Unknown = append(cost.Unknown, u)
		}
	}
	return cost, err
}

func (d damaged) ReadOlder(ctx context.Context, b source.Info, key []byte, from int64,
	dst []uint64) (source.Cost, error) {
	cost, err := d.Read(ctx, b, key, from, dst)
	for _, u := range cost.Unknown {
		for slot := u.From; slot < u.Past; slot++ {
			dst[slot-from] = point.FromInt(-1)
		}
	}
	return cost, err
}

func (d damaged) Aggregate(ctx context.Context, b source.Info, key []byte, from, step int64,
	dst []chunk.Header) (source.Cost, error) {
	cost, err := adder{d.memory}.Aggregate(ctx, b, key, from, step, dst)
	var tree sumtree.Tree
	for i := range dst {
		words := make([]uint64, step)
		skip := min(max(0, -from-int64(i)*step), step)
		if skip == step {
			dst[i] = chunk.Header{}
			continue
		}
		c, err := d.Read(ctx, b, key, from+int64(i)*step+skip, words[skip:])
		if err != nil {
			return cost, err
		}
		cost.Unknown = append(cost.Unknown, c.Unknown...)
		dst[i] = chunk.Header{}
		start := from + int64(i)*step
		for at := start + skip; at < start+step; {
			number := at / chunk.Slots
			n := min(start+step, (number+1)*chunk.Slots) - at
			tree.Words(words[at-start:at-start+n], int(at%chunk.Slots), number,
				int(number*chunk.Slots-start))
			at += n
		}
		tree.End(&dst[i])
	}
	return cost, err
}

// newDamaged has two series of 1s in the slots [0, 4000); lost says what damage took
// of 'a' and of 'b'.
func newDamaged(t *testing.T, lost ...[]source.Unknown) (*query.Engine, *damaged) {
	m := newMemory(t)
	m.addBucket("x", 1000, 0)
	d := &damaged{memory: m, lost: make(map[string][]source.Unknown)}
	for i, name := range []string{"a", "b"} {
		m.load("x", key(t, name), 0, ints(4000, func(int64) int64 { return 1 }))
		if i < len(lost) {
			d.lost[string(key(t, name))] = lost[i]
		}
	}
	e := engine(m, 4_000_000)
	e.Source = sourceOf(d)
	return e, d
}

// TestUnknownSlotsAreNamed: whatever way a series is read, its result names the slots
// that damage took, once and in the times of the result.
func TestUnknownSlotsAreNamed(t *testing.T) {
	first := []source.Unknown{{From: 0, Past: 90, Why: "x"}, {From: 90, Past: 100, Why: "y"},
		{From: 3000, Past: 3600, Why: "x"}}
	other := []source.Unknown{{From: 50, Past: 200, Why: "z"}}
	both := [][2]int64{{0, 200_000}, {3_000_000, 3_600_000}}
	one := [][2]int64{{0, 100_000}, {3_000_000, 3_600_000}}
	for _, c := range []struct {
		text   string
		opt    query.Options
		slots  int64
		ranges [][2]int64
		why    []string
		cover  float64
	}{
		{"a BUCKET x", query.Options{}, 700, one, []string{"x", "y"}, 3300. / 4000},
		{"a BUCKET x", query.Options{Width: 10}, 700, one, []string{"x", "y"}, 3300. / 4000},
		{"a BUCKET x", query.Options{Older: true}, 700, one, []string{"x", "y"}, 1},
		{"avg(a BUCKET x, 500s)", query.Options{}, 700, one, []string{"x", "y"}, 3300. / 4000},
		{"avg(a BUCKET x, 500s)", query.Options{NoAggregates: true}, 700, one, []string{"x", "y"},
			3300. / 4000},
		{"avg(a BUCKET x, 500s)", query.Options{Older: true}, 700, one, []string{"x", "y"}, 1},
		{"a BUCKET x + b BUCKET x", query.Options{}, 850, both, []string{"x", "y", "z"}, 7150. / 8000},
		{"sum(max(* BUCKET x, 100s))", query.Options{}, 850, both, []string{"x", "y", "z"}, 7150. / 8000},
	} {
		e, _ := newDamaged(t, first, other)
		r, err := e.Query(t.Context(), "SELECT "+c.text+" AFTER 0 FOR 4000s", c.opt)
		if err != nil {
			t.Fatal(err)
		}
		s := r.Series[0]
		want := &query.Holes{Slots: c.slots, Ranges: c.ranges, Why: c.why}
		if !reflect.DeepEqual(s.Unknown, want) || s.Coverage != c.cover || r.Older != c.opt.Older {
			t.Errorf("%s %+v: unknown is %+v, want %+v; coverage %v, want %v", c.text, c.opt, s.Unknown,
				want, s.Coverage, c.cover)
		}
	}
}

// TestUnknownSlotsShowNoOlderValue, unless that is asked for.
func TestUnknownSlotsShowNoOlderValue(t *testing.T) {
	e, _ := newDamaged(t, []source.Unknown{{From: 10, Past: 20, Why: "x"}})
	for _, text := range []string{"SELECT a BUCKET x AFTER 0 FOR 100s",
		"SELECT min(a BUCKET x, 50s) AFTER 0 FOR 100s"} {
		for _, older := range []bool{false, true} {
			r, err := e.Query(t.Context(), text, query.Options{Older: older})
			if err != nil {
				t.Fatal(err)
			}
			shown := false
			for _, v := range r.Series[0].Values {
				shown = shown || v == -1
			}
			if shown != older || r.Series[0].Unknown == nil {
				t.Errorf("%s, older %v: %v, unknown %v", text, older, r.Series[0].Values, r.Series[0].Unknown)
			}
		}
	}
	if _, err := engine(newMemory(t), 1).Query(t.Context(), "SELECT a BUCKET x LAST 1m",
		query.Options{Older: true}); err == nil ||
		!strings.Contains(err.Error(), "not supported yet: older values") {
		t.Errorf("a source without older values: %v", err)
	}
}

// TestUnknownInOtherAnswers: the plan names them, answers with compat and of whole
// series do not.
func TestUnknownInOtherAnswers(t *testing.T) {
	e, _ := newDamaged(t, []source.Unknown{{From: 10, Past: 20, Why: "x"}})
	r, err := e.Query(t.Context(),
		"SELECT a BUCKET x, b BUCKET x, a BUCKET x SHIFT BY 10s AFTER 0 FOR 100s", query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Series[1].Unknown != nil {
		t.Errorf("a whole series has %v", r.Series[1].Unknown)
	}
	if got, want := r.Series[2].Unknown.Ranges, [][2]int64{{20_000, 30_000}}; !reflect.DeepEqual(got,
		want) {
		t.Errorf("shifted by 10 s: %v, want %v", got, want)
	}
	r, err = e.Query(t.Context(), "SELECT a BUCKET x AFTER 0 FOR 100s", query.Options{Compat: true})
	if err != nil || r.Series[0].Unknown != nil {
		t.Errorf("compat: %v, %v", r.Series[0].Unknown, err)
	}
	r, err = e.Query(t.Context(), "EXPLAIN SELECT a BUCKET x, avg(b BUCKET x, 50s) AFTER 0 FOR 100s",
		query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if text := r.Plan.String(); strings.Count(text, "unknown") != 1 ||
		!strings.Contains(text, "set 90, unknown 10 (x)") {
		t.Errorf("the plan is\n%s", text)
	}
}

// TestUnknownIsBounded: ranges and reasons without number become some and a count.
func TestUnknownIsBounded(t *testing.T) {
	var many, odd []source.Unknown
	for i := range int64(300) {
		many = append(many, source.Unknown{From: 10 * i, Past: 10*i + 1, Why: fmt.Sprint("w", i)})
		odd = append(odd, source.Unknown{From: 10*i + 5, Past: 10*i + 6, Why: "z"})
	}
	e, _ := newDamaged(t, many, odd)
	for text, want := range map[string][3]int64{"a BUCKET x": {300, 100, 200},
		"sum(* BUCKET x)": {600, 100, 500}} {
		r, err := e.Query(t.Context(), "SELECT "+text+" AFTER 0 FOR 4000s", query.Options{})
		if err != nil {
			t.Fatal(err)
		}
		h := r.Series[0].Unknown
		if got := [3]int64{h.Slots, int64(len(h.Ranges)), h.More}; got != want || len(h.Why) != 8 {
			t.Errorf("%s: slots, ranges and more are %v, want %v; %d reasons", text, got, want, len(h.Why))
		}
	}
}

// TestUnknownSlotsAreCountedOnce, also where a first value is looked for ahead and the
// rounds read the same slots again.
func TestUnknownSlotsAreCountedOnce(t *testing.T) {
	const lost, slots = 50_000, 60_000 // more than two rounds
	e, d := newDamaged(t, []source.Unknown{{From: 100, Past: lost, Why: "x"},
		{From: lost + 10, Past: lost + 20, Why: "x"}})
	d.load("x", key(t, "a"), 100, ints(slots, func(int64) int64 { return 1 }))
	r, err := e.Query(t.Context(), fmt.Sprintf("SELECT a BUCKET x AFTER 0 FOR %ds", slots),
		query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := &query.Holes{Slots: lost - 100 + 10,
		Ranges: [][2]int64{{100_000, lost * 1000}, {lost*1000 + 10_000, lost*1000 + 20_000}},
		Why:    []string{"x"}}
	if !reflect.DeepEqual(r.Series[0].Unknown, want) {
		t.Errorf("unknown is %+v, want %+v", r.Series[0].Unknown, want)
	}
}

// TestReasonsOfResultsStayApart: results that share a damaged read each name the reasons of their
// own reads.
func TestReasonsOfResultsStayApart(t *testing.T) {
	shared := []source.Unknown{{From: 0, Past: 10, Why: "x"}, {From: 20, Past: 30, Why: "y"},
		{From: 40, Past: 50, Why: "z"}}
	e, d := newDamaged(t, shared, []source.Unknown{{From: 60, Past: 70, Why: "of b"}})
	d.load("x", key(t, "c"), 0, ints(4000, func(int64) int64 { return 1 }))
	d.lost[string(key(t, "c"))] = []source.Unknown{{From: 80, Past: 90, Why: "of c"}}
	r, err := e.Query(t.Context(),
		"SELECT a BUCKET x + b BUCKET x, a BUCKET x + c BUCKET x AFTER 0 FOR 4000s", query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, own := range []string{"of b", "of c"} {
		if got, want := r.Series[i].Unknown.Why, []string{"x", "y", "z", own}; !reflect.DeepEqual(got,
			want) {
			t.Errorf("the reasons of series %d are %q, want %q", i, got, want)
		}
	}
}
