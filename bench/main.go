// Program bench measures a build of the store and prints one table: every
// figure with its budget beside it.
//
//	go run ./bench -bin bin            everything, about sixteen minutes
//	go run ./bench -bin bin -quick     one run of everything instead of three
//	go run ./bench -only ingest-200k   one row, printed and not written
//	go run ./bench -steps              load in steps, beyond what the store takes and back
//	go run ./bench -guard              figures with bounds that a change must not break
//	go run ./bench -profile            profiles of a server under load
//
// Processor time is what figures of ingest are in: it is that of the server's
// process alone, and it stays the same on a busy machine where the rate does
// not. What receiving the same bytes costs by itself is measured beside it, by
// a server that throws them away.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"
	"time"

	"dalmatiner/bench/measure"
)

// neededSpace is what the largest row has on disk at once: a full log, the
// segments, and what the store keeps free by itself.
const neededSpace = 6 << 30

// guardSpace is the same for -guard.
const guardSpace = 2 << 30

// bench is one run of the program.
type bench struct {
	bin   string    // directory of the built programs
	dir   string    // temporary, for everything the servers write
	reps  int       // how often an ingest is measured; figures are medians
	log   io.Writer // tells what is being done
	table *table
}

// A row is a part of the run that can be chosen by its name.
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
	{"day", (*bench).day},
	{"year", (*bench).year},
	{"late", (*bench).late},
	{"backfill", (*bench).backfill},
	{"sparse", (*bench).sparse},
	{"series", (*bench).series},
	{"restart", (*bench).restart},
	{"overload", (*bench).overload},
	{"churn", (*bench).churn},
}

// Servers are started with a wish to die with the thread that started them: it
// must be one that lives as long as the program. Before main begins it is sure
// to be the main thread, whose instructions -guard counts.
func init() { runtime.LockOSThread() }

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string, out, log io.Writer) error {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(log)
	bin := f.String("bin", "bin", "`directory` of the built programs")
	dir := f.String("dir", os.TempDir(), "`directory` for a temporary one with the servers' data")
	results := f.String("results", filepath.Join("bench", "results"), "`directory` to write the dated table to")
	only := f.String("only", "", "run the rows whose name matches this `regexp`, and write no file")
	quick := f.Bool("quick", false, "measure once instead of three times; short steps, into "+trialDir)
	charts := f.String("charts", "docs", "`directory` to write the charts of -steps to")
	steps := f.Bool("steps", false, "load a store in steps, and write their table and charts")
	guard := f.Bool("guard", false, "compare figures with their bounds, and fail where one is broken")
	traced := f.String("traced", "", "be the process whose instructions -guard counts, with its data in a `directory`")
	profile := f.Bool("profile", false, "take profiles of a store under load, into "+profileDir)
	discard := f.Bool("discard", false, "be the server that throws away what it receives")
	answer := f.Bool("answer", false, "be the server that answers every query with its standard input")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *discard {
		return runDiscard(log)
	}
	if *answer {
		return runAnswer(os.Stdin, log)
	}
	if *traced != "" {
		return runTraced(*traced)
	}
	need := int64(neededSpace)
	if *guard {
		need = guardSpace
	}
	if err := checkSpace(*dir, need); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b := &bench{bin: *bin, reps: 3, log: log, table: &table{machine: measure.Machine(), begun: time.Now()}}
	if *quick {
		b.reps = 1
	}
	return b.inside(*dir, func() error {
		switch {
		case *steps && *quick:
			return b.steps(ctx, out, trialDir, trialDir)
		case *steps:
			return b.steps(ctx, out, *results, *charts)
		case *guard:
			return b.guard(ctx, out)
		case *profile:
			return b.profiles(ctx, out, profileDir)
		}
		return b.rows(ctx, out, *only, *results)
	})
}

// Directories that git ignores.
const (
	trialDir   = "bench/trial"
	profileDir = "bench/profile"
)

// inside calls fn with a temporary directory that is gone afterwards.
func (b *bench) inside(parent string, fn func() error) (err error) {
	if b.dir, err = os.MkdirTemp(parent, "ddb-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	return fn()
}

// rows runs the rows that a pattern chooses, prints the table, and writes it
// where all of them ran.
func (b *bench) rows(ctx context.Context, out io.Writer, pattern, results string) error {
	chosen, err := choose(pattern)
	if err != nil {
		return err
	}
	failed, err := b.runRows(ctx, chosen)
	if err != nil {
		return err
	}
	if err := b.report(out, results, pattern == ""); err != nil {
		return err
	}
	return failed
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

func checkSpace(dir string, need int64) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return fmt.Errorf("free space of %s: %w", dir, err)
	}
	if free := int64(st.Bavail) * st.Bsize; free < need {
		return fmt.Errorf("%s has %d MiB free and up to %d are needed: name another directory with -dir", dir, free>>20, need>>20)
	}
	return nil
}

// runRows runs the rows. One that fails is shown as such in the table, and the
// next one goes on.
func (b *bench) runRows(ctx context.Context, chosen []row) (failed, err error) {
	for _, r := range chosen {
		begun := time.Now()
		b.logf("%s …", r.name)
		rowErr := r.run(b, ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if rowErr != nil {
			b.table.add(figure{area: r.name, what: "failed", note: rowErr.Error(), failed: true})
			failed = errors.Join(failed, fmt.Errorf("%s: %w", r.name, rowErr))
		}
		b.logf("%s took %.0f s", r.name, time.Since(begun).Seconds())
	}
	return failed, nil
}

// report prints the table, and writes it to a file named by the date.
func (b *bench) report(out io.Writer, dir string, write bool) error {
	var text bytes.Buffer
	b.table.render(&text)
	if _, err := out.Write(text.Bytes()); err != nil || !write {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, b.table.begun.Format(time.DateOnly)+".md"), text.Bytes(), 0o644)
}

func (b *bench) logf(format string, args ...any) {
	fmt.Fprintf(b.log, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
