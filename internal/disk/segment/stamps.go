package segment

import "dalmatiner/internal/model/metric"

// Timestamps is a set of buckets, by id: those whose points have timestamps. Each metric of
// such a bucket is two series, one of values and one of timestamps. In Info those of
// timestamps count neither as points nor as series.
type Timestamps map[uint64]bool

// Is reports whether a series of a bucket is one of timestamps.
func (s Timestamps) Is(bucket uint64, h Hash) bool {
	return len(s) > 0 && metric.SeriesID(h).IsTimestamp() && s[bucket]
}

// Timestamps returns which buckets of the segment have timestamps. If blocks are damaged, it
// returns those that the others name, and the error.
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
