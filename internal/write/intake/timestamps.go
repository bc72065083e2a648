package intake

import (
	"encoding/binary"
	"math"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/write/logrecord"
)

// A metric of a bucket with high precision timestamps is two series in adjacent
// columns: the values, and behind them the timestamps as nanoseconds from the begin
// of the slot, a point like any other. Only the values have a name and an entry
// in the index. A stale marker stands for its slot, and has no timestamp. DESIGN.md says what
// follows from it.

// TimestampedSize is the size of a point with its timestamp, in bytes.
const TimestampedSize = 2 * point.Size

// TimestampedPoint is Point for a point with a timestamp in nanoseconds. A bucket without
// timestamps keeps the value only.
func (x *Session) TimestampedPoint(key []byte, slot uint64, raw, timestamp uint64) {
	if x.storer.width == 1 {
		x.Point(key, slot, raw)
		return
	}
	w, ok := x.storer.normalize(raw)
	if !ok {
		x.storer.refuse(account.BadType, 1)
		return
	}
	word := uint64(point.Unset)
	if w > point.Stale {
		if word, ok = x.storer.b.TimestampWord(slot, timestamp); !ok {
			x.storer.refuseTimestamp(key, slot)
			return
		}
	}
	if !x.position.Columns.Is(x.position.Column, key) &&
		!x.find(key, points{slot, 1, func(uint64) (uint64, uint64) { return raw, timestamp }}) {
		return
	}
	if !x.buffer.goesOn(slot, x.position.Column) {
		x.begin(slot)
	}
	x.buffer.add(w)
	x.buffer.add(word)
	x.position.Column += 2
}

// refuseTimestamp counts a point whose timestamp does not belong to its slot under the
// first reason that holds.
func (k *storer) refuseTimestamp(key []byte, slot uint64) {
	lo, hi := k.slots()
	reason, ok := refusalReason(key, slot, lo, hi)
	if !ok {
		reason = account.BadTimestamp
	}
	k.refuse(reason, 1)
}

// TimestampedPoints takes consecutive points of one metric, TimestampedSize bytes each:
// the value, then the timestamp. Unlike TimestampedPoint it needs a bucket with
// timestamps.
func (x *Session) TimestampedPoints(key []byte, slot uint64, data []byte) {
	if n := len(data) / TimestampedSize; n > 1 {
		x.pairs(key, points{slot, uint64(n), func(i uint64) (raw, timestamp uint64) {
			pair := data[i*TimestampedSize:]
			return binary.BigEndian.Uint64(pair), binary.BigEndian.Uint64(pair[point.Size:])
		}})
	} else if n == 1 {
		x.TimestampedPoint(key, slot, binary.BigEndian.Uint64(data),
			binary.BigEndian.Uint64(data[point.Size:]))
	}
}

// pairs takes points of one metric of a bucket with timestamps.
func (x *Session) pairs(key []byte, of points) {
	if !x.position.Columns.Is(x.position.Column, key) && !x.find(key, of) {
		return
	}
	x.flush()
	if of.slot > math.MaxUint64-of.n {
		x.storer.refuse(account.Future, of.n) // its last slots would begin at 0 again
		of.n = 0
	}
	first, slot := of.slot, of.slot
	x.entry = x.entry[:0]
	for i := range of.n {
		raw, timestamp := of.at(i)
		w, ok := x.storer.normalize(raw)
		word := uint64(point.Unset)
		switch {
		case !ok:
			x.storer.refuse(account.BadType, 1)
		case w > point.Stale:
			if word, ok = x.storer.b.TimestampWord(slot, timestamp); !ok {
				x.storer.refuseTimestamp(key, slot)
			}
		}
		slot++
		if ok {
			x.entry = append(x.entry, w, word)
		}
		if !ok || len(x.entry) == logrecord.MaxPoints {
			x.storer.storeColumn(x.position, first, x.entry)
			first, x.entry = slot, x.entry[:0]
		}
	}
	x.storer.storeColumn(x.position, first, x.entry)
	x.position.Column += 2
}
