package tags

import (
	"bytes"
	"context"
	"dalmatiner/internal/tags/match"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/model/metric"
)

// value is what a series of the model has as a tag, and whether it does.
func (s series) value(n TagName) (value string, ok bool) {
	if string(n.Namespace) == "ddb" {
		if parts, list := naiveParts(s.key); list {
			if string(n.Name) == "key_length" {
				return strconv.Itoa(len(parts)), true
			}
			for i, p := range parts {
				if string(n.Name) == "part_"+strconv.Itoa(i+1) {
					return p, true
				}
			}
		}
	}
	value, ok = s.tags[[2]string{string(n.Namespace), string(n.Name)}]
	return value, ok
}

func naiveParts(key string) (parts []string, ok bool) {
	for len(key) > 0 {
		n := int(key[0])
		if n >= len(key) {
			return nil, false
		}
		parts, key = append(parts, key[1:1+n]), key[1+n:]
	}
	return parts, true
}

func (s series) holds(c *Cond) bool {
	if c == nil {
		return true
	}
	value, ok := s.value(c.Tag)
	switch c.Op {
	case And:
		return s.holds(c.Left) && s.holds(c.Right)
	case Or:
		return s.holds(c.Left) || s.holds(c.Right)
	case Not:
		return !s.holds(c.Left)
	case Equal:
		return ok && value == string(c.Value)
	case Glob:
		return ok && naiveGlob(c.Pieces, value)
	case Regexp:
		return ok && regexp.MustCompile(`\A(?s:`+c.Pattern+`)\z`).MatchString(value)
	}
	return ok
}

func naiveGlob(pieces [][]byte, value string) bool {
	rest, ok := strings.CutPrefix(value, string(pieces[0]))
	if !ok || len(pieces) == 1 {
		return ok && rest == ""
	}
	for i := range len(rest) + 1 {
		if naiveGlob(pieces[1:], rest[i:]) {
			return true
		}
	}
	return false
}

var patterns = []string{
	"web1", "web[12]", "web.*", ".*", ".+", "", "(web)?1?", "(?i)WEB.", "w.b1|eu", "(eu|us|web2)",
	"e(u|x)", ".*b.*", "(.*)1", "[^w].*", "^web1$",
	"web1|", "(a|b|web)(1|2|)", `a\x{fffd}`, "a.", "a�", "w{1,2}eb1", "a+", `\x61.`, "(?-s:.)*",
	"[a-z]{2}", "[0-9]", "2|3", "b|c",
}

// TestStoredConditions: what only a stored tag meets holds for no series without tags.
func TestStoredConditions(t *testing.T) {
	stored := 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawCond(t, 3)
		holds, err := c.UntaggedFilter()
		if err != nil || !c.NeedsStored() {
			return
		}
		stored++
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "b", "cpu"}), 1, 3).Draw(t, "parts")
		key, err := metric.Key(parts...)
		if err != nil {
			t.Fatal(err)
		}
		if holds(key) {
			t.Fatalf("%s holds for %q, which has no tags", c, key)
		}
	})
	if stored == 0 {
		t.Error("no condition needed a stored tag")
	}
}

func drawCond(t *rapid.T, depth int) *Cond {
	c := &Cond{Op: rapid.SampledFrom([]Op{Exists, Equal, Glob, Regexp, And, Or, Not}).Draw(t, "op")}
	if depth == 0 && c.Op >= And {
		c.Op = Equal
	}
	switch c.Op {
	case And, Or:
		c.Left, c.Right = drawCond(t, depth-1), drawCond(t, depth-1)
		return c
	case Not:
		c.Left = drawCond(t, depth-1)
		return c
	case Equal:
		c.Value = []byte(rapid.SampledFrom([]string{"", "web1", "web2", "eu", "a\xff", "none", "2",
			"a"}).Draw(t, "value"))
	case Glob:
		for range rapid.IntRange(1, 3).Draw(t, "pieces") {
			c.Pieces = append(c.Pieces,
				[]byte(rapid.SampledFrom([]string{"", "web1", "w", "b", "1", "eu", "a"}).Draw(t, "piece")))
		}
	case Regexp:
		c.Pattern = rapid.SampledFrom(patterns).Draw(t, "pattern")
	}
	c.Tag = tagName(rapid.SampledFrom([]string{"", "", "label", "ddb"}).Draw(t, "namespace"),
		rapid.SampledFrom([]string{"host", "dc", "rack", "part_1", "part_2", "key_length", "part_x",
			"part_02", "part_0"}).Draw(t, "tag"))
	return c
}

// A lookup finds what the model finds, with the values of the model.
func TestLookupsEqualTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, x := model{rapid.SliceOfN(rapid.Custom(drawChange), 0, 30).Draw(t, "changes")}, New()
		for i := range m.changes {
			x.Apply(&m.changes[i])
		}
		all := m.all()
		for range 5 {
			q := Query{Collection: []byte(rapid.SampledFrom([]string{"c", "d", "e"}).Draw(t, "collection"))}
			if rapid.Bool().Draw(t, "named") {
				q.Metric = []byte(rapid.SampledFrom([]string{"\x03cpu", "\x01b", "\x01a\x01b", "\x01z"}).Draw(t,
					"metric"))
			}
			if rapid.Bool().Draw(t, "where") {
				q.Where = drawCond(t, 3)
			}
			q.Want = []TagName{tagName("", "host"), tagName("ddb", "key_length"), tagName("ddb", "part_2"),
				tagName("label", "dc"), tagName("", "none")}
			var want []string
			known := false
			untagged, err := q.Where.UntaggedFilter()
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range all {
				if bare := (series{place: s.place}); untagged([]byte(s.key)) != bare.holds(q.Where) {
					t.Fatalf("%v: %v of %q without tags", q.Where, !bare.holds(q.Where), s.key)
				}
				known = known || s.collection == string(q.Collection)
				if s.collection == string(q.Collection) && (q.Metric == nil || s.name == string(q.Metric)) &&
					s.holds(q.Where) {
					line := fmt.Sprintf("%d %q", s.bucket, s.key)
					for _, n := range q.Want {
						v, ok := s.value(n)
						line += fmt.Sprintf(" %q,%v", v, ok)
					}
					want = append(want, line)
				}
			}
			var got []string
			steps, err := x.Lookup(context.Background(), &q, func(h *Hit) bool {
				line := fmt.Sprintf("%d %q", h.Bucket, h.Key)
				for _, v := range h.Values {
					line += fmt.Sprintf(" %q,%v", v, v != nil)
				}
				got = append(got, line)
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("%v\ngot %q\nwant %q", q.Where, got, want)
			}
			if len(steps) > 0 && steps[len(steps)-1].Found != len(got) {
				t.Fatalf("%d series, the steps say %+v", len(got), steps)
			}
			if x.HasCollection(q.Collection) != known {
				t.Fatalf("collection %s known: %v", q.Collection, !known)
			}
		}
	})
}

// big returns an index of n series: host-like values, each of ten series, and few of others.
func big(t testing.TB, n int) *Index {
	t.Helper()
	x := New()
	for i := range n {
		x.Apply(&Change{
			Bucket: 1, Key: fmt.Appendf(nil, "\x04base\x05%05d", i), Collection: []byte("c"),
			Clock: uint64(i),
			Set: []Tag{tag("", "host", fmt.Sprintf("host-%05d", i/10)), tag("", "dc", string("ab"[i%2])),
				tag("", "rack", strconv.Itoa(i%7))},
		})
	}
	return x
}

// A lookup goes from short lists to long ones, then over values, then over rows; few rows are
// looked at one by one rather than many values.
func TestStepsGoFromCheapToDear(t *testing.T) {
	x := big(t, 5000)
	equal := func(name, value string) *Cond {
		return &Cond{Op: Equal, Tag: tagName("", name), Value: []byte(value)}
	}
	and := func(list ...*Cond) *Cond {
		c := list[0]
		for _, r := range list[1:] {
			c = &Cond{Op: And, Left: c, Right: r}
		}
		return c
	}
	pattern := &Cond{Op: Regexp, Tag: tagName("", "host"), Pattern: "host-.*[13]"}
	part := &Cond{Op: Equal, Tag: tagName("ddb", "part_1"), Value: []byte("base")}
	f := func(c *Cond, want string) {
		t.Helper()
		steps, err := x.Lookup(context.Background(), &Query{Collection: []byte("c"), Where: c},
			func(*Hit) bool {
				return false
			})
		var got []string
		for _, s := range steps[1:] {
			got = append(got, fmt.Sprintf("%s%s: %d of %d, %d checked, %d found",
				strings.Repeat(" ", s.Depth), s.What, s.Lists, s.Postings, s.Checked, s.Found))
		}
		if text := strings.Join(got, "\n"); err != nil || text != want {
			t.Errorf("got\n%s\nwant\n%s\n%v", text, want, err)
		}
	}
	f(and(part, pattern, equal("dc", "a"), equal("rack", "3")),
		`'rack' = '3': 1 of 714, 0 checked, 714 found
'dc' = 'a': 1 of 2500, 0 checked, 357 found
'host' =~ 'host-.*[13]': 0 of 0, 357 checked, 72 found
'ddb':'part_1' = 'base': 0 of 0, 72 checked, 72 found`)
	f(pattern, `'host' =~ 'host-.*[13]': 100 of 1000, 0 checked, 1000 found`)
	f(and(&Cond{Op: Not, Left: equal("dc", "b")}, equal("none", "")),
		`'none' = '': 0 of 0, 0 checked, 0 found
 'dc' = 'b': 1 of 2500, 0 checked, 0 found
NOT 'dc' = 'b': 0 of 0, 0 checked, 0 found`)
	f(&Cond{Op: Or, Left: equal("rack", "1"), Right: &Cond{Op: Exists, Tag: tagName("", "host")}},
		` 'rack' = '1': 1 of 715, 0 checked, 715 found
 'host': 1 of 5000, 0 checked, 5000 found
('rack' = '1' OR 'host'): 0 of 0, 0 checked, 5000 found`)
}

func TestLookupsEnd(t *testing.T) {
	x := big(t, 2*askEvery)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	count := 0
	stop := func(*Hit) bool { count++; return count < 3 }
	if _, err := x.Lookup(context.Background(), &Query{Collection: []byte("c")}, stop); err != nil ||
		count != 3 {
		t.Errorf("stopped after %d hits: %v", count, err)
	}
	all := func(*Hit) bool { return true }
	for _, q := range []Query{
		{},
		{Where: &Cond{Op: Glob, Tag: tagName("ddb", "part_2"), Pieces: [][]byte{{}, {}}}},
	} {
		q.Collection = []byte("c")
		if _, err := x.Lookup(gone, &q, all); err != context.Canceled {
			t.Errorf("cancelled: %v", err)
		}
	}
	bad := &Cond{Op: Not, Left: &Cond{Op: Regexp, Tag: tagName("", "host"), Pattern: "a)(b"}}
	_, err := x.Lookup(context.Background(), &Query{Collection: []byte("c"), Where: bad}, all)
	if err == nil || !strings.Contains(err.Error(), "'host' =~ 'a)(b'") {
		t.Errorf("a bad expression: %v", err)
	}
}

// Expressions that are taken apart match what they match whole.
func FuzzRegexp(f *testing.F) {
	for _, p := range patterns {
		for _, v := range []string{"web1", "a\xff", "", "a\n", "�"} {
			f.Add(p, []byte(v))
		}
	}
	f.Fuzz(func(t *testing.T, pattern string, value []byte) {
		m, err := match.Regexp(pattern)
		if err != nil {
			return
		}
		re := regexp.MustCompile(`\A(?s:` + pattern + `)\z`)
		values := append([][]byte{value}, m.Exact...)
		for _, v := range append(values, bytes.Join(m.Pieces, value)) {
			if got, want := m.Match(v), re.Match(v); got != want {
				t.Fatalf("%q on %q: %v, want %v", pattern, v, got, want)
			}
		}
	})
}

func TestGlobs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.SliceOfN(rapid.SampledFrom([]byte("ab")), 0, 3)
		pieces := rapid.SliceOfN(few, 1, 5).Draw(t, "pieces")
		value := rapid.SliceOfN(rapid.SampledFrom([]byte("ab")), 0, 8).Draw(t, "value")
		if got, want := match.Glob(pieces, value), naiveGlob(pieces, string(value)); got != want {
			t.Fatalf("%q on %q: %v", pieces, value, got)
		}
	})
}
