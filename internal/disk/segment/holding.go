package segment

import (
	"bytes"
	"math"
)

// Hashes calls fn for every series of the bucket that has chunks, in the order of the
// hashes. A series with very many chunks may be given several times.
func (r *Reader) Hashes(bucket uint64, fn func(h Hash)) error {
	w, err := r.walk()
	if err != nil {
		return err
	}
	defer w.release()
	return w.leaves(bucket, bucket, func(_ int, l leaf) error {
		for row := range l.rows() {
			fn(Hash(l.rowHash(row)))
		}
		return nil
	})
}

// EachHolding calls fn with the index in hashes of every series that has chunks in the bucket.
// The hashes are ascending. Of the index it reads only the parts that may name one of them,
// and each of these once.
func (r *Reader) EachHolding(bucket uint64, hashes []Hash, fn func(i int)) error {
	w, err := r.walk()
	if err != nil {
		return err
	}
	defer w.release()
	d := w.d
	at, l := -1, leaf(nil) // the leaf in hand; nil for a damaged one
	for i := range hashes {
		var low, high [fenceSize]byte
		first := d.search(appendFence(low[:0], bucket, &hashes[i], math.MinInt64))
		past := appendFence(high[:0], bucket, &hashes[i], math.MaxInt64)
		for n := first; n < len(d.leaves) && bytes.Compare(d.fence(n), past) <= 0; n++ {
			if n != at {
				at = n
				if l, err = d.leaf(n, &w.leaf); err != nil {
					l = nil
					if err := w.found.add(err); err != nil {
						return err
					}
				}
			}
			if l == nil {
				continue
			}
			if _, ok := l.row(bucket, &hashes[i]); ok {
				fn(i)
				break
			}
		}
	}
	return w.found.err()
}
