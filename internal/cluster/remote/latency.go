package remote

import (
	"slices"
	"sync"
	"time"
)

// slowest is the shortest time after which another node is asked beside one that has not answered.
const slowest = 20 * time.Millisecond

// latency knows how long nodes took lately until they began to answer. The zero value knows
// nothing.
type latency struct {
	mu    sync.Mutex
	last  [64]time.Duration
	count int
	high  time.Duration
}

// note takes in one answer.
func (l *latency) note(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last[l.count%len(l.last)] = d
	if l.count++; l.count%16 == 0 {
		sorted := l.last
		some := sorted[:min(l.count, len(sorted))]
		slices.Sort(some)
		l.high = some[len(some)*95/100]
	}
}

// p95 returns the time within which nearly all began to answer, but not less than slowest.
func (l *latency) p95() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.high, slowest)
}
