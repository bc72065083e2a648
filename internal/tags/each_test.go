package tags

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// naiveEach counts series by tags of the model: by names, by names and values, and the values.
func naiveEach(all []series, s Scope) (scope Count, names, pairs map[string]Count,
	values map[string]map[string]bool) {
	names, pairs, values = map[string]Count{}, map[string]Count{}, map[string]map[string]bool{}
	isNew := 0
	if s.Now < 2*hourNS { // clocks of the model are in the first hour
		isNew = 1
	}
	add := func(c Count) Count { return Count{c.Series + 1, c.New + isNew} }
	for _, one := range all {
		if s.Collection != nil && one.collection != string(s.Collection) {
			continue
		}
		scope = add(scope)
		for n, v := range one.tags {
			name := n[0] + ":" + n[1]
			names[name], pairs[name+"="+v] = add(names[name]), add(pairs[name+"="+v])
			if values[name] == nil {
				values[name] = map[string]bool{}
			}
			values[name][v] = true
		}
	}
	return scope, names, pairs, values
}

// Names and values are counted as the model counts them.
func TestEachEqualsTheModel(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		m, x := model{rapid.SliceOfN(rapid.Custom(drawChange), 0, 30).Draw(t, "changes")}, New()
		for i := range m.changes {
			x.Apply(&m.changes[i])
		}
		s := Scope{Now: rapid.SampledFrom([]uint64{0, hourNS, 2 * hourNS}).Draw(t, "now")}
		if name := rapid.SampledFrom([]string{"", "c", "d", "none"}).Draw(t, "collection"); name != "" {
			s.Collection = []byte(name)
		}
		scope, names, pairs, values := naiveEach(m.all(), s)
		text := func(n TagName) string { return string(n.Namespace) + ":" + string(n.Name) }
		got := map[string]Count{}
		all, err := x.EachName(ctx, s, func(n TagName, count int, of Count) {
			if _, twice := got[text(n)]; twice || count != len(values[text(n)]) {
				t.Fatalf("%s has %d values, want %d; twice: %v", text(n), count, len(values[text(n)]), twice)
			}
			got[text(n)] = of
		})
		if err != nil || all != scope || !maps.Equal(got, names) {
			t.Fatalf("names %v of %+v, %v, want %v of %+v", got, all, err, names, scope)
		}
		got = map[string]Count{}
		put := func(n TagName, value []byte, of Count) { got[text(n)+"="+string(value)] = of }
		if all, err = x.EachValue(ctx, s, nil, put); err != nil || all != scope ||
			!maps.Equal(got, pairs) {
			t.Fatalf("values %v of %+v, %v, want %v of %+v", got, all, err, pairs, scope)
		}
		for _, n := range []TagName{tagName("", "host"), tagName("label", "dc"), tagName("", "none")} {
			got = map[string]Count{}
			if _, err := x.EachValue(ctx, s, &n, put); err != nil || len(got) != len(values[text(n)]) {
				t.Fatalf("values of %s: %v, %v, want %v", text(n), got, err, values[text(n)])
			}
			for value := range values[text(n)] {
				if pair := text(n) + "=" + value; got[pair] != pairs[pair] {
					t.Fatalf("%s: %+v, want %+v", pair, got[pair], pairs[pair])
				}
			}
		}
	})
}

func TestEachIsCancelled(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	x := New()
	for i := range 2 * askEvery {
		x.Apply(&Change{Bucket: 1, Key: fmt.Appendf(nil, "\x05%05d", i), Collection: []byte("c"),
			Set: []Tag{tag("", "host", fmt.Sprint(i))}})
	}
	if _, err := x.EachValue(gone, Scope{}, nil,
		func(TagName, []byte, Count) {}); err != context.Canceled {
		t.Errorf("values: %v", err)
	}
	if _, err := x.EachName(gone, Scope{Collection: []byte("c")},
		func(TagName, int, Count) {}); err != context.Canceled {
		t.Errorf("names: %v", err)
	}
}
