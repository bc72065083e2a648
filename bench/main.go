// Program bench measures a build of the store.
//
//	go run ./bench                     every row of the table, about sixteen minutes
//	go run ./bench -only ingest-200k   one row
//	go run ./bench -quick              every row once, some of them shorter
//	go run ./bench guard               figures with bounds that a change must not break
//	go run ./bench steps               load in steps, beyond what the store takes and back
//	go run ./bench compare             the same points and questions to other stores
//	go run ./bench profile             profiles of a store under load
//	go run ./bench corpus              the recordings of real series, and how they are made
//
// A run writes a page and the same figures in Go's benchmark format, both named
// after the commit that is measured; benchstat compares two of the latter. See
// DESIGN.md for what the figures are and how they are compared.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"dalmatiner/bench/compare"
	"dalmatiner/bench/guard"
	"dalmatiner/bench/measure"
	"dalmatiner/bench/profiling"
	"dalmatiner/bench/report"
	"dalmatiner/bench/rows"
	"dalmatiner/bench/server"
	"dalmatiner/bench/steps"
)

const resultsDir = "bench/results"

// Directories that git ignores.
const (
	trialDir   = "bench/trial" // results of runs that are not whole
	profileDir = "bench/profile"
)

// Servers are started with a wish to die with the thread that started them: it
// must be one that lives as long as the program. Before main begins it is sure
// to be the main thread, whose instructions the guard counts.
func init() { runtime.LockOSThread() }

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

// command is what all subcommands have.
type command struct {
	server.Env
	flags   *flag.FlagSet
	out     io.Writer
	results string // directory; "" is where runs of the kind belong
	only    string
	part    string
	quick   bool
}

// subcommands of the program. Without one it measures rows.
var subcommands = map[string]func(*command, []string) error{
	"rows":    (*command).rows,
	"guard":   (*command).guard,
	"steps":   (*command).steps,
	"compare": (*command).compare,
	"corpus":  (*command).corpus,
	"profile": (*command).profile,
}

func run(args []string, out, log io.Writer) error {
	name := "rows"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	switch { // this program as one of its own helpers
	case name == server.DiscardRole:
		return server.RunDiscard(log)
	case name == server.AnswerRole:
		return server.RunAnswer(os.Stdin, log)
	case name == guard.TracedRole && len(args) == 1:
		return guard.RunTraced(args[0])
	}
	sub, ok := subcommands[name]
	if !ok {
		var names []string
		for n := range subcommands {
			names = append(names, n)
		}
		slices.Sort(names)
		return fmt.Errorf("there is no subcommand %q; there are %q", name, names)
	}
	c := &command{
		Env:   server.Env{Log: log},
		flags: flag.NewFlagSet("bench "+name, flag.ContinueOnError),
		out:   out,
	}
	c.flags.SetOutput(log)
	c.flags.StringVar(&c.Bin, "bin", "bin", "`directory` of the built programs")
	c.flags.StringVar(&c.Dir, "dir", os.TempDir(),
		"`directory` for a temporary one with the servers' data")
	return sub(c, args)
}

// rows measures the large table.
func (c *command) rows(args []string) error {
	var o rows.Options
	c.resultFlags("the rows", "measure once, and some rows shorter")
	c.flags.IntVar(&o.Count, "count", 0,
		"measure an ingest so `many` times; its figures are medians (default 3, with -quick 1)")
	return c.inside(args, rows.Space, func(ctx context.Context) error {
		o.Only, o.Quick = c.only, c.quick
		switch {
		case o.Count > 0:
		case o.Quick:
			o.Count = 1
		default:
			o.Count = 3
		}
		t := &report.Table{Head: c.head()}
		failed, err := rows.Run(ctx, &c.Env, o, t)
		if err != nil {
			return err
		}
		var page bytes.Buffer
		t.Render(&page)
		return errors.Join(failed, c.save(&t.Head, "", page.Bytes(), t.Benchmarks()))
	})
}

// guard measures the figures that have bounds. It writes them where it is told.
func (c *command) guard(args []string) error {
	c.flags.StringVar(&c.results, "results", "",
		"`directory` to write the figures to; none if it is empty")
	return c.inside(args, guard.Space, func(ctx context.Context) error {
		h := c.head()
		var page bytes.Buffer
		fmt.Fprintf(&page, "# Guard, %s\n\n%s\n", h.When(), h.Machine)
		t, err := guard.Run(ctx, &c.Env, h, io.MultiWriter(c.out, &page))
		if t == nil || c.results == "" {
			return err
		}
		path, saveErr := report.Save(c.results, &t.Head, "guard", page.Bytes(), t.Benchmarks())
		c.Logf("written to %s", path)
		return errors.Join(err, saveErr)
	})
}

// steps loads a store in steps, and writes its charts as well.
func (c *command) steps(args []string) error {
	charts := ""
	c.resultFlags("", "short steps, two minutes in all")
	c.flags.StringVar(&charts, "charts", "",
		"`directory` to write the charts to; docs if it is empty, with -quick "+trialDir)
	return c.inside(args, rows.Space, func(ctx context.Context) error {
		r, err := steps.Run(ctx, &c.Env, c.head(), c.quick)
		if err != nil {
			return err
		}
		var page bytes.Buffer
		r.Render(&page)
		if err := c.save(r.Head(), "steps", page.Bytes(), r.Benchmarks()); err != nil {
			return err
		}
		if charts == "" && c.quick {
			charts = trialDir
		} else if charts == "" {
			charts = "docs"
		}
		if err := os.MkdirAll(charts, 0o755); err != nil {
			return err
		}
		for name, svg := range r.Charts() {
			if err := os.WriteFile(filepath.Join(charts, name), svg, 0o644); err != nil {
				return err
			}
		}
		return nil
	})
}

// compare measures the store and others beside it.
func (c *command) compare(args []string) error {
	var o compare.Options
	c.resultFlags("the store and the competitors", "send a tenth, to try whether everything works")
	c.flags.StringVar(&o.Part, "part", "",
		"measure only the parts whose name matches this `regexp`: load, live, day, recordings, tags")
	c.flags.StringVar(&o.Cache, "cache", "",
		"`directory` of what is fetched; dalmatiner-competitors in the user's cache if it is empty")
	return c.inside(args, compare.Space, func(ctx context.Context) error {
		o.Only, o.Quick = c.only, c.quick
		c.part = o.Part
		t, err := compare.Run(ctx, &c.Env, o)
		if err != nil {
			return err
		}
		var page bytes.Buffer
		t.Render(&page)
		return errors.Join(t.Failures(), c.save(t.Head(), "compare", page.Bytes(), t.Benchmarks()))
	})
}

// profile takes profiles.
func (c *command) profile(args []string) error {
	return c.inside(args, rows.Space, func(ctx context.Context) error {
		return profiling.Run(ctx, &c.Env, c.out, profileDir)
	})
}

// resultFlags defines the flags of a subcommand that writes results.
func (c *command) resultFlags(chosen, quick string) {
	c.flags.StringVar(&c.results, "results", "",
		"`directory` to write the results to; "+resultsDir+
			" if it is empty, of runs that are not whole "+trialDir)
	c.flags.BoolVar(&c.quick, "quick", false, quick)
	if chosen != "" {
		c.flags.StringVar(&c.only, "only", "", "measure only "+chosen+" whose name matches this `regexp`")
	}
}

// inside parses the flags, looks for the space that is needed, and calls fn with
// Dir as a temporary directory that is gone afterwards.
func (c *command) inside(args []string, need int64, fn func(context.Context) error) error {
	if err := c.flags.Parse(args); err != nil {
		return err
	}
	if c.flags.NArg() > 0 {
		return fmt.Errorf("%s takes no arguments, there are %q", c.flags.Name(), c.flags.Args())
	}
	return c.Inside(need, fn)
}

func (c *command) head() report.Head {
	return report.Head{Machine: measure.Look(c.Bin), Begun: time.Now()}
}

// save prints a page and writes it with its lines: a run that is not whole goes
// where git does not look, unless a directory was named.
func (c *command) save(h *report.Head, kind string, page []byte, lines []report.Benchmark) error {
	if _, err := c.out.Write(page); err != nil {
		return err
	}
	dir := c.results
	switch {
	case dir != "":
	case c.quick || c.only != "" || c.part != "":
		dir = trialDir
	default:
		dir = resultsDir
	}
	path, err := report.Save(dir, h, kind, page, lines)
	if err == nil {
		c.Logf("written to %s and the page beside it", path)
	}
	return err
}
