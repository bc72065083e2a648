package memory

import "github.com/KimMachineGun/automemlimit/memlimit"

const (
	// share of the machine, or of the control group, that a node takes unless
	// it is told otherwise, in percent: the page cache needs the rest.
	defaultShare = 60

	// leastDefault is the least limit that a node takes by itself.
	leastDefault = 256 << 20
)

// Default returns the limit of a node that was not told one: 60 % of the
// machine's memory or of the least limit of its control group and of those around
// it, whichever is less, and at least leastDefault. It is 0, no limit, where the
// system does not say what there is.
func Default() int64 { return defaultOf(memlimit.FromSystem, memlimit.FromCgroup) }

// defaultOf takes the least of what the sources know.
func defaultOf(sources ...memlimit.Provider) int64 {
	var have uint64
	for _, source := range sources {
		n, err := source() // fails where there is no limit, or no control group
		if err == nil && n > 0 && (have == 0 || n < have) {
			have = n
		}
	}
	if have == 0 {
		return 0
	}
	return max(int64(have/100*defaultShare), leastDefault)
}
