package exec

import (
	"dalmatiner/internal/point"
	"dalmatiner/internal/query/spacing"
)

// takeSlots has a leaf that is read slot by slot stand behind the steps that are taken over, of which it has
// read those before. It reports false where the steps hold values that come from behind the range.
func (l *leaf) takeSlots(of *found, step int64, p overlap) bool {
	per, first := step/l.Resolution, int64(unknown)
	begin, done, past := int64(p.begin)*per, int64(p.from)*per, int64(p.to)*per
	l.noting = true
	of.gaps.Each(begin, past, func(set bool, from, to int64) {
		if !set {
			l.gaps.Gap(to - from)
			return
		}
		l.gaps.Set(to - from)
		if first == unknown {
			first = l.From + from - begin
		}
		if from = max(from, done); from < to {
			l.count(l.From+from-begin, to-from)
		}
	})
	l.pos, l.lastWord = l.From+past-begin, of.last
	for i := range l.sums {
		s := &l.sums[i]
		s.from, s.until = l.pos, l.pos+s.size
		if s.begun = of.last != point.Unset; s.begun {
			s.carry = of.last
		}
	}
	if of.last == point.Unset {
		return true
	}
	if first == unknown {
		return false
	}
	l.first, l.word, l.carry = first, of.last, point.Float(of.last)
	return true
}

// carriedSlots is carried for a read slot by slot, so many slots in a step.
func (k *Steps) carriedSlots(runs spacing.Slots, per int64) {
	last := int64(-1)
	runs.Each(0, int64(k.n)*per, func(set bool, from, past int64) {
		if set {
			last = past - 1
			return
		}
		for i := (from + per - 1) / per; last >= 0 && i*per < past; i++ {
			k.earliest[i] = min(k.earliest[i], int32(last/per))
		}
	})
}
