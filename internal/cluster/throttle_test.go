package cluster

import (
	"testing"
	"time"
)

// TestMovesYieldToReads: moves slow down while one in a hundred reads takes more than twice as long
// as without them, and only then, and go on at full pace afterwards.
func TestMovesYieldToReads(t *testing.T) {
	var h throttle
	now, moved := time.Duration(0), uint64(0)
	period := func(reads int, slow time.Duration, moves bool) float64 {
		for i := range reads {
			took := time.Millisecond
			if i%50 == 0 {
				took = slow
			}
			h.read(took)
		}
		if moves {
			moved++
		}
		if before, after := h.pace, h.next(now+throttlePeriod-1, moved); before != 0 && before != after {
			t.Fatalf("the pace is %v before the period has ended", after)
		}
		now += throttlePeriod
		return h.next(now, moved)
	}
	h.next(0, 0)
	for i, step := range []struct {
		reads int
		slow  time.Duration
		moves bool
		want  float64
	}{
		{200, 50 * time.Millisecond, true, 1}, // it is not known what is usual
		{200, 10 * time.Millisecond, false, 1},
		{200, 19 * time.Millisecond, true, 1},
		{200, 21 * time.Millisecond, true, 0.5},
		{200, 21 * time.Millisecond, true, 0.25},
		{20, 90 * time.Millisecond, true, 0.375}, // too few to tell
		{200, 15 * time.Millisecond, true, 0.5625},
		{200, 90 * time.Millisecond, true, 0.28125},
		{200, 14 * time.Millisecond, false, 0.421875}, // usual is 11 by now
		{200, 23 * time.Millisecond, true, 0.2109375},
		{200, 21 * time.Millisecond, true, 0.31640625},
		{0, 0, false, 0.474609375},
	} {
		if got := period(step.reads, step.slow, step.moves); got != step.want {
			t.Fatalf("period %d: the pace is %v, want %v", i, got, step.want)
		}
	}
	for range 10 {
		period(200, time.Second, true)
	}
	if got := period(200, time.Second, true); got != slowestPace {
		t.Errorf("the pace falls to %v, want %v", got, slowestPace)
	}
	for range 10 {
		period(200, time.Millisecond, true)
	}
	if got := period(200, time.Millisecond, true); got != 1 {
		t.Errorf("the pace rises to %v, want 1", got)
	}
	for range 2 * throttleReads {
		h.read(1)
	}
	if len(h.reads) != throttleReads {
		t.Errorf("%d reads are kept, want %d", len(h.reads), throttleReads)
	}
}

// TestShortReadsDoNotSlowMoves: reads that nobody waits for slow nothing down, however much longer
// they take.
func TestShortReadsDoNotSlowMoves(t *testing.T) {
	var short throttle
	for i, moves := range []uint64{0, 0, 1, 2} {
		for range 100 {
			short.read([]time.Duration{10 * time.Microsecond, 10 * time.Microsecond, 2 * time.Millisecond,
				2 * time.Millisecond}[i])
		}
		if got := short.next(time.Duration(i)*throttlePeriod, moves); got != 1 {
			t.Errorf("the pace is %v in period %d", got, i)
		}
	}
}
