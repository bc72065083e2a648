package spacing

import (
	"testing"

	"pgregory.net/rapid"
)

// TestSlotsEqualTheModel: what is noted of slots is what they are, until there are too many parts.
func TestSlotsEqualTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Slots
		var model []bool
		parts := 0 // beginnings of set slots, which are at least as many as parts
		length := func(least int) int { return rapid.IntRange(least, 3).Draw(t, "length") }
		steps := rapid.IntRange(0, 400).Draw(t, "steps")
		every := rapid.Bool().Draw(t, "in step")
		for range steps {
			set, gap := 2, 3
			if !every || rapid.IntRange(0, 50).Draw(t, "kind") == 0 {
				set, gap = length(1), length(0)
			}
			s.Set(int64(set))
			s.Gap(int64(gap))
			parts++
			for i := range set + gap {
				model = append(model, i < set)
			}
		}
		if s.Full() {
			if parts <= mostSlots {
				t.Fatalf("full with %d parts", parts)
			}
			if len(s) != mostSlots+1 || s.Bytes() > 12*4*mostSlots {
				t.Fatalf("%d parts in %d bytes", len(s), s.Bytes())
			}
			return
		}
		skip := rapid.IntRange(0, len(model)).Draw(t, "skip")
		until := rapid.IntRange(0, len(model)+5).Draw(t, "until")
		at := skip
		s.Each(int64(skip), int64(until), func(set bool, from, past int64) {
			if int(from) != at || past <= from {
				t.Fatalf("[%d, %d) behind %d", from, past, at)
			}
			for ; at < int(past); at++ {
				if at >= len(model) || at >= until || model[at] != set {
					t.Fatalf("slot %d of %d is set %v", at, len(model), set)
				}
			}
		})
		if want := max(skip, min(until, len(model))); at != want {
			t.Fatalf("ends at %d, want %d", at, want)
		}
	})
}

// TestSlotsThatAreFull: of slots in step any number is one part; each other one is a part more,
// up to the last, behind which nothing is noted.
func TestSlotsThatAreFull(t *testing.T) {
	var s Slots
	for range 10_000 {
		s.Set(2)
		s.Gap(1)
	}
	if len(s) > 2 || s.Full() {
		t.Fatalf("slots in step are %d parts", len(s))
	}
	for n := int64(3); !s.Full(); n++ {
		if len(s) > mostSlots || n > 2*mostSlots {
			t.Fatalf("%d parts are not full", len(s))
		}
		s.Set(n)
		s.Gap(n)
	}
	was := len(s)
	s.Set(5)
	s.Gap(5)
	if len(s) != was || was != mostSlots+1 {
		t.Errorf("%d parts, and behind them %d", was, len(s))
	}
}
