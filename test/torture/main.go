// Torture attacks the released binary – kills, power cuts, failing I/O, a full
// disk, bit rot, unfinished input – and compares everything that it gives back
// with an oracle of its own (docs/reliability.md).
//
//	go run ./test/torture -bin bin -quick
//	go run ./test/torture -bin bin -time 2h
//	go run ./test/torture -bin bin -attack rot -seed 17 -rounds 1
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// attack is one way to harm a node. A round has a seed of its own, from which
// everything in it follows but for the moments at which things meet.
type attack struct {
	name  string
	about string
	share float64 // of the time
	least int     // rounds, whatever the time
	run   func(r *round)
	needs func() error // why it cannot run here
}

func attacks() []attack {
	return []attack{
		{"kill", "kill -9 in ingest, flush, merge, deletion, replay", 0.18, 1, kill, nil},
		{"power", "power cut: what was not synced is lost, whole or in sectors", 0.18, 1, power,
			needsFUSE},
		{"io", "EIO from reads, writes, syncs, changes of names", 0.15, 1, failing, needsFUSE},
		{"full", "no space left while ingesting, at a start, and again", 0.10, 1, full, needsFUSE},
		{"expire", "all series expire; their names stay gone", 0.04, 1, expire, nil},
		{"rot", "a flipped bit, zeros, a cut, a removal in every kind of file", 0.30, len(rotting), rot,
			nil},
		{"stale", "older, foreign and exchanged files of every kind", 0.15, 6, stale, nil},
		{"memory", "unfinished input on every listener", 0.15, 1, memory, nil},
	}
}

// quickTime is for the rounds whose number follows from it; the floods of memory
// take as long as they take, and the last round of each attack ends.
const quickTime = 80 * time.Second

type config struct {
	bin    string
	dir    string
	seed   uint64
	budget time.Duration
	rounds int
	attack string
	quick  bool
	keep   bool
	only   string
}

func main() {
	var c config
	flag.StringVar(&c.bin, "bin", "bin", "directory of the binaries")
	flag.StringVar(&c.dir, "dir", "", "directory for data, default a temporary one")
	flag.Uint64Var(&c.seed, "seed", 0, "seed of the first round, default the time")
	flag.DurationVar(&c.budget, "time", time.Hour, "time for all attacks")
	flag.IntVar(&c.rounds, "rounds", 0, "rounds of each attack, instead of -time")
	flag.StringVar(&c.attack, "attack", "", "only these, with commas between them")
	flag.BoolVar(&c.quick, "quick", false,
		"small rounds, in less than 4 minutes unless -time says otherwise")
	flag.BoolVar(&c.keep, "keep", false, "keep the directory of a round with a violation")
	flag.StringVar(&c.only, "case", "", "of memory and rot: only cases whose name contains this")
	flag.Parse()
	timeSet := false
	flag.Visit(func(f *flag.Flag) { timeSet = timeSet || f.Name == "time" })
	if c.quick && !timeSet {
		c.budget = quickTime
	}
	if c.seed == 0 {
		c.seed = uint64(time.Now().Unix()) % 1_000_000 * 1000
	}
	ok, err := run(c)
	if err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(c config) (bool, error) {
	if _, err := os.Stat(filepath.Join(c.bin, "ddb")); err != nil {
		return false, fmt.Errorf("%w: make build first", err)
	}
	if c.dir == "" {
		dir, err := os.MkdirTemp("", "torture")
		if err != nil {
			return false, err
		}
		c.dir = dir
		defer func() {
			if !c.keep {
				_ = os.RemoveAll(dir) // a leaving in the directory for temporary files at worst
			}
		}()
	}
	chosen, total, err := choose(c.attack)
	if err != nil {
		return false, err
	}
	fmt.Printf("torture: %s, seed %d, data in %s\n", filepath.Join(c.bin, "ddb"), c.seed, c.dir)
	var outcomes []*outcome
	for _, a := range chosen {
		outcomes = append(outcomes, c.attackFor(a, time.Duration(float64(c.budget)*a.share/total)))
	}
	return table(outcomes), nil
}

func choose(names string) ([]attack, float64, error) {
	var chosen []attack
	total := 0.0
	known := make([]string, 0, 8)
	wanted := strings.Split(names, ",")
	for _, a := range attacks() {
		known = append(known, a.name)
		for _, w := range wanted {
			if names == "" || strings.TrimSpace(w) == a.name {
				chosen = append(chosen, a)
				total += a.share
				break
			}
		}
	}
	if len(chosen) < len(wanted) {
		return nil, 0, errors.New("-attack " + names + ": known are " + strings.Join(known, ", "))
	}
	return chosen, total, nil
}

// attackFor runs rounds of one attack until its time or its number is over.
func (c config) attackFor(a attack, budget time.Duration) *outcome {
	out := &outcome{name: a.name, kinds: map[string]int{}}
	if a.needs != nil {
		if err := a.needs(); err != nil {
			out.notRun = err.Error()
			fmt.Printf("%-7s NOT RUN: %v\n", a.name, err)
			return out
		}
	}
	fmt.Printf("%-7s %s\n", a.name, a.about)
	begin, said := time.Now(), time.Now()
	for i := 0; ; i++ {
		if c.rounds > 0 && i >= c.rounds || c.rounds == 0 && i >= a.least && time.Since(begin) >= budget {
			break
		}
		if out.violations >= maxViolations {
			fmt.Printf("%-7s ended early: %d violations\n", a.name, out.violations)
			break
		}
		newRound(c, a.name, c.seed+uint64(i), out).play(a.run)
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			fmt.Printf("%-7s %v: %d rounds, %d points compared, %d violations\n", a.name,
				time.Since(begin).Round(time.Second), out.rounds, out.compared.Slots, out.violations)
		}
	}
	out.took = time.Since(begin)
	return out
}
