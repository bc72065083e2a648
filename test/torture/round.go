package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dalmatiner/test/torture/load"
	"dalmatiner/test/torture/oracle"
	"dalmatiner/test/torture/subject"
	"dalmatiner/test/torture/verify"
)

// round is one directory under one attack.
type round struct {
	cfg      config
	attack   string
	seed     uint64
	rng      *rand.Rand
	base     string // directory of the round
	data     string // of the node
	flags    []string
	load     *load.Load
	node     *subject.Node
	out      *outcome
	bad      bool
	atEnd    bool     // the damage lies at the end of its file
	finished bool     // the disk is not mounted again
	trail    []string // what was done, for a violation's report
}

func newRound(c config, name string, seed uint64, out *outcome) *round {
	return &round{
		cfg:    c,
		attack: name,
		seed:   seed,
		rng:    rand.New(rand.NewPCG(seed, 11)),
		out:    out,
		base:   filepath.Join(c.dir, fmt.Sprintf("%s-%d", name, seed)),
	}
}

// play runs the round, and cleans up behind it.
func (r *round) play(attack func(*round)) {
	r.data = filepath.Join(r.base, "data")
	if err := os.MkdirAll(r.base, 0o755); err != nil {
		r.violate("%v", err)
		return
	}
	attack(r)
	if r.node != nil {
		r.node.Kill()
	}
	r.out.rounds++
	if r.bad {
		cmd := fmt.Sprintf("go run ./test/torture -bin %s -attack %s -seed %d -rounds 1", r.cfg.bin,
			r.attack, r.seed)
		if r.cfg.quick {
			cmd += " -quick"
		}
		if r.cfg.only != "" {
			cmd += fmt.Sprintf(" -case %q", r.cfg.only)
		}
		r.out.reproduce = append(r.out.reproduce, cmd)
	}
	if !r.bad || !r.cfg.keep {
		_ = os.RemoveAll(r.base) // the next one has its own
	}
}

func (r *round) note(format string, args ...any) {
	r.trail = append(r.trail, fmt.Sprintf(format, args...))
}

// violate reports what must not be.
func (r *round) violate(format string, args ...any) {
	if !r.bad {
		r.out.violations++
		fmt.Printf("VIOLATION %s seed %d after: %s\n", r.attack, r.seed, strings.Join(r.trail, "; "))
	}
	r.bad = true
	fmt.Println("  " + fmt.Sprintf(format, args...))
	r.dump()
}

// dump keeps the node's log beside its data.
func (r *round) dump() {
	if r.node != nil && r.cfg.keep {
		// an aid only
		_ = os.WriteFile(filepath.Join(r.base, "node.log"), []byte(r.node.Log.String()), 0o644)
	}
}

// oddly sets flags by chance, so that flushes, merges and syncs meet in all
// orders.
func (r *round) oddly() {
	r.flags = []string{
		"--set", "self_monitor=off", "--set", "wal.interval=" + pick(r.rng, "1ms", "20ms", "100ms"),
		"--set", "wal.sync=" + pick(r.rng, "always", "interval"), "--set", "wal.max_size=16MB",
		"--set", "flush.bytes=" + pick(r.rng, "1MB", "4MB"), "--set", "flush.interval=" +
			pick(r.rng, "1s", "3s", "12m"),
		"--set", "merge.background=" + pick(r.rng, "on", "on", "off"), "--set", "head.grace=" +
			pick(r.rng, "1s", "1m"),
		"--set", "storage.min_free=0", "--set", "wal.interval=20ms",
	}
}

func pick(rng *rand.Rand, of ...string) string { return of[rng.IntN(len(of))] }

// start starts the node; one that does not come up is a violation.
func (r *round) start() bool {
	n, err := subject.Start(r.cfg.bin, r.data, r.flags...)
	r.node = n
	if err != nil {
		text := ""
		if n != nil {
			text = n.Log.Tail(6)
		}
		r.violate("the start: %v\n%s", err, text)
		return false
	}
	return true
}

// launch starts the node and does not wait for it.
func (r *round) launch() bool {
	n, err := subject.Launch(r.cfg.bin, r.data, r.flags...)
	if err != nil {
		r.violate("%v", err)
		return false
	}
	r.node = n
	return true
}

// compare reads everything back and reports what is wrong.
func (r *round) compare(opt verify.Options) *verify.Report {
	opt.Seed = r.seed
	rep, err := verify.All(r.node, r.load.Book, opt)
	if err != nil {
		said := r.node.Log.Tail(4)
		if slow := net.Error(nil); errors.As(err, &slow) && slow.Timeout() {
			said = r.node.Stacks()
		}
		r.violate("reading back: %v\n%s", err, said)
	}
	r.out.compared.Add(rep)
	for _, f := range rep.Findings {
		r.violate("%v", f)
	}
	if extra := rep.Faults - int64(len(rep.Findings)); extra > 0 {
		fmt.Printf("  and %d more: %v\n", extra, rep.Classes)
	}
	for _, p := range r.load.Problems() {
		r.violate("%s", p)
	}
	return rep
}

// ledger holds the account against what was sent. Without damage nothing may be
// called lost.
func (r *round) ledger(whole bool) *subject.Account {
	a, err := r.node.Account()
	if err != nil {
		r.violate("%v", err)
		return nil
	}
	if whole && (len(a.Lost) > 0 || len(a.Events.Lost) > 0 || a.TagsLost > 0) {
		r.violate("account: lost %v, events %v, tags %d, and nothing was damaged", a.Lost, a.Events.Lost,
			a.TagsLost)
	}
	if e := r.load.Book.Events; e != nil {
		stored, _ := a.Events.Of(e.Bucket)
		if whole && stored < e.Confirmed() || stored > uint64(e.Sent()) {
			r.violate("account of events: %d stored, acknowledged %d, sent %d", stored, e.Confirmed(),
				e.Sent())
		}
	}
	for _, b := range r.load.Book.Buckets {
		if b.Name == "scratch" || b.State != oracle.Present {
			continue // its ledger went with it
		}
		confirmed, sent := b.Lane.Counts()
		stored, _ := a.Of(b.Name)
		if whole && stored < confirmed || stored > sent {
			r.violate("account of %s: %d stored, acknowledged %d, sent %d", b.Name, stored, confirmed, sent)
		}
	}
	return a
}

// cycles is how often a round harms its node.
func (r *round) cycles() int {
	if r.cfg.quick {
		return 2
	}
	return 4
}

// series is the size of a load.
func (r *round) series(n int) int {
	if r.cfg.quick {
		return n / 2
	}
	return n
}

// sleep waits for a random time up to most, or until the node has ended.
func (r *round) sleep(most time.Duration) {
	select {
	case <-time.After(time.Duration(r.rng.Int64N(int64(most)))):
	case <-r.node.Done():
	}
}
