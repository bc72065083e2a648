package cardinality

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/write/series"
)

// now is in the second of the hours whose arrivals are new.
var now = time.Unix(1_800_001_800, 0)

// world is all series that there are.
type world struct {
	list     []buckets.Info
	keys     map[uint64][]string
	arrivals series.Arrivals
	index    *tags.Index
	charged  int64
	limit    int64
}

func newWorld() *world {
	w := &world{keys: map[uint64][]string{}, index: tags.New(), limit: 1 << 40}
	w.arrivals.Begin(now.Add(-time.Hour).UnixNano(), 1<<30)
	return w
}

func (w *world) Buckets() []buckets.Info { return w.list }

func (w *world) RecentSeries() series.RecentSeries {
	return w.arrivals.RecentSeries(now.UnixNano())
}

func (w *world) Metrics(ctx context.Context, b buckets.Info, prefix []byte,
	fn func(key []byte) bool) error {
	if b.Name == "deleted" {
		return buckets.UnknownError(b.Name)
	}
	for _, key := range w.keys[b.ID] {
		if strings.HasPrefix(key, string(prefix)) && !fn([]byte(key)) {
			break
		}
	}
	return ctx.Err()
}

var errNoMemory = errors.New("no memory")

func (w *world) Grow(n int64) error {
	if w.charged += n; w.charged > w.limit {
		return errNoMemory
	}
	return nil
}

func (w *world) top(t fataler, q *Query) Answer {
	t.Helper()
	a, err := Top(context.Background(), q, Sources{w, w, w.index, w})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

type fataler interface {
	Helper()
	Fatal(args ...any)
}

func (w *world) add(b *buckets.Info, key string, isNew bool) {
	w.keys[b.ID] = append(w.keys[b.ID], key)
	id := metric.Series(b.ID, []byte(key))
	if b.HPTS {
		id = metric.TimestampedID(b.ID, []byte(key))
	}
	if isNew {
		w.arrivals.Add(id, now.UnixNano())
	}
}

func drawWorld(t *rapid.T) (w *world, isNew map[[2]string]bool) {
	w, isNew = newWorld(), map[[2]string]bool{}
	for i, name := range []string{"a", "b", "odd\xff'",
		"deleted"}[:rapid.IntRange(1, 4).Draw(t, "buckets")] {
		w.list = append(w.list, buckets.Info{Name: name, ID: uint64(7 + i), Resolution: 1000,
			HPTS: i == 1})
	}
	part := rapid.SampledFrom([]string{"web", "db", "eu", "x", "", "o'd\xffd"})
	known := map[[2]string]bool{}
	for range rapid.IntRange(0, 40).Draw(t, "series") {
		b := &w.list[rapid.IntRange(0, len(w.list)-1).Draw(t, "bucket")]
		key, _ := metric.Key(rapid.SliceOfN(part, 1, 4).Draw(t, "parts")...)
		if rapid.IntRange(0, 9).Draw(t, "raw") == 0 {
			key = []byte(rapid.SampledFrom([]string{"\x09raw", "\x03web\x07b", "\x01"}).Draw(t, "key"))
		}
		of := [2]string{b.Name, string(key)}
		if known[of] || b.Name == "deleted" {
			continue
		}
		known[of], isNew[of] = true, rapid.Bool().Draw(t, "new")
		w.add(b, string(key), isNew[of])
	}
	return w, isNew
}

// naive counts series by the texts that fn gives, and puts the elements in order. Those that may
// stand at the end in any order are the ones with equal counts.
func naive(isNew map[[2]string]bool, q *Query, fn func(bucket string, key []byte) (Element, bool)) (
	a Answer) {
	of := map[[2]string]Element{}
	for s, recent := range isNew {
		e, ok := fn(s[0], []byte(s[1]))
		if !ok {
			continue
		}
		at := [2]string{e.Bucket, e.Text}
		was := of[at]
		e.Deeper = e.Deeper || was.Deeper
		e.Series, e.New = was.Series+1, was.New
		a.Series++
		if recent {
			e.New++
			a.New++
		}
		of[at] = e
	}
	for _, e := range of {
		a.List = append(a.List, e)
	}
	a.Distinct = len(of)
	slices.SortFunc(a.List, func(x, y Element) int {
		if order := rank(&y, q) - rank(&x, q); order != 0 {
			return order
		}
		return strings.Compare(x.Text+x.Bucket, y.Text+y.Bucket)
	})
	return a
}

func rank(e *Element, q *Query) int {
	if q.ByNew {
		return e.New*1000 + e.Series
	}
	return e.Series*1000 + e.New
}

// Prefixes and buckets are counted as a map of texts counts them.
func TestCountsEqualTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, isNew := drawWorld(t)
		q := &Query{By: Prefixes, Depth: rapid.IntRange(1, 4).Draw(t, "depth"),
			ByNew: rapid.Bool().Draw(t, "by new"),
			Limit: rapid.SampledFrom([]int{1, 2, 3, 1000}).Draw(t, "limit"), Now: now}
		var parts []string
		if rapid.Bool().Draw(t, "with a prefix") {
			parts = rapid.SliceOfN(rapid.SampledFrom([]string{"web", "db", ""}), 1, 2).Draw(t, "prefix")
			q.Prefix, _ = metric.Key(parts...)
		}
		if rapid.Bool().Draw(t, "of a bucket") {
			q.Bucket = &w.list[0]
		}
		want := naive(isNew, q, func(bucket string, key []byte) (Element, bool) {
			list, ok := metric.Parts(key)
			e := Element{Bucket: metric.Escape(bucket), Text: metric.Text(key)}
			if q.Bucket != nil && q.Bucket.Name != bucket || !ok && len(parts) > 0 ||
				len(list) < len(parts) {
				return e, false
			}
			for i, p := range parts {
				if string(list[i]) != p {
					return e, false
				}
			}
			if n := len(parts) + q.Depth; ok && len(list) > n {
				var first []string
				for _, p := range list[:n] {
					first = append(first, string(p))
				}
				short, _ := metric.Key(first...)
				e.Text, e.Deeper = metric.Text(short), true
			}
			return e, true
		})
		same(t, q, w.top(t, q), want)

		q = &Query{By: Buckets, ByNew: q.ByNew, Limit: q.Limit, Now: now}
		want = naive(isNew, q, func(bucket string, _ []byte) (Element, bool) {
			return Element{Text: metric.Escape(bucket)}, true
		})
		for _, b := range w.list {
			if !slices.ContainsFunc(want.List, func(e Element) bool {
				return e.Text == metric.Escape(b.Name)
			}) {
				want.List = append(want.List, Element{Text: metric.Escape(b.Name)})
				want.Distinct++
			}
		}
		same(t, q, w.top(t, q), want)
	})
}

// same compares an answer with all elements in order: which of equal ones stand at the end is open.
func same(t *rapid.T, q *Query, got, want Answer) {
	t.Helper()
	if got.Series != want.Series || got.New != want.New || got.Distinct != want.Distinct ||
		got.More != (want.Distinct > q.Limit) || got.By != q.By {
		t.Fatalf("%+v: got %+v, want %+v", q, got, want)
	}
	if len(got.List) != min(q.Limit, len(want.List)) {
		t.Fatalf("%+v: %d elements of %d", q, len(got.List), len(want.List))
	}
	for i, e := range got.List {
		if rank(&e, q) != rank(&want.List[i], q) || !slices.Contains(want.List, e) ||
			slices.Contains(got.List[:i], e) {
			t.Fatalf("%+v: element %d is %+v, want one like %+v", q, i, e, want.List[i])
		}
	}
}

func TestTopOfTags(t *testing.T) {
	w := newWorld()
	for i := range 30 {
		c := tags.Change{Bucket: 1, Key: fmt.Appendf(nil, "\x02%02d", i), Collection: []byte("c"),
			Clock: 1,
			Set: []tags.Tag{{TagName: tags.TagName{Name: []byte("host")},
				Value: fmt.Appendf(nil, "h%d", i%3)}}}
		if i < 4 {
			c.Clock = uint64(now.UnixNano())
			c.Set = append(c.Set,
				tags.Tag{TagName: tags.TagName{Namespace: []byte("n:s"), Name: []byte("pod")},
					Value: fmt.Appendf(nil, "p%d\xff", i)})
		}
		w.index.Apply(&c)
	}
	text := func(q *Query) string {
		q.Now = now
		a := w.top(t, q)
		var b strings.Builder
		for _, e := range a.List {
			fmt.Fprintf(&b, "%s %s %d: %d %d\n", e.Text, e.Name, e.Values, e.Series, e.New)
		}
		fmt.Fprintf(&b, "%d of %d %d, more %v", a.Distinct, a.Series, a.New, a.More)
		return b.String()
	}
	pod := &tags.TagName{Namespace: []byte("n:s"), Name: []byte("pod")}
	for _, c := range []struct {
		q    Query
		want string
	}{
		{Query{By: Names, Limit: 5}, "host  3: 30 4\nn\\:s:pod  4: 4 4\n2 of 30 4, more false"},
		{Query{By: Names, Limit: 1, ByNew: true}, "host  3: 30 4\n2 of 30 4, more true"},
		{Query{By: Values, Limit: 2}, "h0 host 0: 10 2\nh1 host 0: 10 1\n7 of 30 4, more true"},
		{Query{By: Values, Limit: 3, ByNew: true},
			"h0 host 0: 10 2\nh1 host 0: 10 1\nh2 host 0: 10 1\n7 of 30 4, more true"},
		{Query{By: Values, Limit: 2, Name: pod},
			"p0\\xff n\\:s:pod 0: 1 1\np1\\xff n\\:s:pod 0: 1 1\n4 of 30 4, more true"},
		{Query{By: Values, Limit: 2, Collection: []byte("none")}, "0 of 0 0, more false"},
	} {
		if got := text(&c.q); got != c.want {
			t.Errorf("%+v: got\n%s\nwant\n%s", c.q, got, c.want)
		}
	}
}

// The rate of what is new is by the hour, and never by less.
func TestSince(t *testing.T) {
	w := newWorld()
	begin := now.Truncate(time.Hour).Add(-time.Hour)
	for _, c := range []struct {
		began time.Time
		by    By
		since time.Time
		hours float64
	}{
		{begin.Add(-time.Hour), Buckets, begin, 1.5},
		{begin.Add(time.Hour), Buckets, begin.Add(time.Hour), 1},
		{begin.Add(time.Hour), Names, begin, 1.5},
	} {
		w.arrivals.Begin(c.began.UnixNano(), 1<<20)
		a := w.top(t, &Query{By: c.by, Limit: 1, Now: now})
		if a.Since != c.since.UnixMilli() || a.Hours != c.hours {
			t.Errorf("%s since %v: got %v and %g h", c.by, c.began, time.UnixMilli(a.Since), a.Hours)
		}
	}
}

// What a count takes is bounded, and asked for first.
func TestBounds(t *testing.T) {
	w := newWorld()
	w.list = []buckets.Info{{Name: "a", ID: 1, Resolution: 1000}}
	for i := range maxPrefixes + 1 {
		w.keys[1] = append(w.keys[1], fmt.Sprintf("\x07%07d", i))
	}
	q := &Query{By: Prefixes, Depth: 1, Limit: 1, Now: now}
	many := (*Excess)(nil)
	if _, err := Top(context.Background(), q, Sources{w, w, w.index, w}); !errors.As(err, &many) {
		t.Errorf("too many prefixes: %v", err)
	}
	if w.charged < maxPrefixes*slotBytes || w.charged > 4*maxPrefixes*slotBytes {
		t.Errorf("charged %d bytes", w.charged)
	}
	w.charged, w.limit, w.keys[1] = 0, 1<<20, w.keys[1][:100_000]
	if _, err := Top(context.Background(), q, Sources{w, w, w.index, w}); !errors.Is(err,
		errNoMemory) {
		t.Errorf("without memory: %v", err)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	w.limit = 1 << 40
	if _, err := Top(gone, q, Sources{w, w, w.index, w}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	q.Bucket = &buckets.Info{Name: "deleted"}
	if _, err := Top(context.Background(), q, Sources{w, w, w.index, w}); !errors.Is(err,
		buckets.ErrUnknown) {
		t.Errorf("a bucket that is deleted meanwhile: %v", err)
	}
}

// Series are counted many together, and the table grows: nothing is lost where one ends.
func TestManySeries(t *testing.T) {
	w := newWorld()
	w.list = []buckets.Info{{Name: "a", ID: 1, Resolution: 1000}}
	const n = 7 * block
	for i := range n {
		key, _ := metric.Key(fmt.Sprint("p", i/(2*block)), fmt.Sprint(i))
		w.add(&w.list[0], string(key), i%4 == 0)
	}
	a := w.top(t, &Query{By: Prefixes, Depth: 1, Limit: 10, Now: now})
	for i, e := range a.List {
		want := Element{Text: fmt.Sprintf("'p%d'", i), Bucket: "a", Deeper: true, Series: 2 * block,
			New: block / 2}
		if i == 3 {
			want.Series, want.New = block, block/4
		}
		if e != want {
			t.Errorf("prefix %d: %+v, want %+v", i, e, want)
		}
	}
	if len(a.List) != 4 || a.Series != n || a.New != n/4 {
		t.Errorf("all: %+v", a)
	}
	a = w.top(t, &Query{By: Prefixes, Depth: 2, Limit: MaxLimit, ByNew: true, Now: now})
	if len(a.List) != MaxLimit || a.Distinct != n || a.List[0].New != 1 || a.List[n/4-1].New != 1 ||
		a.List[n/4].New != 0 {
		t.Errorf("%d of %d series", len(a.List), a.Distinct)
	}
}
