package reference

import (
	"cmp"
	"slices"
)

// joined is what one series of a combination has at a time.
type joined struct {
	of          identity
	value, sure float64
}

// join combines the values of several series of one time, and the mean of their
// confidences, in the order that is the same on every node: series of one metric by
// their hashes, halves of all hashes apart, then halves of halves, up to one of 4096
// parts; then what was made of several, one after the other.
func join(name string, list []joined) (v, c float64) {
	var one, several []joined
	for _, j := range list {
		if j.of.known {
			one = append(one, j)
		} else {
			several = append(several, j)
		}
	}
	slices.SortStableFunc(one, func(a, b joined) int {
		return cmp.Or(cmp.Compare(a.of.high, b.of.high), cmp.Compare(a.of.low, b.of.low))
	})
	all := several
	if len(one) > 0 {
		all = append([]joined{joinHalves(name, one, 12)}, several...)
	}
	total := joinAll(name, all)
	if name == "avg" {
		var values []float64
		for _, j := range list {
			values = append(values, j.value)
		}
		total.value = mean(total.value, values)
	}
	return total.value, total.sure / float64(len(list))
}

// joinHalves joins series whose hashes are equal but for so many of the first 12 bits.
func joinHalves(name string, list []joined, bits int) joined {
	if bits == 0 {
		return joinAll(name, list)
	}
	var halves [2][]joined
	for _, j := range list {
		half := j.of.high >> (64 - 13 + bits) & 1
		halves[half] = append(halves[half], j)
	}
	var parts []joined
	for _, half := range halves {
		if len(half) > 0 {
			parts = append(parts, joinHalves(name, half, bits-1))
		}
	}
	return joinAll(name, parts)
}

// joinAll joins them one after the other.
func joinAll(name string, list []joined) joined {
	all := list[0]
	for _, j := range list[1:] {
		if name == "avg" {
			all.value += j.value
		} else {
			all.value = fold(name, []float64{all.value, j.value}, 0, operate)
		}
		all.sure += j.sure
	}
	return all
}
