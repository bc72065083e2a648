package tags

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// longNames returns an index of series with names of 60 KB and ten long tags each, and a short one.
func longNames(t *testing.T, series int) *Index {
	t.Helper()
	x := New()
	for i := range series {
		c := Change{Bucket: 1, Collection: []byte("c"), Clock: 1,
			Key: fmt.Appendf(nil, "%05d%s", i, strings.Repeat("k", 60_000))}
		c.Set = append(c.Set, Tag{TagName{Name: []byte("n")}, fmt.Append(nil, i)})
		for j := range 10 {
			c.Set = append(c.Set,
				Tag{TagName{Name: fmt.Append(nil, "long", j)},
					fmt.Appendf(nil, "%05d%s", i, strings.Repeat("v", 4000))})
		}
		if !x.Apply(&c) {
			t.Fatal("nothing new")
		}
	}
	return x
}

// allocated returns the bytes that fn allocates.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestALookupHoldsFewBytes: hits are copied together, but with long names and values not very many.
func TestALookupHoldsFewBytes(t *testing.T) {
	const series = 200
	x := longNames(t, series)
	q := Query{Collection: []byte("c"), Want: []TagName{{Name: []byte("long3")}, {Name: []byte("n")}}}
	found := make(map[string]bool)
	bytes := allocated(func() {
		_, err := x.Lookup(context.Background(), &q, func(h *Hit) bool {
			if string(h.Key[:5]) != string(h.Values[0][:5]) {
				t.Errorf("series %s has the tag of %s", h.Key[:5], h.Values[0][:5])
			}
			found[string(h.Values[1])] = true
			return true
		})
		if err != nil {
			t.Error(err)
		}
	})
	if len(found) != series || bytes > 1<<20 {
		t.Errorf("%d series of %d were found, and %d bytes allocated", len(found), series, bytes)
	}
}

// meter counts what is lent, up to a limit.
type meter struct{ lent, limit int64 }

var errMeter = errors.New("no memory")

func (m *meter) Grow(bytes int64) error {
	if m.lent+bytes > m.limit {
		return errMeter
	}
	m.lent += bytes
	return nil
}

// TestAListIsChargedForWhatItHolds: a list of few elements costs little, whatever else there is;
// one of many is charged for its texts, and refused where there is no memory for them.
func TestAListIsChargedForWhatItHolds(t *testing.T) {
	x := longNames(t, 200)
	long, n := TagName{Name: []byte("long3")}, TagName{Name: []byte("n")}
	values := func(of TagName, limit int) func(Memory) (List, error) {
		return func(m Memory) (List, error) {
			return x.Values(context.Background(), &Listing{Collection: []byte("c"), Limit: limit, Memory: m},
				of)
		}
	}
	for _, c := range []struct {
		what        string
		list        func(Memory) (List, error)
		elements    int
		least, most int64
	}{
		{"ten short values", values(n, 10), 10, 1, listStep},
		{"two long values", values(long, 2), 2, 3 * 2 * 4005, listStep},
		{"all long values", values(long, 1000), 200, 3 * 200 * 4005, 3*200*(4005+listedSize) + listStep},
		{"two metrics", func(m Memory) (List, error) {
			return x.Metrics(context.Background(), &Listing{Collection: []byte("c"), Limit: 2, Memory: m}, 0)
		}, 2, 3 * 2 * 60_005, 5*(60_005+listedSize) + 2*listStep},
		{"names of tags", func(m Memory) (List, error) {
			return x.Names(context.Background(), &Listing{Limit: 1000, Memory: m})
		}, 11, 1, listStep},
		{"collections", func(m Memory) (List, error) {
			return x.Collections(context.Background(), Listing{Limit: 100_000, Memory: m})
		}, 1, 1, listStep},
	} {
		m := &meter{limit: 1 << 40}
		list, err := c.list(m)
		if err != nil || len(list.Elements) != c.elements || m.lent < c.least || m.lent > c.most {
			t.Errorf("%s: %d elements, %d bytes were lent, want %d from %d to %d: %v", c.what,
				len(list.Elements), m.lent, c.elements, c.least, c.most, err)
		}
		if _, err := c.list(&meter{limit: m.lent - 1}); !errors.Is(err, errMeter) {
			t.Errorf("%s with a byte too few: %v", c.what, err)
		}
		if again, err := c.list(nil); err != nil || len(again.Elements) != c.elements {
			t.Errorf("%s where everything is lent: %d elements, %v", c.what, len(again.Elements), err)
		}
	}
}
