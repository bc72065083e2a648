package clock

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The wall clock is set back and forth; the steady one has what it went forward.
func TestAClockThatIsSetBack(t *testing.T) {
	now := int64(1000)
	c := New(func() time.Time { return time.Unix(0, now) })
	if c.Unix() != 1000 || c.Monotonic() != 1000 {
		t.Fatalf("a new clock is at %d and %d", c.Unix(), c.Monotonic())
	}
	for _, step := range []struct{ now, steady int64 }{{1500, 1500}, {200, 1500}, {200, 1500},
		{300, 1600}, {1700, 3000}} {
		now = step.now
		c.Advance()
		if c.Unix() != step.now || c.Monotonic() != step.steady {
			t.Errorf("at %d the clocks are %d and %d, want %d", step.now, c.Unix(), c.Monotonic(),
				step.steady)
		}
	}
}

// Calls beside each other never leave a reading that is older than one before it, and
// the steady clock has every step once.
func TestAdvancesBesideEachOther(t *testing.T) {
	var now atomic.Int64
	c := New(func() time.Time {
		n := now.Add(1)
		runtime.Gosched() // others may read meanwhile
		return time.Unix(0, n)
	})
	begin := c.Unix()
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for range 1000 {
				c.Advance()
			}
		})
	}
	callers.Wait()
	if c.Unix() != begin+4000 || c.Monotonic() != begin+4000 {
		t.Errorf("after 4000 steps from %d the clocks are %d and %d", begin, c.Unix(), c.Monotonic())
	}
}
