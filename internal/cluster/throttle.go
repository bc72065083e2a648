package cluster

import (
	"slices"
	"sync"
	"time"
)

// The throttle of what nodes compare and move.
const (
	throttlePeriod = 5 * time.Second
	throttleReads  = 4096                 // that are kept of a period
	fewReads       = 50                   // of a period say nothing about one in a hundred
	shortRead      = 2 * time.Millisecond // is none that anybody waits for
	slowestPace    = 1.0 / 32             // a move goes on, however busy the node is
)

// throttle slows down what moves while one in a hundred reads of other nodes takes more than twice
// as long here as it does when nothing moves. Reads may take longer for other reasons, so it never
// stands still.
type throttle struct {
	mu    sync.Mutex
	reads []time.Duration // of this period
	begun time.Duration   // this period, on a steady clock
	moved uint64          // points until then
	calm  time.Duration   // what one in a hundred took when nothing moved; 0: not known
	pace  float64         // of 1
}

// read notes how long a read took.
func (t *throttle) read(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.reads) < throttleReads {
		t.reads = append(t.reads, took)
	}
}

// next returns the share of their pace at which points may move from now on. So many have moved
// until now.
func (t *throttle) next(now time.Duration, moved uint64) float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pace == 0 {
		t.begun, t.moved, t.pace = now, moved, 1
	}
	if now-t.begun < throttlePeriod {
		return t.pace
	}
	slow, known := t.slow()
	calm := moved == t.moved
	t.begun, t.moved, t.reads = now, moved, t.reads[:0]
	switch {
	case known && !calm && t.calm > 0 && slow > 2*max(t.calm, shortRead):
		t.pace = max(t.pace/2, slowestPace)
		return t.pace
	case known && calm && t.calm == 0:
		t.calm = slow
	case known && calm:
		t.calm = (3*t.calm + slow) / 4
	}
	t.pace = min(t.pace*1.5, 1)
	return t.pace
}

// slow returns what one in a hundred reads of the period took, if there were enough of them.
func (t *throttle) slow() (time.Duration, bool) {
	if len(t.reads) < fewReads {
		return 0, false
	}
	slices.Sort(t.reads)
	return t.reads[(len(t.reads)-1)*99/100], true
}
