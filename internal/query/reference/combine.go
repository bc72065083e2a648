package reference

import (
	"math"
	"sort"
)

// Rule R5: many series at a step.

const (
	minute   = 60_000 // ms
	near     = 2 * minute
	heldMost = 5 * minute
)

// withHeld asks for the outputs that decide which values before the range are held in it.
func withHeld(before lookback) lookback {
	return func(resolution int64) int {
		most := max(heldMost+3*near, 2.5*float64(resolution))
		return before(resolution) + outputs(most, resolution)
	}
}

// patience returns for how many ms the last of some values is held. Times are those of the last
// values, the latest first.
func patience(times []int64, resolution int64) float64 {
	least := 2.5 * float64(resolution)
	n, widest := min(1, len(times)), int64(0)
	for n > 0 && n < min(4, len(times)) && times[n-1]-times[n] <= near {
		widest = max(widest, times[n-1]-times[n])
		n++
	}
	if n < 3 {
		return max(heldMost, least)
	}
	return max(least, min(heldMost, 2.5*float64(widest)))
}

// member is a series of a combination, and where it has values.
type member struct {
	Series
	at []int // positions of values
}

func membersOf(in []Series) (list []member, err error) {
	for _, s := range in {
		if s.Resolution != in[0].Resolution {
			return nil, ErrMixedResolutions
		}
		m := member{Series: s}
		for i, v := range s.Values {
			if !math.IsNaN(v) {
				m.at = append(m.at, i)
			}
		}
		list = append(list, m)
	}
	return list, nil
}

// part returns the value with which a series takes part in a step. Steps count from the start of
// the range. own is set if the value is of that step. Behind its end a series has gaps.
func (m member) part(step int) (p joined, own, ok bool) {
	i := m.ahead + step
	n := sort.SearchInts(m.at, i)
	if n < len(m.at) && m.at[n] == i {
		return joined{m.of, m.Values[i], m.Confidence[i]}, true, true
	}
	var times []int64
	for k := n - 1; k >= max(0, n-4); k-- {
		times = append(times, int64(m.at[k])*m.Resolution)
	}
	if n == 0 || float64(int64(i)*m.Resolution-times[0]) > patience(times, m.Resolution) {
		return joined{}, false, false
	}
	last := m.at[n-1]
	return joined{m.of, m.Values[last], m.Confidence[last]}, false, true
}

// column returns all series that take part in a step, and how many have a value of that step.
func column(in []member, step int) (list []joined, own int) {
	for _, m := range in {
		p, isOwn, ok := m.part(step)
		if ok {
			list = append(list, p)
		}
		if isOwn {
			own++
		}
	}
	return list, own
}

// combination is a function of several series.
type combination struct {
	name string
	q    float64
	all  bool // a step at which a series does not take part is a gap
}

var needsAll = map[string]bool{"diff": true, "product": true, "quotient": true}

func combine(f combination, in []Series, before lookback) ([]Series, error) {
	if len(in) == 0 {
		return nil, nil
	}
	members, err := membersOf(in)
	if err != nil {
		return nil, err
	}
	out := Series{Resolution: in[0].Resolution, ahead: before(in[0].Resolution)}
	length := 0
	for _, s := range in {
		length = max(length, len(s.Values)-s.ahead)
		out.Slots += s.Slots
		out.Scale += s.Scale
		out.addReads(s.reads)
	}
	for step := -out.ahead; step < length; step++ {
		list, own := column(members, step)
		if own == 0 || f.all && len(list) < len(in) {
			out.add(math.NaN(), 0)
			continue
		}
		out.add(f.value(list))
	}
	out.rescale()
	return []Series{out}, nil
}

// value combines those that take part.
func (f combination) value(list []joined) (v, confidence float64) {
	if f.name == "sum" || f.name == "avg" || f.name == "min" || f.name == "max" {
		return join(f.name, list)
	}
	var values, sure []float64
	for _, p := range list {
		values, sure = append(values, p.value), append(sure, p.sure)
	}
	return fold(f.name, values, f.q, operate), sum(sure) / float64(len(sure))
}

// topk shows each series its own values, where fewer than k of those that take part are beyond.
func topk(name string, in []Series, k int, before lookback) ([]Series, error) {
	members, err := membersOf(in)
	if err != nil {
		return nil, err
	}
	var list []Series
	for _, m := range members {
		out := derived(m.Series, before(m.Resolution))
		out.hidden = true
		for step := -out.ahead; step < len(m.Values)-m.ahead; step++ {
			p, own, _ := m.part(step)
			all, _ := column(members, step)
			beyond := 0
			for _, other := range all {
				v := other.value
				if name == "topk" && v > p.value || name == "bottomk" && v < p.value {
					beyond++
				}
			}
			if !own || beyond >= k {
				out.add(math.NaN(), 0)
				continue
			}
			out.add(p.value, p.sure)
			out.hidden = out.hidden && step < 0 // what it shows before the range does not count
		}
		list = append(list, out)
	}
	return list, nil
}
