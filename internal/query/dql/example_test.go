package dql_test

import (
	"errors"
	"fmt"
	"time"

	"dalmatiner/internal/query/dql"
)

// The tree of a query can be written as text again, with its aliases replaced.
func ExampleParse() {
	q, err := dql.Parse("SELECT avg(x, 1m) AS a, max(x, 1h) ALIAS web.*.cpu BUCKET prod AS x " +
		"LAST 1d")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range q.Fields {
		fmt.Println(dql.Name(f.Expr, 100))
	}
	fmt.Println(q)
	// Output:
	// avg('web'.*.'cpu' BUCKET 'prod')
	// max('web'.*.'cpu' BUCKET 'prod')
	// SELECT avg('web'.*.'cpu' BUCKET 'prod', 1m) AS 'a', max('web'.*.'cpu' BUCKET 'prod', 1h) LAST 1d
}

// An error says where it is, in the text of the query.
func ExampleError() {
	const text = "SELECT avg(cpu BUCKET prod, 5min) LAST 1h"
	_, err := dql.Parse(text)
	var e *dql.Error
	if errors.As(err, &e) {
		fmt.Println(e)
		fmt.Println(text[e.Pos:])
	}
	// Output:
	// line 1, column 29: 5min is no span of time: the units are ms, s, m, h, d, w, mo and y; write 5m
	// 5min) LAST 1h
}

// The original's programs send chains of operators that group to the right.
func ExampleParseCompat() {
	for _, parse := range []func(string) (*dql.Query, error){dql.Parse, dql.ParseCompat} {
		q, err := parse("SELECT a BUCKET b - c BUCKET b - d BUCKET b LAST 1m")
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(dql.Name(q.Fields[0].Expr, 100))
	}
	// Output:
	// diff(diff('a' BUCKET 'b', 'c' BUCKET 'b'), 'd' BUCKET 'b')
	// diff('a' BUCKET 'b', diff('c' BUCKET 'b', 'd' BUCKET 'b'))
}

func ExampleParseDate() {
	zone := time.FixedZone("", 2*60*60)
	for _, text := range []string{"2026-11-22", "2026-11-22 12:30:00", "2026-11-22 12:30:00 +0000"} {
		ms, err := dql.ParseDate(text, zone)
		fmt.Println(ms, err)
	}
	// Output:
	// 1795298400000 <nil>
	// 1795343400000 <nil>
	// 1795350600000 <nil>
}
