package sim

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	words "dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
)

// chunkSlots is how many slots a chunk has here: few, so that series have several.
const chunkSlots = 2

// windowChunks is how many chunks a window has here.
const windowChunks = 2

// op is a record of a log: exactly one of its parts is set.
type op struct {
	key     replication.Key // of a write or a hint
	write   *replication.Change
	counts  replication.Counts // of a write or an account
	merge   *replication.Change
	hint    *replication.Hint
	dropped uint64 // number of a hint that was delivered
	account *replication.BatchID
	drop    []replication.Share
}

// priorWrite is what a write returned.
type priorWrite struct {
	counts replication.Counts
	at     replication.Position
}

// seriesSlots is a series as it is now.
type seriesSlots struct {
	incarnation uint64
	slots       map[uint64]replication.Value
}

// disk is the store of a simulated node: a log, of which a crash takes an end that was not
// synced, and what follows from it.
type disk struct {
	partition func(metric.SeriesID) int
	copies    func() int                // n: with one copy the last write wins
	own       func(metric.SeriesID) int // n of the bucket of a series; 0: that of the ring
	dropping  func(replication.Share)   // sees that a share is about to be dropped
	full      bool
	adopting  []adoptedChunk // ascending
	taken     uint64         // the last chunk that was
	asked     int            // how often digests were to be prepared
	log       []op
	durable   int // records of the log that no crash takes

	series  map[metric.SeriesID]*seriesSlots
	lives   uint64 // grows with every incarnation
	keys    map[replication.Key]priorWrite
	settled map[ring.ID][2]uint64 // boot and number, not logged: a crash only makes it lower
	hints   []replication.Hint
	account map[replication.BatchID]replication.Counts
}

func newDisk(partition, own func(metric.SeriesID) int, copies func() int) *disk {
	d := &disk{partition: partition, own: own, copies: copies}
	d.replay()
	return d
}

// replay makes everything anew from the log.
func (d *disk) replay() {
	d.series, d.keys = make(map[metric.SeriesID]*seriesSlots), make(map[replication.Key]priorWrite)
	d.settled, d.account = make(map[ring.ID][2]uint64),
		make(map[replication.BatchID]replication.Counts)
	d.hints = nil
	for i, o := range d.log {
		d.apply(o, replication.Position(i+1))
	}
}

// crash keeps a part of the log that holds at least what was synced.
func (d *disk) crash(kept int) {
	d.log, d.adopting, d.taken = d.log[:max(kept, d.durable)], nil, 0
	d.durable = len(d.log)
	d.replay()
}

// syncedState returns what the disk has of what no crash takes.
func (d *disk) syncedState() *disk {
	s := &disk{partition: d.partition, own: d.own, copies: d.copies, log: d.log[:d.durable]}
	s.replay()
	return s
}

func (d *disk) append(o op) (replication.Position, error) {
	if d.full {
		return 0, replication.ErrFull
	}
	d.log = append(d.log, o)
	at := replication.Position(len(d.log))
	d.apply(o, at)
	return at, nil
}

func (d *disk) apply(o op, at replication.Position) {
	switch {
	case o.write != nil:
		d.change(*o.write, cmp.Or(o.write.Copies, d.copies()) > 1)
		d.keys[o.key] = priorWrite{o.counts, at}
	case o.merge != nil:
		d.change(*o.merge, true)
	case o.hint != nil:
		d.hints = append(d.hints, *o.hint)
		d.keys[o.key] = priorWrite{o.counts, at}
	case o.dropped != 0:
		d.hints = slices.DeleteFunc(d.hints, func(h replication.Hint) bool {
			return h.Number == o.dropped
		})
	case o.account != nil:
		d.account[*o.account] = o.counts
	case o.drop != nil:
		for id := range d.series {
			if slices.Contains(o.drop, d.share(id)) {
				d.series[id].slots = make(map[uint64]replication.Value)
			}
		}
	}
}

func (d *disk) seriesOf(id metric.SeriesID) *seriesSlots {
	if d.series[id] == nil {
		d.series[id] = &seriesSlots{slots: make(map[uint64]replication.Value)}
	}
	return d.series[id]
}

// change applies deletions first: rows of the same change are of the life behind them.
func (d *disk) change(c replication.Change, larger bool) {
	for _, del := range c.Deletions {
		if s := d.seriesOf(del.Series); del.Incarnation > s.incarnation {
			d.lives++
			s.incarnation, s.slots = del.Incarnation, make(map[uint64]replication.Value)
		}
	}
	for _, r := range c.Rows {
		s := d.seriesOf(r.Series)
		if r.Incarnation < s.incarnation {
			panic("the protocol stores a point that was deleted")
		}
		if larger || r.Value.Word == words.Stale {
			s.slots[r.Slot] = replication.Larger(s.slots[r.Slot], r.Value)
		} else {
			s.slots[r.Slot] = r.Value
		}
	}
}

func (d *disk) Write(key replication.Key, c replication.Change) (replication.Counts,
	replication.Position, error) {
	c = c.InRows()
	d.settle(c.Rows)
	var counts replication.Counts
	held := make(map[replication.Row]replication.Value)
	for _, r := range c.Rows {
		slot := replication.Row{Series: r.Series, Slot: r.Slot}
		before, again := held[slot]
		if !again && d.series[r.Series] != nil {
			before = d.series[r.Series].slots[r.Slot]
		}
		switch before {
		case replication.Value{}:
			counts.Accepted++
		case r.Value:
			counts.Duplicate++
		default:
			counts.Conflicting++
		}
		held[slot] = replication.Larger(before, r.Value)
	}
	at, err := d.append(op{key: key, write: &c, counts: counts})
	return counts, at, err
}

func (d *disk) PriorResult(key replication.Key) (replication.Counts, replication.Position, bool) {
	s, ok := d.keys[key]
	return s.counts, s.at, ok
}

func (d *disk) Settle(b replication.BatchID, below uint64) bool {
	known := d.settled[b.Coordinator]
	if b.Boot < known[0] || b.Boot == known[0] && b.Number < known[1] {
		return true
	}
	if b.Boot > known[0] || below > known[1] {
		d.settled[b.Coordinator] = [2]uint64{b.Boot, below}
		for key := range d.keys {
			if k := key.Batch; k.Coordinator == b.Coordinator && (k.Boot < b.Boot || k.Number < below) {
				delete(d.keys, key)
			}
		}
	}
	return false
}

func (d *disk) Merge(c replication.Change) (replication.Position, error) {
	if d.full {
		return 0, replication.ErrFull
	}
	c.Rows, c.Chunks = append(slices.Clip(c.Rows), d.take(c.Chunks)...), nil
	d.settle(c.Rows)
	if len(c.Rows) == 0 && len(c.Deletions) == 0 {
		return replication.Position(len(d.log)), nil
	}
	return d.append(op{merge: &c})
}

func (d *disk) KeepHint(key replication.Key, h replication.Hint) (replication.Position, error) {
	return d.append(op{key: key, hint: &h, counts: replication.Counts{Accepted: len(h.Change.Rows)}})
}

// DropHint needs no room: what a full disk does not take comes back at a start.
func (d *disk) DropHint(number uint64) {
	d.log = append(d.log, op{dropped: number})
	d.apply(d.log[len(d.log)-1], 0)
}

func (d *disk) Hints() (list []replication.HintInfo) {
	for _, h := range d.hints {
		list = append(list, replication.HintInfo{
			Number: h.Number,
			For:    h.For,
			Share:  replication.Share{Partition: h.Change.Partition, Copies: h.Change.Copies},
			Rows:   len(h.Change.Rows),
		})
	}
	return list
}

func (d *disk) Hint(number uint64) (replication.Change, bool) {
	for _, h := range d.hints {
		if h.Number == number {
			return h.Change, true
		}
	}
	return replication.Change{}, false
}

func (d *disk) HintRows(series metric.SeriesID, from, past uint64) (rows []replication.Row) {
	for _, h := range d.hints {
		for _, r := range h.Change.Rows {
			if r.Series == series && r.Slot >= from && r.Slot < past {
				rows = append(rows, r)
			}
		}
	}
	return rows
}

func (d *disk) Account(b replication.BatchID, c replication.Counts) (replication.Position, error) {
	return d.append(op{account: &b, counts: c})
}

func (d *disk) Lives() uint64 { return d.lives }

func (d *disk) Incarnation(id metric.SeriesID) uint64 {
	if s := d.series[id]; s != nil {
		return s.incarnation
	}
	return 0
}

// has reports whether a point is here, or one that hides it, or a hint of it.
func (d *disk) has(r replication.Row) bool {
	if s := d.series[r.Series]; s != nil && s.slots[r.Slot].Compare(r.Value) >= 0 {
		return true
	}
	return slices.ContainsFunc(d.hints, func(h replication.Hint) bool {
		return slices.ContainsFunc(h.Change.Rows, func(o replication.Row) bool {
			return o.Series == r.Series && o.Slot == r.Slot && o.Value.Compare(r.Value) >= 0
		})
	})
}

// sorted returns the series of a partition in ascending order.
func (d *disk) sorted(partition int) (ids []metric.SeriesID) {
	for id := range d.series {
		if partition < 0 || d.partition(id) == partition {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b metric.SeriesID) int { return slices.Compare(a[:], b[:]) })
	return ids
}

func (d *disk) Deletions(partition int) (list []replication.Deletion) {
	for _, id := range d.sorted(partition) {
		if n := d.series[id].incarnation; n > 0 {
			list = append(list, replication.Deletion{Series: id, Incarnation: n})
		}
	}
	return list
}

// share returns the share that a series is in.
func (d *disk) share(id metric.SeriesID) replication.Share {
	return replication.Share{Partition: d.partition(id), Copies: d.own(id)}
}

// digests returns the digests of all chunks of a share in ascending order.
func (d *disk) digests(of replication.Share) (list []replication.ChunkDigest) {
	for _, id := range d.sorted(of.Partition) {
		if d.own(id) != of.Copies {
			continue
		}
		s := d.series[id]
		sums := make(map[uint64]uint64)
		for slot, v := range s.slots {
			sums[slot/chunkSlots] += mix(mix(mix(s.incarnation^slot)+v.Word) + v.Time)
		}
		at := len(list)
		for n, sum := range sums {
			list = append(list, replication.ChunkDigest{ID: replication.ChunkID{Series: id, Number: n},
				Digest: sum})
		}
		slices.SortFunc(list[at:], func(a, b replication.ChunkDigest) int { return a.ID.Compare(b.ID) })
	}
	return list
}

// Prepare needs several calls now and then.
func (d *disk) Prepare(replication.Share) bool {
	d.asked++
	return d.asked%4 != 0
}

func (d *disk) Windows(of replication.Share) (list []replication.WindowDigest) {
	sums := make(map[uint64]replication.WindowDigest)
	for _, c := range d.digests(of) {
		w := sums[c.ID.Number/windowChunks]
		w.Number = c.ID.Number / windowChunks
		w.Digest += mix(c.Digest + mix(binary.BigEndian.Uint64(c.ID.Series[:])^c.ID.Number))
		sums[w.Number] = w
	}
	for _, w := range sums {
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b replication.WindowDigest) int {
		return cmp.Compare(a.Number, b.Number)
	})
	return list
}

func (d *disk) Chunks(of replication.Share, window uint64, after metric.SeriesID,
	limit int) (list []replication.ChunkDigest, more bool) {
	for _, c := range d.digests(of) {
		if c.ID.Number/windowChunks != window || bytes.Compare(c.ID.Series[:], after[:]) <= 0 {
			continue
		}
		list = append(list, c)
		if len(list) > limit { // not all of the last series may be in
			id := list[len(list)-1].ID.Series
			if whole := slices.IndexFunc(list, func(d replication.ChunkDigest) bool {
				return d.ID.Series == id
			}); whole > 0 {
				return list[:whole], true
			}
		}
	}
	return list, false
}

// mix spreads the bits of a number (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// rowsOf returns the points of a chunk that show.
func (d *disk) rowsOf(id replication.ChunkID) (rows []replication.Row) {
	s := d.seriesOf(id.Series)
	for slot, v := range s.slots {
		if slot/chunkSlots == id.Number {
			rows = append(rows, replication.Row{
				Series:      id.Series,
				Incarnation: s.incarnation,
				Slot:        slot,
				Value:       v,
			})
		}
	}
	slices.SortFunc(rows, func(a, b replication.Row) int { return cmp.Compare(a.Slot, b.Slot) })
	return rows
}

func (d *disk) Read(id metric.SeriesID, from, past uint64) []replication.Slot {
	slots := make([]replication.Slot, past-from)
	if s := d.series[id]; s != nil {
		for i := range slots {
			slots[i].Value = s.slots[from+uint64(i)]
		}
	}
	return slots
}

func (d *disk) Holds() (list []replication.Share) {
	for _, id := range d.sorted(-1) {
		if of := d.share(id); len(d.series[id].slots) > 0 && !slices.Contains(list, of) {
			list = append(list, of)
		}
	}
	slices.SortFunc(list, func(a, b replication.Share) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Copies, b.Copies))
	})
	return list
}

func (d *disk) Drop(of replication.Share) {
	d.dropping(of)
	d.adopting = slices.DeleteFunc(d.adopting, func(a adoptedChunk) bool {
		return d.share(a.id.Series) == of
	})
	d.log = append(d.log, op{drop: []replication.Share{of}})
	d.apply(d.log[len(d.log)-1], 0)
}
