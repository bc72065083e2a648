package node

import (
	"os"
	"runtime/debug"
	"time"
)

// The Go runtime lets the heap grow to twice of what is alive. While it collects
// rarely a smaller slack costs nothing to speak of, and the process is smaller by
// the difference; under load it gets the usual one back.
const (
	paceEvery = 10 * time.Second // between two looks at the number of collections

	// calmCycles in that time are few: the next smaller slack makes no more than
	// three times as many, and these are fewer than busyCycles.
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

// at looks if it is time, at the number of collections so far, and reports whether
// it made the slack smaller: what lies beyond it is worth giving back. The
// operator's GOGC stands.
func (p *heapPace) at(now time.Time, cycles uint64) (smaller bool) {
	if now.Before(p.next) || os.Getenv("GOGC") != "" {
		return false
	}
	first := p.next.IsZero()
	percent := p.percentFor(cycles - p.cycles)
	p.next, p.cycles = now.Add(paceEvery), cycles
	if first {
		p.percent = usualPercent
		return false
	}
	smaller = percent < p.percent
	if percent != p.percent {
		p.percent = percent
		debug.SetGCPercent(percent)
	}
	return smaller
}

// rarely reports whether the heap is collected so rarely that its slack was made
// smaller. What a large job leaves then stays for minutes.
func (p *heapPace) rarely() bool { return p.percent > 0 && p.percent < usualPercent }

// forget takes back what the Go runtime was told.
func (p *heapPace) forget() {
	if p.rarely() {
		debug.SetGCPercent(usualPercent)
	}
}
