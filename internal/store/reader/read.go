package reader

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/write/head"
)

// MaxRead is the largest number of slots of one Read: it bounds what one keeps in
// memory, and for how long files that are merged away.
const MaxRead = 1 << 17

// Read fills dst with the words of the slots [from, from+len(dst)). Slots without a
// point, and all slots of an unknown series, are unset (0), and so are stale markers, unless s
// asks for them. len(dst) is at most MaxRead.
// What it took is added to st unless that is nil: slots decoded and the bytes of their
// chunks in files, as what is in memory is not decoded; and the slots that are unset in
// dst because damage took what was there.
func (r *Reader) Read(ctx context.Context, s Series, from int64, dst []uint64, st *Stats) error {
	return r.read(ctx, s, from, dst, reading{stats: st})
}

// ReadOlder is Read, but where slots are unknown dst has what lies below what was lost:
// points that are intact and may have been overwritten.
func (r *Reader) ReadOlder(ctx context.Context, s Series, from int64, dst []uint64,
	st *Stats) error {
	var all Stats
	err := r.Read(ctx, s, from, dst, &all)
	if err == nil && len(all.Unknown) > 0 {
		err = r.read(ctx, s, from, dst, reading{older: true})
	}
	if st != nil {
		st.Add(all)
	}
	return err
}

// ReadPairs is Read with the words of the timestamps, of a bucket that has them.
// len(timestamps) is that of values. A point whose timestamp is lost to damage is left
// out. A stale marker has no timestamp.
func (r *Reader) ReadPairs(ctx context.Context, s Series, from int64, values,
	timestamps []uint64) error {
	clear(timestamps)
	return r.read(ctx, s, from, values, reading{timestamps: timestamps})
}

// reading says how a read reads.
type reading struct {
	timestamps []uint64 // takes the words of the timestamps, unless it is nil
	stats      *Stats   // takes what it took, likewise
	older      bool     // shows what lies below what was lost
}

// read is Read, as it is told.
func (r *Reader) read(ctx context.Context, s Series, from int64, dst []uint64, how reading) error {
	if len(dst) > MaxRead {
		return fmt.Errorf("a read of %d slots, the limit is %d", len(dst), MaxRead)
	}
	clear(dst)
	skip := int64(0)
	if from < 0 {
		skip = -max(from, -int64(len(dst)))
	}
	if skip < int64(len(dst)) && from+skip < s.Oldest {
		skip = min(s.Oldest-from, int64(len(dst))) // older than the TTL: hidden at once
	}
	from, dst = from+skip, dst[skip:]
	timestamps := how.timestamps
	if timestamps != nil {
		timestamps = timestamps[skip:]
	}
	if len(dst) == 0 || from > buckets.MaxSlot {
		return ctx.Err()
	}
	if err := r.o.Replay(ctx, s.ID); err != nil {
		return err
	}
	k, err := r.enter()
	if err != nil {
		return err
	}
	defer k.leave()
	known, err := k.at(ctx, s.ID, func(g *head.Group, col int) (bool, error) {
		return k.copyHead(g, col, s.ID, from, int64(len(dst)), timestamps != nil)
	})
	if err != nil || !known {
		return errors.Join(err, ctx.Err())
	}
	l := laying{
		damage:  r.o.Damage,
		version: k.version,
		bucket:  s.Bucket,
		id:      s.ID,
		from:    from,
		stats:   how.stats,
		older:   how.older,
	}
	if timestamps == nil {
		err = l.segments(ctx, dst)
	} else {
		err = l.pairs(ctx, dst, timestamps)
	}
	stale := k.layHead(from, dst, timestamps) || l.stale
	l.end(dst)
	if stale && !s.Stale {
		point.HideStale(dst)
	}
	for i := range timestamps {
		if dst[i] == point.Unset {
			timestamps[i] = point.Unset // one of a value that is lost
		}
	}
	return errors.Join(err, ctx.Err())
}

// AnyUnknown reports whether segments leave a slot of [from, past) of a series unknown,
// whatever the head has written over it. It does not hide what is older than the lifetime.
func (r *Reader) AnyUnknown(ctx context.Context, s Series, from, past int64) (bool, error) {
	words := make([]uint64, min(max(past-from, 0), MaxRead))
	k, err := r.enter()
	if err != nil {
		return true, err
	}
	defer k.leave()
	k.version = r.o.Versions.Pin()
	if from < 0 || past > math.MaxInt64-MaxRead {
		return true, nil
	}
	for ; from < past; from += int64(len(words)) {
		words = words[:min(past-from, MaxRead)]
		clear(words)
		l := laying{damage: r.o.Damage, version: k.version, bucket: s.Bucket, id: s.ID, from: from}
		if err := l.segments(ctx, words); err != nil {
			return true, err
		}
		if slices.Contains(words, point.Unknown) {
			return true, nil
		}
	}
	return false, nil
}
