package columns

import (
	"bytes"

	"dalmatiner/internal/model/metric"
)

// Name returns the bucket of a series, by the id of its values, and its key, which is the caller's.
// Of one that is not here, but of which a deletion is remembered, it returns the bucket and no key.
func Name(t *Table, id metric.SeriesID) (bucket uint64, key []byte, ok bool) {
	ref, known := t.Index.Lookup(id)
	if known && !ref.Inactive() {
		if g := t.Groups.Get(ref.Group()); g != nil {
			cols, col := g.Columns(), ref.Column()
			if col < cols.Len() && cols.HasName(col) && cols.ID(col) == id {
				return g.Bucket, bytes.Clone(cols.Key(col)), true
			}
		}
		if ref, known = t.Index.Lookup(id); !known {
			return 0, nil, false // it was deleted at this moment
		}
	}
	for _, b := range t.o.Buckets.All() {
		if known && ref.Inactive() {
			b.mu.Lock()
			key, ok = b.inactive.LookupKey(ref)
			key = bytes.Clone(key)
			b.mu.Unlock()
			if ok && b.SeriesID(key) == id {
				return b.ID, key, true
			}
		}
		if b.Incarnations.Get(id) > 0 {
			bucket = b.ID
		}
	}
	return bucket, nil, false
}
