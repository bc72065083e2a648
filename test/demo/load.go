package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"dalmatiner/haggar"
)

// loadBucket takes the load beside the published series.
const loadBucket = "haggar"

// sendEverything runs two haggars at once: one writes a day of the published
// series and then the present, the other is the load of the published figures,
// scaled to a small machine: agents that reconnect for every flush.
func (s *session) sendEverything(ctx context.Context, o options) error {
	fmt.Fprintf(s.out,
		"haggar: a day of the published series into bucket %s, and %v of load into bucket %s\n",
		haggar.PublishedBucket, o.load, loadBucket)
	progress := &prefixed{out: s.out}
	var both sync.WaitGroup
	var errPublished, errLoad error
	journal := filepath.Join(s.dir, "published.journal")
	both.Go(func() {
		s.published, errPublished = runHaggar(ctx, o, s.tcpAddr, progress.as("published"),
			"-preset", haggar.Published, "-backfill", "1d", "-duration", o.load.String(), "-journal",
			journal)
	})
	both.Go(func() {
		s.load, errLoad = runHaggar(ctx, o, s.loadAddr, progress.as("load"), "-prefix", loadBucket,
			"-agents", "50", "-metrics", "2000", "-flush-interval", "1s", "-spawn-interval", "100ms",
			"-jitter", "100ms",
			"-duration", o.load.String())
	})
	both.Wait()
	if errPublished != nil {
		return errPublished
	}
	if errLoad != nil {
		return errLoad
	}
	return s.readJournal(journal)
}

// readJournal notes which slots of which published series haggar has sent.
func (s *session) readJournal(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	j, err := haggar.ReadJournal(f)
	if err != nil {
		return err
	}
	s.slots = map[int]map[int64]bool{}
	for _, fl := range j.Flushes {
		if fl.State == haggar.Failed {
			return fmt.Errorf("haggar does not know whether its flush %d arrived", fl.Seq)
		}
		for number := fl.First; number < fl.First+fl.Count; number++ {
			if s.slots[number] == nil {
				s.slots[number] = map[int64]bool{}
			}
			for row := range fl.Slots {
				s.slots[number][fl.Slot+row*fl.Step] = true
			}
		}
	}
	return nil
}

// runHaggar runs haggar to its end and returns its summary.
func runHaggar(ctx context.Context, o options, addr string, progress io.Writer,
	args ...string) (haggar.Summary, error) {
	var sum haggar.Summary
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(o.bin, "haggar"),
		append([]string{"-carbon", addr}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = patience
	cmd.Stdout, cmd.Stderr = &out, progress
	err := cmd.Run()
	if ctx.Err() != nil {
		return sum, ctx.Err()
	}
	if err != nil {
		return sum, fmt.Errorf("haggar %s: %w", strings.Join(args, " "), err)
	}
	if err := json.Unmarshal(out.Bytes(), &sum); err != nil {
		return sum, fmt.Errorf("the summary of haggar is %q: %w", out.String(), err)
	}
	return sum, nil
}

// prefixed writes the lines of several programs to one place.
type prefixed struct {
	mu  sync.Mutex
	out io.Writer
}

// as returns a writer whose lines start with name.
func (p *prefixed) as(name string) io.Writer { return &prefixedLines{to: p, name: name} }

type prefixedLines struct {
	to   *prefixed
	name string
	rest []byte // an unfinished line
}

func (l *prefixedLines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		l.to.mu.Lock()
		fmt.Fprintf(l.to.out, "  %-10s%s\n", l.name, line)
		l.to.mu.Unlock()
		l.rest = rest
	}
}

// waitFor polls until done says so.
func waitFor(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, ctx.Err())
		}
	}
}
