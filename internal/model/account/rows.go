package account

// Rows collects counts by bucket and minute before they go into an account or into the log.
// The zero value is empty. It is not for concurrent use.
type Rows struct {
	counts map[rowKey]*Counts
	row    *Counts // the one counted last, of
	last   rowKey
}

type rowKey struct {
	bucket uint64
	minute int64
}

// Add adds c to the row of a bucket and a minute since 1970.
func (r *Rows) Add(bucket uint64, minute int64, c *Counts) {
	if k := (rowKey{bucket, minute}); r.row == nil || k != r.last {
		if r.counts == nil {
			r.counts = make(map[rowKey]*Counts)
		}
		r.row = r.counts[k]
		if r.row == nil {
			r.row = new(Counts)
			r.counts[k] = r.row
		}
		r.last = k
	}
	r.row.Add(c)
}

// Len returns how many rows there are.
func (r *Rows) Len() int { return len(r.counts) }

// Take calls put for the rows, in no particular order, and removes each for which put
// returns true. It ends at the first false: that row and all that put has not seen stay.
func (r *Rows) Take(put func(bucket uint64, minute int64, c *Counts) bool) {
	r.row = nil
	for k, c := range r.counts {
		if !put(k.bucket, k.minute, c) {
			return
		}
		delete(r.counts, k)
	}
}
