package background

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestYield: work pauses where it has to yield, and not before it has worked for a step.
func TestYield(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	asked := 0
	yields := false
	w := New(func(bool) bool { asked++; return yields })
	long := &Turn{w: w} // since the year 1
	if err := long.Yield(ended); err != nil || asked != 1 {
		t.Errorf("nobody waits: %v, asked %d times", err, asked)
	}
	if err := long.Yield(ended); err != nil || asked != 1 {
		t.Errorf("behind a look a step begins anew: %v, asked %d times", err, asked)
	}
	yields = true
	if err := (&Turn{w: w}).Yield(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("work does not yield: %v", err)
	}
	if err := (&Turn{w: w, since: time.Now().Add(time.Hour)}).Yield(ended); err != nil || asked != 2 {
		t.Errorf("work yields before its step is over: %v, asked %d times", err, asked)
	}
}

// TestAPauseEnds: work goes on by itself.
func TestAPauseEnds(t *testing.T) {
	w := New(func(bool) bool { return true })
	turn := &Turn{w: w, since: time.Now().Add(-step)}
	if err := turn.Yield(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestBytes: what all turns hold is counted until they end.
func TestBytes(t *testing.T) {
	w := New(func(bool) bool { return false })
	expect := func(want int64) {
		t.Helper()
		if got := w.Bytes(); got != want {
			t.Errorf("%d bytes are counted, want %d", got, want)
		}
	}
	a, b := w.Begin(), w.Begin()
	a.Hold(100)
	b.Hold(10)
	b.Grow(1)
	expect(111)
	a.Hold(40)
	expect(51)
	a.End()
	expect(11)
	b.End()
	expect(0)
	b.End()
	expect(0)
}
