package replica

import (
	"fmt"
	"slices"
	"sync"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write"
)

// hints are what other nodes missed.
type hints struct {
	list  []replication.HintInfo // by number
	kept  []hintRecord           // of each of them
	bytes int64                  // in memory
	log   int64                  // bytes of their records
	of    map[metric.SeriesID][]run
	names hintNames
}

// hintNames are the names of the series of hints: nobody else may know them, and who delivers a
// hint needs them. It has a lock of its own.
type hintNames struct {
	mu sync.RWMutex
	of map[metric.SeriesID]*hintName
}

type hintName struct {
	bucket uint64
	key    []byte // nil where only the bucket is known
	uses   int
}

// eachSeries calls fn for each run of rows of a series, and for each deletion.
func eachSeries(c *replication.Change, fn func(id metric.SeriesID, from, to int)) {
	for from := 0; from < len(c.Rows); {
		to, id := from, c.Rows[from].Series
		for to < len(c.Rows) && c.Rows[to].Series == id {
			to++
		}
		fn(id, from, to)
		from = to
	}
	for _, d := range c.Deletions {
		fn(d.Series, 0, 0)
	}
}

// keep keeps the names of a change.
func (n *hintNames) keep(c *replication.Change, from Names) {
	// looked up without the lock: somebody may be asked who asks here
	found := make(map[metric.SeriesID]*hintName)
	eachSeries(c, func(id metric.SeriesID, _, _ int) {
		if h := found[id]; h != nil {
			h.uses++
			return
		}
		h := &hintName{uses: 1}
		var named bool
		if h.bucket, h.key, named = from.Lookup(id); !named {
			h.bucket, _ = from.Bucket(id)
			h.key = nil
		}
		found[id] = h
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil {
		n.of = make(map[metric.SeriesID]*hintName)
	}
	for id, h := range found {
		old := n.of[id]
		if old != nil {
			h.uses += old.uses
		}
		if old != nil && h.key == nil {
			h.bucket, h.key = old.bucket, old.key
		}
		n.of[id] = h
	}
}

// release lets the names of a change go.
func (n *hintNames) release(c *replication.Change) {
	n.mu.Lock()
	defer n.mu.Unlock()
	eachSeries(c, func(id metric.SeriesID, _, _ int) {
		if h := n.of[id]; h != nil {
			if h.uses--; h.uses == 0 {
				delete(n.of, id)
			}
		}
	})
}

// name returns what is known of a series of a hint.
func (n *hintNames) name(id metric.SeriesID) (bucket uint64, key []byte, ok bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if h := n.of[id]; h != nil {
		return h.bucket, h.key, h.key != nil
	}
	return 0, nil, false
}

// keys returns the keys of the series of a bucket, as far as they are known.
func (n *hintNames) keys(bucket uint64) (keys [][]byte) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, h := range n.of {
		if h.bucket == bucket && h.key != nil {
			keys = append(keys, h.key)
		}
	}
	return keys
}

// hintRecord is what a hint brings, what it takes, and where it is.
type hintRecord struct {
	change    replication.Change
	lsn       wal.LSN
	size, log int64 // bytes in memory and of its record
}

// run is rows of a series that follow each other in a hint.
type run struct {
	number   uint64
	from, to int
}

// Memory of a hint beside the bytes of its rows, and of a run.
const (
	hintSize     = 256
	rowSize      = 48
	runSize      = 192 // with the name
	deletionSize = 24
)

// size is about the memory of a hint.
func (h *hints) size(c *replication.Change) int64 {
	return hintSize + int64(len(c.Rows))*(rowSize+runSize) + int64(len(c.Deletions))*deletionSize
}

// put adds a hint, or replaces one that is there: the log may have it twice.
func (h *hints) put(of replication.Hint, lsn wal.LSN, record int, names Names) {
	h.names.keep(&of.Change, names)
	h.remove(of.Number)
	i, _ := h.find(of.Number)
	k := hintRecord{of.Change, lsn, h.size(&of.Change), int64(record)}
	h.list = slices.Insert(h.list, i, replication.HintInfo{
		Number: of.Number,
		For:    of.For,
		Share:  replication.Share{Partition: of.Change.Partition, Copies: of.Change.Copies},
		Rows:   len(of.Change.Rows),
	})
	h.kept = slices.Insert(h.kept, i, k)
	h.bytes += k.size
	h.log += k.log
	if h.of == nil {
		h.of = make(map[metric.SeriesID][]run)
	}
	eachSeries(&of.Change, func(id metric.SeriesID, from, to int) {
		if from < to {
			h.of[id] = append(h.of[id], run{of.Number, from, to})
		}
	})
}

func (h *hints) find(number uint64) (int, bool) {
	return slices.BinarySearchFunc(h.list, number, func(of replication.HintInfo, n uint64) int {
		switch {
		case of.Number < n:
			return -1
		case of.Number > n:
			return 1
		}
		return 0
	})
}

// remove drops a hint, if it is there.
func (h *hints) remove(number uint64) bool {
	i, ok := h.find(number)
	if !ok {
		return false
	}
	change := h.kept[i].change
	eachSeries(&change, func(id metric.SeriesID, _, _ int) {
		runs := slices.DeleteFunc(h.of[id], func(r run) bool { return r.number == number })
		if h.of[id] = runs; len(runs) == 0 {
			delete(h.of, id)
		}
	})
	h.names.release(&change)
	h.bytes -= h.kept[i].size
	h.log -= h.kept[i].log
	if i == 0 { // as a rule the oldest is delivered first
		h.kept[0] = hintRecord{}
		h.list, h.kept = h.list[1:], h.kept[1:]
	} else {
		h.list, h.kept = slices.Delete(h.list, i, i+1), slices.Delete(h.kept, i, i+1)
	}
	return true
}

// KeepHint stores a hint and notes the key, both in one record. The error wraps replication.ErrFull
// where hints have all the room that they may have, and replication.ErrStaleBucket where the bucket
// of the rows, which have the same, was deleted.
func (j *journal) KeepHint(key replication.Key, h replication.Hint) (replication.Position, error) {
	if err := j.checkRoom(); err != nil {
		return 0, err
	}
	if rows := h.Change.Rows; len(rows) > 0 && j.o.Known != nil {
		if bucket, _, ok := j.o.Names.Lookup(rows[0].Series); ok && !j.o.Known(bucket) {
			return 0, replication.ErrStaleBucket
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if size := j.hints.size(&h.Change); j.hints.bytes+size > j.o.MaxHintBytes {
		return 0, fmt.Errorf("%w: hints for other nodes have %d of %d bytes, one of %d is one too "+
			"many; bring these nodes back, or raise cluster.hints_max",
			replication.ErrFull, j.hints.bytes, j.o.MaxHintBytes, size)
	}
	e := &priorResult{key: key, counts: replication.Counts{Accepted: len(h.Change.Rows)}}
	rec, err := j.hintRecord(&h, e)
	if err != nil {
		return 0, err
	}
	lsn, err := j.append(rec)
	if err != nil {
		return 0, err
	}
	j.hints.put(h, lsn, len(rec), j.o.Names)
	e.lsn, e.at = lsn, j.next(write.Token{}, nil)
	j.keys.add(e)
	return e.at, nil
}

// DropHint removes a hint that was delivered. Where a crash takes the record of it, or the disk has
// no room for that, the hint comes back, and is delivered again.
func (j *journal) DropHint(number uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.hints.remove(number) && j.checkRoom() == nil {
		// A failed log ends the node by itself.
		_, _ = j.append(dropRecord(number))
	}
}

// Hints returns all hints, in the order of their numbers. The slice is valid until the next call of
// KeepHint or DropHint.
func (j *journal) Hints() []replication.HintInfo { return j.hints.list }

// Hint returns what a hint brings, if it is there. Rows of buckets that were deleted meanwhile are
// left out: nobody knows these by name any more, so they could not be sent, and the hint would stay
// for ever.
func (j *journal) Hint(number uint64) (replication.Change, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	i, ok := j.hints.find(number)
	if !ok {
		return replication.Change{}, false
	}
	change := j.hints.kept[i].change
	if gone := j.goneSeries(&change); len(gone) > 0 {
		change.Rows = slices.DeleteFunc(slices.Clone(change.Rows), func(row replication.Row) bool {
			return gone[row.Series]
		})
	}
	return change, true
}

// goneSeries returns the series of a hint whose buckets are no more.
func (j *journal) goneSeries(c *replication.Change) map[metric.SeriesID]bool {
	if j.o.Known == nil {
		return nil
	}
	gone := make(map[metric.SeriesID]bool)
	eachSeries(c, func(id metric.SeriesID, _, _ int) {
		if bucket, _, ok := j.hints.names.name(id); ok && !j.o.Known(bucket) {
			gone[id] = true
		}
	})
	return gone
}

// HintRows returns the rows of a series in the slots [from, past) that are kept for other nodes, in
// no particular order. A slot may be there several times.
func (j *journal) HintRows(series metric.SeriesID, from, past uint64) (rows []replication.Row) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, run := range j.hints.of[series] {
		i, ok := j.hints.find(run.number)
		if !ok {
			continue
		}
		for _, row := range j.hints.kept[i].change.Rows[run.from:run.to] {
			if row.Slot >= from && row.Slot < past {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// HintKeys returns the keys of the series of a bucket that are kept for other nodes, in no
// particular order. They are not to be changed.
func (j *journal) HintKeys(bucket uint64) [][]byte { return j.hints.names.keys(bucket) }
