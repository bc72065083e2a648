package sim

import (
	"flag"
	"runtime/debug"
	"testing"

	"dalmatiner/internal/cluster/replication"
)

var (
	seeds = flag.Int("seeds", 15, "seeds of each profile")
	first = flag.Int("first", 1, "first seed")
)

// The smallest pages there can be, and some that hold a little more.
var (
	ones = PageLimits{Limits: replication.Limits{Points: 1, Windows: 1, Chunks: 1, Deletions: 1},
		Comparisons: 1, ComparePoints: 1, HintRows: 1}
	few = PageLimits{Limits: replication.Limits{Points: 3, Windows: 2, Chunks: 2, Deletions: 2},
		Comparisons: 3, ComparePoints: 8, HintRows: 4}
	kept = PageLimits{Limits: few.Limits, Comparisons: 3, ComparePoints: 8, HintRows: 4,
		DropMS: 3 * comparing}
)

var profiles = map[string]Profile{
	"three":  {Nodes: 3, N: 3, W: 2, Strict: true, Paging: few},
	"five":   {Nodes: 5, N: 3, W: 2},
	"pair":   {Nodes: 4, N: 2, W: 2, Clocks: true},
	"moving": {Nodes: 4, N: 3, W: 2, Members: true, Clocks: true, Paging: kept},
	"ones":   {Nodes: 4, N: 3, W: 2, Members: true, Clocks: true, Paging: ones},
	"fewer":  {Nodes: 5, N: 3, W: 2, Own: 2, Members: true, Clocks: true, Disks: true, Paging: few},
	"more":   {Nodes: 5, N: 2, W: 2, Own: 4, Members: true, Clocks: true, Disks: true, Paging: kept},
	"disks":  {Nodes: 5, N: 3, W: 2, Members: true, Clocks: true, Disks: true, Paging: few},
}

// schedules are what operators do to a cluster: random changes of its members and of n, while nodes
// crash, disks fill and are lost, and the network splits.
var schedules = map[string]Profile{
	"members": {Nodes: 4, N: 3, Least: 2, Most: 4, Members: true, Disks: true, Operators: 6, Mild: 5,
		Paging: few},
	"copies": {Nodes: 3, N: 3, Least: 1, Most: 3, Members: true, Operators: 6, Mild: 5, Once: true,
		Paging: kept},
}

func TestChaos(t *testing.T) { run(t, profiles) }

func TestSchedules(t *testing.T) { run(t, schedules) }

func run(t *testing.T, profiles map[string]Profile) {
	for name, p := range profiles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range *seeds {
				runSeed(t, *first+seed, p)
			}
		})
	}
}

// runSeed runs a seed. What breaks a promise at once panics, with its history.
func runSeed(t *testing.T, seed int, p Profile) {
	t.Helper()
	defer func() {
		if broken := recover(); broken != nil {
			t.Fatalf("seed %d: %v\n%s", seed, broken, debug.Stack())
		}
	}()
	c, err := Chaos(uint64(seed), p)
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, c.History())
	}
}
