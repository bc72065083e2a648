package sim

import (
	"flag"
	"testing"
)

var (
	seeds = flag.Int("seeds", 60, "seeds of each profile")
	first = flag.Int("first", 1, "first seed")
)

var profiles = map[string]Profile{
	"three":  {Nodes: 3, N: 3, W: 2, Strict: true},
	"five":   {Nodes: 5, N: 3, W: 2},
	"pair":   {Nodes: 4, N: 2, W: 2, Clocks: true},
	"moving": {Nodes: 4, N: 3, W: 2, Members: true, Clocks: true},
	"disks":  {Nodes: 5, N: 3, W: 2, Members: true, Clocks: true, Disks: true},
}

func TestChaos(t *testing.T) {
	for name, p := range profiles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range *seeds {
				c, err := Chaos(uint64(*first+seed), p)
				if err != nil {
					t.Fatalf("seed %d: %v\n%s", *first+seed, err, c.History())
				}
			}
		})
	}
}
