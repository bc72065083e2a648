package memory

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// newStockedBudget returns a budget of 1,000 bytes with a stock of 600, whose things bring
// along what lies in a pool of its own.
func newStockedBudget(c *clock) (*Budget, *Stock, *atomic.Int64) {
	b, along := newPressedBudget(c)
	return b, b.NewStock(StockOptions{Name: "names", Limit: 600}), along
}

func TestStock(t *testing.T) {
	c := &clock{}
	b, s, along := newStockedBudget(c)
	take := func(what string, n, with int64, want bool) {
		t.Helper()
		if got := s.Take(n, with); got != want {
			t.Errorf("%s: %v, %d taken", what, got, s.Bytes())
		} else if got {
			along.Add(with)
		}
	}
	take("half", 300, 0, true)
	take("more than the stock", 301, 549, false)
	take("less, behind one that was refused", 1, 0, true)
	take("with it more than the process has", 10, 539, false)
	if s.IsFull() {
		t.Error("full before the look that tells")
	}
	if l := b.Look(); l != NoSeries || !s.IsFull() {
		t.Errorf("the level is %v behind a refusal at the mark", l)
	}
	take("a small one, behind the mark", 1, 0, false)
	c.t = c.t.Add(settle)
	if l := b.Look(); l != Calm {
		t.Errorf("the level stays %v", l)
	}
	take("some more", 100, 400, true)
	take("before the next look", 50, 0, false)
	if b.Look(); b.UsedBytes() != 801 {
		t.Errorf("%d bytes in use", b.UsedBytes())
	}
	c.t = c.t.Add(settle)
	s.Add(-401)
	along.Add(-400)
	b.Look()
	take("what was given back", 600, 0, true)
	none := New(0, c.now, nil).NewStock(StockOptions{Name: "names", Limit: 1})
	if !none.Take(1<<40, 1<<40) || none.IsFull() {
		t.Error("without a limit nothing is refused")
	}
}

// However many take at a time, and however they meet with looks: what is in use
// never reaches the mark of NoSeries, and what is refused leaves nothing behind.
func TestStockUnderLoad(t *testing.T) {
	c := &clock{}
	b, s, along := newStockedBudget(c)
	for range 500 {
		var taken, brought atomic.Int64
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 50 {
					along.Add(7)
					if s.Take(3, 7) {
						taken.Add(3)
						brought.Add(7)
					} else {
						along.Add(-7)
					}
				}
			})
		}
		all.Go(func() {
			for range 20 {
				b.Look()
			}
		})
		all.Wait()
		if sum := taken.Load() + brought.Load(); sum >= 850 || s.Bytes() != taken.Load() {
			t.Fatalf("%d bytes in use, %d of them taken, the stock says %d", sum, taken.Load(), s.Bytes())
		}
		s.Add(-taken.Load())
		along.Add(-brought.Load())
		b.Look() // with what was taken
		c.t = c.t.Add(settle)
		b.Look()
	}
}

// Who asks a stock by himself is told what is short: the stock, or the process.
func TestWhatAStockSays(t *testing.T) {
	_, s, _ := newStockedBudget(&clock{})
	says := func(n int64, want Refusal, text string) {
		t.Helper()
		err := s.TakeOrSay(n)
		var got *Refusal
		if !errors.As(err, &got) || *got != want || !strings.Contains(err.Error(), text) ||
			!strings.Contains(err.Error(), "memory.limit") {
			t.Errorf("%d bytes: %v, %+v", n, err, got)
		}
	}
	if err := s.TakeOrSay(500); err != nil || s.Bytes() != 500 {
		t.Errorf("%d bytes taken: %v", s.Bytes(), err)
	}
	says(101, Refusal{Pool: "names", Need: 101, Used: 500, Limit: 600, Stays: true},
		"all names is taken, 1 of 1 MiB: delete")
	if !s.Take(1, 340) {
		t.Fatal("no room for what comes along")
	}
	says(10, Refusal{Pool: "names", Need: 10, Limit: 1000, OfPressure: true, Stays: true},
		"memory is short")
	if s.Bytes() != 501 {
		t.Errorf("%d bytes are taken by what was refused", s.Bytes())
	}
}
