package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"dalmatiner/bench/corpus"
	"dalmatiner/bench/recorder"
	"dalmatiner/bench/rows"
	"dalmatiner/bench/server"
)

// corpusFlags are those of bench corpus. What it does is its first argument.
type corpusFlags struct {
	dir, about, out, job, span string
	interval                   time.Duration
	bounds                     bool
	server.Env
}

// corpora are what bench corpus does, by its first argument.
var corpora = map[string]func(*corpusFlags, context.Context, io.Writer, []string) error{
	"capture": (*corpusFlags).capture,
	"proc":    (*corpusFlags).proc,
	"influx":  (*corpusFlags).influx,
	"scraped": (*corpusFlags).scraped,
	"list":    (*corpusFlags).list,
	"size":    (*corpusFlags).size,
}

const corpusUsage = `bench corpus capture -out FILE             record /proc until it is told to end
bench corpus proc NAME CAPTURE...            a corpus of captures
bench corpus influx NAME LINES               a corpus of telegraf's lines
bench corpus scraped -job JOB NAME ADDRESS   a corpus of what a Prometheus has scraped
bench corpus list                            what the corpora hold
bench corpus size -bin DIR NAME...           what a point of them takes in the store, without a name of all`

// corpus makes recordings and tells of them.
func (c *command) corpus(args []string) error {
	var f corpusFlags
	do := corpora["list"]
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		if do = corpora[args[0]]; do == nil {
			return fmt.Errorf("bench corpus cannot %q; it can:\n%s", args[0], corpusUsage)
		}
		args = args[1:]
	}
	c.flags.StringVar(&f.dir, "corpora", corpus.Dir, "`directory` of the corpora")
	c.flags.StringVar(&f.about, "about", "", "`sentence` that says what was recorded")
	c.flags.StringVar(&f.out, "out", "", "`file` of the capture")
	c.flags.StringVar(&f.job, "job", "", "the scraped `job`")
	c.flags.StringVar(&f.span, "span", "2h", "`time` back to which scrapes are taken")
	c.flags.DurationVar(&f.interval, "interval", time.Second, "`time` between samples")
	c.flags.BoolVar(&f.bounds, "bounds", false,
		"tell also what xz and zstd make of it, which takes longer")
	if err := c.flags.Parse(args); err != nil {
		return err
	}
	f.Env = c.Env
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return do(&f, ctx, c.out, c.flags.Args())
}

func (f *corpusFlags) capture(ctx context.Context, _ io.Writer, _ []string) (err error) {
	out, err := os.Create(f.out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return recorder.Capture(ctx, out, "/proc", f.interval)
}

func (f *corpusFlags) proc(_ context.Context, out io.Writer, args []string) error {
	return f.fromFile(out, args, recorder.Proc)
}

func (f *corpusFlags) influx(_ context.Context, out io.Writer, args []string) error {
	return f.fromFile(out, args, recorder.Influx)
}

// fromFile makes a corpus of a file with a recording.
func (f *corpusFlags) fromFile(out io.Writer, args []string,
	read func(io.Reader, string, string, int64) (*corpus.Corpus, error)) error {
	if len(args) != 2 {
		return errors.New(corpusUsage)
	}
	in, err := os.Open(args[1])
	if err != nil {
		return err
	}
	defer in.Close()
	made, err := read(in, args[0], f.about, f.interval.Milliseconds())
	if err != nil {
		return err
	}
	return f.save(out, made)
}

func (f *corpusFlags) scraped(ctx context.Context, out io.Writer, args []string) error {
	if len(args) != 2 {
		return errors.New(corpusUsage)
	}
	made, err := recorder.Scraped(ctx, args[1], f.job, f.span, args[0], f.about,
		f.interval.Milliseconds())
	if err != nil {
		return err
	}
	return f.save(out, made)
}

func (f *corpusFlags) save(out io.Writer, c *corpus.Corpus) error {
	size, err := corpus.Save(f.dir, c)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, %d bytes\n", tell(c), size)
	return nil
}

func (f *corpusFlags) list(_ context.Context, out io.Writer, _ []string) error {
	names, err := corpus.Names(f.dir)
	for _, name := range names {
		c, loadErr := corpus.Load(f.dir, name)
		if loadErr != nil {
			err = errors.Join(err, loadErr)
			continue
		}
		fmt.Fprintf(out, "%s: %s\n", tell(c), c.About)
	}
	return err
}

// size prints what a point takes.
func (f *corpusFlags) size(ctx context.Context, out io.Writer, names []string) (err error) {
	if f.Dir, err = os.MkdirTemp(f.Dir, "ddb-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(f.Dir)) }()
	figures, err := rows.Sizes(ctx, &f.Env, f.dir, names, f.bounds)
	for _, g := range figures {
		fmt.Fprintf(out, "%-26s %.4f B/point   %s\n", g.What, g.Value, g.Note)
	}
	return err
}

func tell(c *corpus.Corpus) string {
	first, last := c.Span()
	return fmt.Sprintf("%s: %d series, %d points, %.0f min at %v", c.Name, len(c.Series), c.Points(),
		float64(last-first)/60e3, time.Duration(c.Interval)*time.Millisecond)
}
