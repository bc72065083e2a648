// Package rows measures what is in the large table: ingest, memory, space,
// queries, late points, restart, overload. A row is a part of the table that
// can be chosen by its name.
package rows

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"dalmatiner/bench/report"
	"dalmatiner/bench/server"
)

// Space is what the largest row has on disk at once: a full log, the segments,
// and what the store keeps free by itself.
const Space = 6 << 30

// Options say which rows run and how long they take.
type Options struct {
	Only  string // rows whose name matches this regular expression; "" is all
	Count int    // how often an ingest is measured; figures are medians
	Quick bool   // shorter loads where that is of no consequence to the figure
}

// bench is a run of rows.
type bench struct {
	*server.Env
	Options
	table   *report.Table
	started int // clusters
}

type row struct {
	name string
	run  func(*bench, context.Context) error
}

// rows are in the order in which they run.
var rows = []row{
	{"ingest-10k", ingestRow("10 k series", 10_000, 24_000)},
	{"ingest-200k", ingestRow("200 k series", 200_000, 1200)},
	{"ingest-1m", ingestRow("1 M series", 1_000_000, 400)},
	{"ingest-shuffled", (*bench).shuffled},
	{"stages", (*bench).stages},
	{"entries", (*bench).entries},
	{"tiny", (*bench).tiny},
	{"live", (*bench).live},
	{"disk-uniform", (*bench).diskUniform},
	{"corpus", (*bench).corpus},
	{"day", (*bench).day},
	{"year", (*bench).year},
	{"late", (*bench).late},
	{"backfill", (*bench).backfill},
	{"sparse", (*bench).sparse},
	{"series", (*bench).series},
	{"restart", (*bench).restart},
	{"tags", (*bench).tags},
	{"events", (*bench).events},
	{"overload", (*bench).overload},
	{"churn", (*bench).churn},
	{"cluster", (*bench).cluster},
}

// Run runs the rows that are chosen and adds their figures to the table. A row
// that fails stands there as such, and the next one goes on; failed joins their
// errors. After err the table is of no use.
func Run(ctx context.Context, env *server.Env, o Options, t *report.Table) (failed, err error) {
	chosen, err := choose(o.Only)
	if err != nil {
		return nil, err
	}
	b := &bench{Env: env, Options: o, table: t}
	for _, r := range chosen {
		begun := time.Now()
		b.Logf("%s …", r.name)
		rowErr := r.run(b, ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if rowErr != nil {
			t.Add(report.Figure{Area: r.name, What: "failed", Note: rowErr.Error(), Failed: true})
			failed = errors.Join(failed, fmt.Errorf("%s: %w", r.name, rowErr))
		}
		b.Logf("%s took %.0f s", r.name, time.Since(begun).Seconds())
	}
	return failed, nil
}

func choose(pattern string) ([]row, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	var chosen []row
	var names []string
	for _, r := range rows {
		names = append(names, r.name)
		if re.MatchString(r.name) {
			chosen = append(chosen, r)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("-only %q matches none of the rows %q", pattern, names)
	}
	return chosen, nil
}
