// Program peers measures the store and those that people use today, one after
// the other on the same machine, with the same points and the same questions.
//
//	go run ./bench/peers -bin bin             all of them; writes the dated table
//	go run ./bench/peers -bin bin -quick      a tenth of everything
//	go run ./bench/peers -only 'Victoria'     one and the store; writes nothing
//
// What cannot be had is named with the reason. See docs/benchmarks.md.
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

// trialDir is ignored by git.
const trialDir = "bench/trial"

// neededSpace is what the largest load of a peer has on disk at once.
const neededSpace = 10 << 30

func main() {
	// Servers are started with a wish to die with the thread that started them:
	// it must be one that lives as long as the program.
	runtime.LockOSThread()
	if err := compare(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "peers: %v\n", err)
		os.Exit(1)
	}
}

func compare(args []string, out, log io.Writer) error {
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	f.SetOutput(log)
	bin := f.String("bin", "bin", "`directory` of the built programs")
	dir := f.String("dir", os.TempDir(), "`directory` for a temporary one with the servers' data")
	kept := f.String("cache", "", "`directory` of what is fetched; empty is dalmatiner-peers in the user's cache")
	results := f.String("results", "bench/results", "`directory` to write the dated table to")
	only := f.String("only", "", "measure the store and the peers whose name matches this `regexp`, and write no file")
	short := f.Bool("quick", false, "send a tenth, to try whether everything works; into "+trialDir)
	if err := f.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(peers(*bin), *only)
	if err != nil {
		return err
	}
	if err := checkSpace(*dir); err != nil {
		return err
	}
	c := &cache{*kept}
	if c.dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("%w: name a directory with -cache", err)
		}
		c.dir = filepath.Join(base, "dalmatiner-peers")
	}
	if c.dir, err = filepath.Abs(c.dir); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	m := &measurer{sizes: full(), logf: func(format string, args ...any) {
		fmt.Fprintf(log, time.Now().Format("15:04:05 ")+format+"\n", args...)
	}}
	if *short {
		m.sizes, *results = quick(), trialDir
	}
	t := &table{begun: time.Now(), sizes: m.sizes, quick: *short}
	if err := m.all(ctx, c, *dir, chosen, t); err != nil {
		return err
	}
	return report(t, out, *results, *only == "")
}

// choose returns the peers that match, and the store in any case: everything
// is set in proportion to it.
func choose(all []*peer, pattern string) ([]*peer, error) {
	re, err := regexp.Compile("(?i)" + pattern)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	chosen := all[:1:1]
	var names []string
	for _, p := range all {
		names = append(names, p.name)
		if p != all[0] && re.MatchString(p.name) {
			chosen = append(chosen, p)
		}
	}
	if len(chosen) == 1 && !re.MatchString(all[0].name) {
		return nil, fmt.Errorf("-only %q matches none of %q", pattern, names)
	}
	return chosen, nil
}

func checkSpace(dir string) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return fmt.Errorf("free space of %s: %w", dir, err)
	}
	if free := int64(st.Bavail) * st.Bsize; free < neededSpace {
		return fmt.Errorf("%s has %d MiB free and up to %d are needed: name another directory with -dir", dir, free>>20, neededSpace>>20)
	}
	return nil
}

// all obtains all peers first, so that building does not disturb measuring,
// and measures them one after the other.
func (m *measurer) all(ctx context.Context, c *cache, parent string, chosen []*peer, t *table) (err error) {
	if m.dir, err = os.MkdirTemp(parent, "ddb-peers-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(m.dir)) }()
	versions := make([]string, len(chosen))
	missing := make([]error, len(chosen))
	for i, p := range chosen {
		m.logf("%s: obtaining it …", p.name)
		if versions[i], missing[i] = p.obtain(ctx, c); missing[i] != nil {
			if i == 0 {
				return missing[0]
			}
			m.logf("SKIPPED: %s cannot be had: %v", p.name, missing[i])
		}
	}
	t.machine = measure.Machine()
	for i, p := range chosen {
		if missing[i] != nil {
			t.outcomes = append(t.outcomes, &outcome{peer: p, skipped: missing[i]})
			continue
		}
		begun := time.Now()
		m.logf("%s %s …", p.name, versions[i])
		o := m.measure(ctx, p, versions[i])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		t.outcomes = append(t.outcomes, o)
		m.logf("%s took %.0f s", p.name, time.Since(begun).Seconds())
	}
	t.loadAfter = measure.Load()
	return nil
}

// report prints the table, and writes it to a file named by the date.
func report(t *table, out io.Writer, dir string, write bool) error {
	var text bytes.Buffer
	t.render(&text)
	_, err := out.Write(text.Bytes())
	if err == nil && write {
		if err = os.MkdirAll(dir, 0o755); err == nil {
			err = os.WriteFile(filepath.Join(dir, "peers-"+t.begun.Format(time.DateOnly)+".md"), text.Bytes(), 0o644)
		}
	}
	return errors.Join(err, t.failures())
}
