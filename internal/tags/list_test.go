package tags

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// naiveNames returns all tags of a series of the model, implied ones too.
func (s series) naiveNames() (list [][2]string) {
	for n := range s.tags {
		list = append(list, n)
	}
	if parts, ok := naiveParts(s.key); ok {
		list = append(list, [2]string{"ddb", "key_length"})
		for i := range parts {
			list = append(list, [2]string{"ddb", fmt.Sprintf("part_%d", i+1)})
		}
	}
	return list
}

// naiveList counts the texts that fn returns for each of some series.
func naiveList(all []series, q *Listing, fn func(s series) []string) (out List) {
	counts := make(map[string]int)
	for _, s := range all {
		if q.Collection != nil && s.collection != string(q.Collection) || q.Metric != nil &&
			s.name != string(q.Metric) {
			continue
		}
		texts := fn(s)
		slices.Sort(texts)
		for _, text := range slices.Compact(texts) {
			if strings.HasPrefix(text, q.Prefix) && (q.After == nil || text > *q.After) {
				counts[text]++
			}
		}
	}
	for text, n := range counts {
		e := ListItem{Text: text, Series: n}
		if q.Now < 2*hourNS { // clocks of the model are in the first hour
			e.New = n
		}
		out.Elements = append(out.Elements, e)
	}
	slices.SortFunc(out.Elements, func(a, b ListItem) int { return strings.Compare(a.Text, b.Text) })
	if len(out.Elements) > q.Limit {
		out.Elements, out.More = out.Elements[:q.Limit], true
	}
	return out
}

// naiveBeginning returns the first parts of a key, the whole of one that is no list of parts.
func naiveBeginning(key string, parts int) (out string) {
	list, ok := naiveParts(key)
	if !ok || parts == 0 || parts > len(list) {
		return key
	}
	for _, p := range list[:parts] {
		out += string(rune(len(p))) + p
	}
	return out
}

func drawListing(t *rapid.T) Listing {
	q := Listing{
		Prefix: rapid.SampledFrom([]string{"", "", "", "ddb:p", "h", "w", "l", "part_"}).Draw(t,
			"prefix"),
		Limit: rapid.SampledFrom([]int{1, 2, 3, 100}).Draw(t, "limit"),
		Now:   rapid.SampledFrom([]uint64{0, hourNS, 2 * hourNS}).Draw(t, "now"),
	}
	if rapid.IntRange(0, 2).Draw(t, "a later part") == 0 {
		after := rapid.SampledFrom([]string{"", "c", "ddb:part_1", "label", "host", "web1"}).Draw(t,
			"after")
		q.After = &after
	}
	if rapid.Bool().Draw(t, "in a collection") {
		q.Collection = []byte(rapid.SampledFrom([]string{"c", "d", "e"}).Draw(t, "collection"))
		if rapid.Bool().Draw(t, "named") {
			q.Metric = []byte(rapid.SampledFrom([]string{"\x03cpu", "\x01b", "\x01a\x01b"}).Draw(t,
				"metric"))
		}
	}
	return q
}

// Lists are what the model counts.
func TestListsEqualTheModel(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		m, x := model{rapid.SliceOfN(rapid.Custom(drawChange), 0, 30).Draw(t, "changes")}, New()
		for i := range m.changes {
			x.Apply(&m.changes[i])
		}
		all := m.all()
		for range 4 {
			q := drawListing(t)
			same := func(what string, want List) func(List, error) {
				return func(got List, err error) {
					t.Helper()
					if err != nil || !slices.Equal(got.Elements, want.Elements) || got.More != want.More {
						t.Fatalf("%s of %+v: got %+v, %v, want %+v", what, q, got, err, want)
					}
				}
			}
			same("namespaces", naiveList(all, &q, func(s series) (list []string) {
				for _, n := range s.naiveNames() {
					list = append(list, n[0])
				}
				return list
			}))(x.Namespaces(ctx, &q))
			same("names", naiveList(all, &q, func(s series) (list []string) {
				for _, n := range s.naiveNames() {
					list = append(list, strings.TrimPrefix(n[0]+":"+n[1], ":"))
				}
				return list
			}))(x.Names(ctx, &q))
			namespace := rapid.SampledFrom([]string{"", "label", "ddb"}).Draw(t, "namespace")
			q.Namespace = []byte(namespace)
			same("names of "+namespace, naiveList(all, &q, func(s series) (list []string) {
				for _, n := range s.naiveNames() {
					if n[0] == namespace {
						list = append(list, n[1])
					}
				}
				return list
			}))(x.Names(ctx, &q))
			name := tagName(namespace,
				rapid.SampledFrom([]string{"host", "dc", "part_1", "part_2", "key_length", "part_x",
					"none"}).Draw(t, "tag"))
			same("values of "+name.Text(), naiveList(all, &q, func(s series) []string {
				if v, ok := s.value(name); ok {
					return []string{v}
				}
				return nil
			}))(x.Values(ctx, &q, name))
			q.Metric, q.Prefix = nil, rapid.SampledFrom([]string{"", "\x01a", "\x03cpu"}).Draw(t,
				"parts in front")
			parts := rapid.IntRange(0, 3).Draw(t, "parts")
			same(fmt.Sprintf("%d parts of metrics", parts), naiveList(all, &q, func(s series) []string {
				if parts > 0 && s.name == q.Prefix {
					return nil
				}
				return []string{naiveBeginning(s.name, parts)}
			}))(x.Metrics(ctx, &q, parts))
			q.Collection, q.Prefix = nil, ""
			same("collections", naiveList(all, &q, func(s series) []string {
				return []string{s.collection}
			}))(x.Collections(ctx, q))
		}
	})
}

// The texts of a list are bounded, and what is left out is not hidden.
func TestListsAreBounded(t *testing.T) {
	x := New()
	const n = 2 * MaxListBytes / MaxValue
	for i := range n {
		value := fmt.Sprintf("%05d%s", i, strings.Repeat("x", MaxValue-5))
		x.Apply(&Change{Bucket: 1, Key: fmt.Appendf(nil, "\x05%05d", n-i), Collection: []byte("c"),
			Set: []Tag{tag("", "host", value)}})
	}
	q := Listing{Limit: n}
	list, err := x.Values(context.Background(), &q, tagName("", "host"))
	if got := len(list.Elements); err != nil || !list.More || got < n/4 || got > n/2 {
		t.Fatalf("%d of %d values, more: %v, %v", got, n, list.More, err)
	}
	for i, e := range list.Elements {
		if !strings.HasPrefix(e.Text, fmt.Sprintf("%05dx", i)) || e.Series != 1 {
			t.Fatalf("value %d is %.10q of %d series", i, e.Text, e.Series)
		}
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := big(t, 2*askEvery).Values(gone, &q,
		tagName("ddb", "part_2")); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}
