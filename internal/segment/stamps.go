package segment

import "dalmatiner/internal/metric"

// Timetimestamps are the buckets of a segment whose points have timestamps: every
// metric of theirs is two series, of which the timestamps count neither as points
// nor as a series.
type Timetimestamps map[uint64]bool

// Is reports whether the series is one of timestamps.
func (s Timetimestamps) Is(bucket uint64, h Hash) bool {
	return len(s) > 0 && metric.SeriesID(h).IsTimetimestamp() && s[bucket]
}

// Timetimestamps returns which of the segment's buckets have timestamps. If blocks are
// damaged it returns those of the others and the error.
func (r *Reader) Timetimestamps() (Timetimestamps, error) {
	buckets, err := r.Buckets()
	s := make(Timetimestamps)
	for i := range buckets {
		if buckets[i].HPTS {
			s[buckets[i].ID] = true
		}
	}
	return s, err
}
