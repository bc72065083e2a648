package node

import (
	"math"

	"golang.org/x/sys/unix"
)

// Connections, the log, the catalogue and files being written take the other half
// of what the system allows. More open files than maxOpenFiles save no time: to
// open one takes some microseconds.
const (
	filesPart    = 2
	minOpenFiles = 16
	maxOpenFiles = 16_384
)

// openFiles returns how many files of segments may be open. The Go runtime has
// raised the soft limit to the hard one.
func openFiles() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return minOpenFiles
	}
	return int(min(max(min(limit.Cur, math.MaxInt32)/filesPart, minOpenFiles), maxOpenFiles))
}
