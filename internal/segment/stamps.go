package segment

import "dalmatiner/internal/metric"

// Timestamps are the buckets of a segment whose points have timestamps: every
// metric of theirs is two series, of which the timestamps count neither as points
// nor as a series.
type Timestamps map[uint64]bool

// Is reports whether the series is one of timestamps.
func (s Timestamps) Is(bucket uint64, h Hash) bool {
	return len(s) > 0 && metric.SeriesID(h).IsTimestamp() && s[bucket]
}

// Timestamps returns which of the segment's buckets have timestamps. If blocks are
// damaged it returns those of the others and the error.
func (r *Reader) Timestamps() (Timestamps, error) {
	buckets, err := r.Buckets()
	s := make(Timestamps)
	for i := range buckets {
		if buckets[i].HPTS {
			s[buckets[i].ID] = true
		}
	}
	return s, err
}
