package store

import (
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/columns"
)

// Name returns the bucket of a series, by the id of its values, and its key, which is the caller's.
// Of one that is not here, but of which a deletion is remembered, it returns the bucket and no key.
func (m Member) Name(id metric.SeriesID) (bucket uint64, key []byte, ok bool) {
	return columns.Name(m.s.columns, id)
}
