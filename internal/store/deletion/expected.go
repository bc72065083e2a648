package deletion

import (
	"slices"
	"sync"

	"dalmatiner/internal/model/metric"
)

// expected are the series of chunks that are to be adopted, by how many chunks: until then a series
// may have no point, and must not go for that.
type expected struct {
	mu  sync.Mutex
	ids map[metric.SeriesID]int
}

// Expect says that a chunk of a series is about to be adopted: until Came the series does not
// expire, with points or not. It reports false, and nothing is expected, if there is no such
// series.
func (x *Deleter) Expect(id metric.SeriesID) bool {
	e := &x.expected
	e.mu.Lock()
	defer e.mu.Unlock()
	if !x.o.Columns.Index.Has(id) {
		return false
	}
	if e.ids == nil {
		e.ids = make(map[metric.SeriesID]int)
	}
	e.ids[id]++
	return true
}

// Came ends the wait for a chunk of a series.
func (x *Deleter) Came(id metric.SeriesID) {
	e := &x.expected
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ids[id]--; e.ids[id] <= 0 {
		delete(e.ids, id)
	}
}

// others calls fn with those of the series that are not expected. Meanwhile none is.
func (e *expected) others(ids []metric.SeriesID, fn func(ids []metric.SeriesID) error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	ids = slices.DeleteFunc(slices.Clone(ids), func(id metric.SeriesID) bool { return e.ids[id] > 0 })
	if len(ids) == 0 {
		return nil
	}
	return fn(ids)
}
