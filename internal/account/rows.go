package account

// Rows are counts of buckets and minutes beside an account: on their way into it, or into
// the log. The zero Rows are none. They are not for concurrent use.
type Rows struct {
	counts map[rowKey]*Counts
	row    *Counts // the one counted last, of
	last   rowKey
}

type rowKey struct {
	bucket uint64
	minute int64
}

// Add counts points that arrived for the bucket in the given unix minute.
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

// Take gives the rows to put, in no particular order. Those that it takes are gone; the
// first that it does not take stays, with all behind it.
func (r *Rows) Take(put func(bucket uint64, minute int64, c *Counts) bool) {
	r.row = nil
	for k, c := range r.counts {
		if !put(k.bucket, k.minute, c) {
			return
		}
		delete(r.counts, k)
	}
}
