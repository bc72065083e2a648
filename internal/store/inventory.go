package store

import (
	"context"
	"errors"

	"github.com/cockroachdb/errors/oserror"

	"dalmatiner/internal/buckets"
	"dalmatiner/internal/chunk"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/segment"
)

// SegmentStats is what one committed segment holds, of all buckets or of one.
type SegmentStats struct {
	File   string `json:"file"`   // relative to the data directory
	Bytes  int64  `json:"bytes"`  // of the file
	Points int64  `json:"points"` // of all buckets
	Series int64  `json:"series"` // of all buckets
	Chunks int64  `json:"chunks"`
	// ChunkBytes is the size of these chunks, without index and names.
	ChunkBytes int64 `json:"chunk_bytes"`
	// From and To are the first and the past time of the chunks in unix ms;
	// both are 0 when there are none of a known bucket.
	From int64 `json:"from_ms"`
	To   int64 `json:"to_ms"`
	// FirstSlot and PastSlot are of one bucket only.
	FirstSlot int64  `json:"first_slot,omitempty"`
	PastSlot  int64  `json:"past_slot,omitempty"`
	Damage    string `json:"damage,omitempty"` // why the figures are not whole
}

// Segments lists the committed segments in the order of their numbers. With
// a bucket it lists those that hold something of it, and counts that only.
func (op *Operations) Segments(ctx context.Context, bucket string) ([]SegmentStats, error) {
	s := op.s
	var only *buckets.Info
	if bucket != "" {
		b, err := s.buckets.Named(bucket)
		if err != nil {
			return nil, err
		}
		info := b.Info()
		only = &info
	}
	state, _, err := manifest.Inspect(s.o.FS, s.o.Dir)
	if err != nil {
		return nil, err
	}
	list := []SegmentStats{}
	for i := range state.Segments {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		st, err := s.segmentStats(segmentFile(&state.Segments[i]), only)
		if oserror.IsNotExist(err) {
			continue // merged meanwhile
		}
		if err != nil {
			st.Damage = err.Error()
		}
		if only == nil || st.Chunks > 0 || err != nil {
			list = append(list, st)
		}
	}
	return list, nil
}

// segmentStats reads the index of a segment with a reader of its own, so that
// no lock is held and nothing of it stays in memory.
func (s *Store) segmentStats(file string, only *buckets.Info) (SegmentStats, error) {
	st := SegmentStats{File: file}
	r, err := segment.Open(s.o.FS, s.path(file))
	if err != nil {
		return st, err
	}
	defer r.Close()
	info := r.Info()
	st.Bytes, st.Points, st.Series = info.Size, info.Points, info.Series
	buckets := []buckets.Info{}
	if only != nil {
		buckets = append(buckets, *only)
	} else {
		st.Chunks, st.ChunkBytes = info.Chunks, info.DataBytes
		buckets = s.Buckets()
	}
	var errs []error
	for _, b := range buckets {
		chunks, bytes, first, past := int64(0), int64(0), int64(0), int64(0)
		errs = append(errs, r.Entries(b.ID, func(number int64, length int) {
			if chunks == 0 || number < first {
				first = number
			}
			past = max(past, number+1)
			chunks++
			bytes += int64(length)
		}))
		if chunks == 0 {
			continue
		}
		from, to := first*chunk.Slots*b.Resolution, past*chunk.Slots*b.Resolution
		if st.To == 0 || from < st.From {
			st.From = from
		}
		st.To = max(st.To, to)
		if only != nil {
			st.Chunks, st.ChunkBytes, st.FirstSlot, st.PastSlot = chunks, bytes, first*chunk.Slots, past*chunk.Slots
		}
	}
	return st, errors.Join(errs...)
}

// Cache is a pool of the process's memory.
type Cache struct {
	Name  string `json:"name"`
	Holds string `json:"holds"`
	Bytes int64  `json:"bytes"`
	Limit int64  `json:"limit"` // 0 = only that of the process

	// Unit is what Bytes and Limit count where that is not bytes.
	Unit string `json:"unit,omitempty"`
}

// Caches lists all pools of the process's memory, and the open files.
func (op *Operations) Caches() []Cache {
	op.s.watchIndexes()
	list := []Cache{}
	for _, p := range op.s.memory.Pools() {
		list = append(list, Cache{Name: p.Name, Holds: p.Holds, Bytes: p.Use, Limit: p.Limit})
	}
	f := op.s.files.Stats()
	list = append(list, Cache{Name: "segment-files", Holds: "open files of segments; the one not read for longest is closed at the limit",
		Bytes: f.Open, Limit: f.Limit, Unit: "files"})
	return list
}
