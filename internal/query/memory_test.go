package query_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"dalmatiner/internal/query"
)

// lender lends up to a limit.
type lender struct{ lent, limit int64 }

var errLent = errors.New("nothing is left")

func (l *lender) Grow(n int64) error {
	if l.lent+n > l.limit {
		return errLent
	}
	l.lent += n
	return nil
}

// A query asks for its memory before it reads, at least for what its result
// has, and is refused as a whole.
func TestMemoryIsBorrowedBeforeReading(t *testing.T) {
	const n = 100_000
	for _, c := range []struct {
		text  string
		opt   query.Options
		least int64 // bytes of the result
	}{
		{"SELECT a BUCKET b BETWEEN 1 AND NOW", query.Options{}, 8 * n},
		{"SELECT a BUCKET b BETWEEN 1 AND NOW", query.Options{Confidence: true}, 16 * n},
		{"SELECT a BUCKET b, b BUCKET b, a BUCKET b + b BUCKET b BETWEEN 1 AND NOW", query.Options{},
			24 * n},
		{"SELECT max(a BUCKET b, 1h) BETWEEN 1 AND NOW", query.Options{}, 8 * 27},
	} {
		m := newBucket(t)
		m.load("b", key(t, "a"), 0, ints(n, func(i int64) int64 { return i }))
		e := engine(m, n*1000)
		l := &lender{limit: 1 << 40}
		c.opt.Memory = l
		if _, err := e.Query(context.Background(), c.text, c.opt); err != nil {
			t.Fatal(err)
		}
		if most := 2*c.least + 8<<20; l.lent < c.least || l.lent > most {
			t.Errorf("%s: borrowed %d bytes, want from %d to %d", c.text, l.lent, c.least, most)
		}
		m.noteReads()
		c.opt.Memory = &lender{limit: l.lent - 1}
		_, err := e.Query(context.Background(), c.text, c.opt)
		if !errors.Is(err, errLent) || !strings.Contains(err.Error(), "the query is refused") {
			t.Errorf("%s with a byte too few: %v", c.text, err)
		}
		if len(m.reads) != 0 {
			t.Errorf("%s: read %v before it was refused", c.text, m.reads)
		}
	}
}

// The series of a plan are paid for while it is made.
func TestAWidePlanIsRefusedOnTheWay(t *testing.T) {
	m := newBucket(t)
	for i := range 5000 {
		m.load("b", key(t, "s", string(rune('a'+i%26))+strings.Repeat("x", i/26)), 0, nil)
	}
	l := &lender{limit: 2 << 20}
	_, err := engine(m, 100_000).Query(context.Background(), "SELECT sum(s.* BUCKET b) LAST 10s",
		query.Options{Memory: l})
	if !errors.Is(err, errLent) {
		t.Errorf("a plan of 5,000 series in 2 MiB: %v", err)
	}
}

// What a short text makes of many series is paid for and bounded: arguments,
// results, names. Without that this is gigabytes before anything is read.
func TestAShortQueryWithALongPlanIsRefused(t *testing.T) {
	m := newBucket(t)
	for i := range 2000 {
		m.load("b", key(t, "s", string(rune('a'+i%26))+strings.Repeat("x", i/26)), 0, nil)
	}
	const wide = " ALIAS s.* BUCKET b AS x LAST 1ms" // no slot: no values count
	long := strings.Repeat("p", 250)
	e := engine(m, 100_000)
	for _, c := range []struct{ text, want string }{
		{"SELECT sum(x" + strings.Repeat(",x", 5000) + ")" + wide, "bytes to hold at once"},
		{"SELECT x" + strings.Repeat(",x", 5000) + wide, "bytes to hold at once"},
		{"SELECT x" + strings.Repeat("+x", 500) + wide, "bytes to hold at once"},
		{"SELECT sum(x" + strings.Repeat(",topk(x,1),x", 5000) + ")" + wide, "bytes to hold at once"},
		{"SELECT x AS $2" + strings.Repeat(".$2", 5000) + wide, "bytes to hold at once"},
		{"SELECT x METADATA {a: '" + strings.Repeat("m", 100_000) + "'}" + wide, "bytes to hold at once"},
		{"SELECT sum(x" + strings.Repeat(",x", 5000) + ") ALIAS " + long + " BUCKET b AS x LAST 1ms",
			"bytes of name, the limit is 1048576: give it a name with AS"},
	} {
		l := &lender{limit: 1 << 40}
		_, err := e.Query(context.Background(), c.text,
			query.Options{Memory: l, Limits: query.Limits{MaxMemory: 32 << 20}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40s…: %v, want %q", c.text, err, c.want)
		}
		if l.lent > 34<<20 {
			t.Errorf("%.40s…: borrowed %d bytes of 32 MiB", c.text, l.lent)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := e.Query(ctx, c.text, query.Options{}); !errors.Is(err, context.Canceled) &&
			!strings.Contains(err.Error(), "of name") {
			t.Errorf("%.40s…, cancelled: %v", c.text, err)
		}
	}
}

// A plan to be shown is paid for: its steps and texts are more than it itself.
func TestAShownPlanIsBorrowedFor(t *testing.T) {
	m := newBucket(t)
	const series = 1000
	for i := range series {
		m.load("b", key(t, "s", string(rune('a'+i%26))+strings.Repeat("x", i/26)), 0, nil)
	}
	const text = "SELECT max(s.* BUCKET b) LAST 10s"
	var lent [2]int64
	for i := range lent {
		l := &lender{limit: 1 << 40}
		if _, err := engine(m, 100_000).Query(context.Background(), text,
			query.Options{Memory: l, Explain: i == 1}); err != nil {
			t.Fatal(err)
		}
		lent[i] = l.lent
	}
	if lent[1] < lent[0]+500*series {
		t.Errorf("the query borrows %d bytes, its plan %d", lent[0], lent[1])
	}
}

// A plan that nobody could read is not made: EXPLAIN is refused where the
// values are given.
func TestALongPlanIsNotExplained(t *testing.T) {
	m := newBucket(t)
	for i := range 2000 {
		m.load("b", key(t, "s", string(rune('a'+i%26))+strings.Repeat("x", i/26)), 0, nil)
	}
	text := "SELECT x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7, x + 8, x + 9, x + 10, x + 11, " +
		"x + 12 ALIAS s.* BUCKET b AS x LAST 1ms"
	e := engine(m, 100_000)
	if _, err := e.Query(context.Background(), text, query.Options{}); err != nil {
		t.Error(err)
	}
	l := &lender{limit: 1 << 40}
	_, err := e.Query(context.Background(), "EXPLAIN "+text, query.Options{Memory: l})
	var limit *query.LimitError
	if !errors.As(err, &limit) || limit.What != "steps to explain" || limit.Limit != 20_000 ||
		limit.Got > 25_000 {
		t.Errorf("EXPLAIN of 26,000 steps: %v", err)
	}
	if l.lent > 32<<20 {
		t.Errorf("it borrowed %d bytes before", l.lent)
	}
}

// TestAQueryOfFewLongNames: names of 60 KB are paid for where they are asked for, not those beside
// them, and EXPLAIN pays for the text that it makes of them.
func TestAQueryOfFewLongNames(t *testing.T) {
	const size = 60_000
	m := newBucket(t)
	long := strings.Repeat("x", 239)
	for i := range 100 {
		parts := []string{"s" + string(rune('a'+i%26)) + string(rune('a'+i/26))}
		for len(parts)*240 < size {
			parts = append(parts, long)
		}
		m.load("b", key(t, parts...), 0, ints(10, func(i int64) int64 { return i }))
	}
	pattern := "saa" + strings.Repeat(".*", size/240-1)
	for _, c := range []struct {
		text        string
		least, most int64
	}{
		{"SELECT " + pattern + " BUCKET b LAST 10s", 2 * size, 5 * size},
		{"SELECT sum(" + pattern + " BUCKET b) LAST 10s", 2 * size, 5 * size},
		{"EXPLAIN SELECT " + pattern + " BUCKET b LAST 10s", 5 * size, 8 * size},
	} {
		l := &lender{limit: 1 << 40}
		if _, err := engine(m, 10_000).Query(context.Background(), c.text,
			query.Options{Memory: l}); err != nil {
			t.Fatal(err)
		}
		if l.lent < c.least || l.lent > c.most {
			t.Errorf("%.40s: borrowed %d bytes, want from %d to %d", c.text, l.lent, c.least, c.most)
		}
	}
}
