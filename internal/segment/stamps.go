package segment

import "dalmatiner/internal/metric"

// Stamps are the buckets of a segment whose points have timestamps: every
// metric of theirs is two series, of which the stamps count neither as points
// nor as a series.
type Stamps map[uint64]bool

// Is reports whether the series is one of stamps.
func (s Stamps) Is(bucket uint64, h Hash) bool {
	return len(s) > 0 && metric.SeriesID(h).IsStamp() && s[bucket]
}

// Stamps returns which of the segment's buckets have timestamps. If blocks are
// damaged it returns those of the others and the error.
func (r *Reader) Stamps() (Stamps, error) {
	buckets, err := r.Buckets()
	s := make(Stamps)
	for i := range buckets {
		if buckets[i].HPTS {
			s[buckets[i].ID] = true
		}
	}
	return s, err
}
