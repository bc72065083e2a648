package reference

import (
	"math"
	"slices"
)

// Rule R12: what a result says of itself.

// reading is a metric that was read, over its own range.
type reading struct {
	of         identity
	shift      int64 // ms that it was read earlier
	resolution int64
	words      []uint64 // all slots of the range
	from       int64    // the first of them
}

// addReads adds those that are not there yet. A metric that is read at two shifts is two.
func (s *Series) addReads(list []reading) {
	for _, r := range list {
		same := func(o reading) bool { return o.of == r.of && o.shift == r.shift }
		if !slices.ContainsFunc(s.reads, same) {
			s.reads = append(slices.Clip(s.reads), r)
		}
	}
}

// describe sets what the series says of itself. Until is the end of the range, or now.
func (s *Series) describe(until int64) {
	most := int64(-1)
	s.Ended = true
	for _, r := range s.reads {
		set := r.set(0)
		points, d := int64(len(set)), r.distance()
		s.Points += points
		s.Ended = s.Ended && r.ended(until)
		if points > 0 {
			last := r.time(set[points-1])
			if !s.HasPoint || last > s.LastPoint {
				s.HasPoint, s.LastPoint = true, last
			}
		}
		interval := d * r.resolution
		if points < 2 {
			interval = 0
		}
		// Of two with as many points it is the shorter one, in whatever order they were read.
		if points > most || points == most && interval < s.Interval {
			most, s.Interval = points, interval
		}
	}
	for _, r := range s.reads {
		points, d := int64(len(r.set(0))), r.distance()
		if points < 2 { // nothing is known of its sender: it is like the others
			d = max(1, s.Interval/r.resolution)
		}
		promised := max(1, int64(len(r.words))/d)
		s.Promised += promised
		s.counted += min(points, promised)
	}
}

// time returns the time of a slot of the range, in the times of the query.
func (r reading) time(i int) int64 { return (r.from+int64(i))*r.resolution + r.shift }

// set returns which slots of the range are set, from one of them on.
func (r reading) set(from int) (list []int) {
	for i := from; i < len(r.words); i++ {
		if r.words[i] != unset {
			list = append(list, i)
		}
	}
	return list
}

// sample returns which of the last 1440 slots up to the last set one are set.
func (r reading) sample() []int {
	set := r.set(0)
	if len(set) == 0 {
		return nil
	}
	return r.set(max(0, set[len(set)-1]-1439))
}

// distance returns how many slots the points of a metric are apart.
func (r reading) distance() int64 {
	if sample := r.sample(); len(sample) >= 2 {
		times := map[int]int{}
		for i := 1; i < len(sample); i++ {
			times[sample[i]-sample[i-1]]++
		}
		best := 0
		for d, n := range times {
			if n > times[best] || n == times[best] && d < best {
				best = d
			}
		}
		return int64(best)
	}
	set := r.set(0)
	if len(set) < 2 {
		return 1
	}
	return int64(math.Round(float64(set[len(set)-1]-set[0]) / float64(len(set)-1)))
}

// ended reports whether the last point is older than its metric lets expect.
func (r reading) ended(until int64) bool {
	sample := r.sample()
	if len(sample) == 0 {
		return true
	}
	var times []int64 // of the last values
	for _, i := range slices.Backward(sample) {
		if !math.IsNaN(number(r.words[i])) {
			times = append(times, r.time(i))
		}
	}
	age := until - r.time(sample[len(sample)-1])
	return float64(age) > max(60_000, patience(times, r.resolution))
}
