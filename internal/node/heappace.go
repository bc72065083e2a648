package node

import (
	"os"
	"runtime/debug"
	"time"
)

// The Go runtime lets the heap grow to twice of what is alive. While it collects
// seldom a smaller slack costs nothing to speak of, and the process is smaller by
// the difference; under load it gets the usual one back.
const (
	paceEvery = 10 * time.Second // between two looks at the number of collections

	// calmCycles in that time are so few that the next smaller slack makes no more
	// than three times as many, which are fewer than busyCycles.
	calmCycles = 1
	busyCycles = 6

	leastPercent  = 12
	frugalPercent = 30
	usualPercent  = 100
)

// heapPace sets the slack of the Go heap by how often it is collected.
type heapPace struct {
	next    time.Time
	cycles  uint64
	percent int
}

// percentFor returns the slack that follows from the collections of the last
// paceEvery, in percent of what is alive.
func (p *heapPace) percentFor(cycles uint64) int {
	switch {
	case cycles <= calmCycles && p.percent == usualPercent:
		return frugalPercent
	case cycles <= calmCycles:
		return leastPercent
	case cycles >= busyCycles:
		return usualPercent
	}
	return p.percent
}

// at looks if it is time, at the number of collections so far. The operator's
// GOGC stands.
func (p *heapPace) at(now time.Time, cycles uint64) {
	if now.Before(p.next) || os.Getenv("GOGC") != "" {
		return
	}
	first := p.next.IsZero()
	percent := p.percentFor(cycles - p.cycles)
	p.next, p.cycles = now.Add(paceEvery), cycles
	if first {
		p.percent = usualPercent
		return
	}
	if percent != p.percent {
		p.percent = percent
		debug.SetGCPercent(percent)
	}
}

// forget takes back what the Go runtime was told.
func (p *heapPace) forget() {
	if p.percent > 0 && p.percent < usualPercent {
		debug.SetGCPercent(usualPercent)
	}
}
