// Package inventory says what the committed segments of a data directory hold.
package inventory

import (
	"context"
	"errors"
	"slices"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/model/buckets"
)

// Segment is what one committed segment holds, of all buckets or of one.
type Segment struct {
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

// List lists the committed segments in the order of their numbers. Of the buckets that known
// returns it tells the times.
func List(ctx context.Context, fs vfs.FS, dir string,
	known func() []buckets.Info) ([]Segment, error) {
	return list(ctx, fs, dir, func(s *Segment, r *segment.Reader) error { return s.all(r, known()) })
}

// Of lists the committed segments that hold something of a bucket, and counts that only.
func Of(ctx context.Context, fs vfs.FS, dir string, bucket buckets.Info) ([]Segment, error) {
	all, err := list(ctx, fs, dir, func(s *Segment, r *segment.Reader) error {
		return s.one(r, bucket)
	})
	return slices.DeleteFunc(all, func(s Segment) bool { return s.Chunks == 0 && s.Damage == "" }), err
}

func list(ctx context.Context, fs vfs.FS, dir string, fill func(*Segment, *segment.Reader) error) (
	[]Segment, error) {
	state, _, err := manifest.Inspect(fs, dir, origin.Directory{})
	if err != nil {
		return nil, err
	}
	list := []Segment{}
	for i := range state.Segments {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m := &state.Segments[i]
		s := Segment{File: datadir.Segment(m.Kind, m.Seq)}
		err := s.read(fs, fs.PathJoin(dir, s.File), fill)
		if oserror.IsNotExist(err) {
			continue // merged meanwhile
		}
		if err != nil {
			s.Damage = err.Error()
		}
		list = append(list, s)
	}
	return list, nil
}

// read fills s by a reader of its own, so that no lock is held and nothing of the index stays
// in memory.
func (s *Segment) read(fs vfs.FS, path string, fill func(*Segment, *segment.Reader) error) error {
	r, err := segment.Open(fs, path)
	if err != nil {
		return err
	}
	defer r.Close()
	info := r.Info()
	s.Bytes, s.Points, s.Series = info.Size, info.Points, info.Series
	return fill(s, r)
}

// all counts the chunks of all buckets.
func (s *Segment) all(r *segment.Reader, known []buckets.Info) error {
	info := r.Info()
	s.Chunks, s.ChunkBytes = info.Chunks, info.DataBytes
	var errs []error
	for _, b := range known {
		var of extent
		errs = append(errs, r.Entries(b.ID, of.add))
		s.cover(&of, b.Resolution)
	}
	return errors.Join(errs...)
}

// one counts the chunks of a bucket.
func (s *Segment) one(r *segment.Reader, bucket buckets.Info) error {
	var of extent
	err := r.Entries(bucket.ID, of.add)
	s.cover(&of, bucket.Resolution)
	s.Chunks, s.ChunkBytes, s.FirstSlot, s.PastSlot = of.chunks, of.bytes, of.first*chunk.Slots,
		of.past*chunk.Slots
	return err
}

// cover makes From and To cover the chunks of a bucket.
func (s *Segment) cover(of *extent, resolution int64) {
	if of.chunks == 0 {
		return
	}
	from, to := of.first*chunk.Slots*resolution, of.past*chunk.Slots*resolution
	if s.To == 0 || from < s.From {
		s.From = from
	}
	s.To = max(s.To, to)
}

// extent is the chunks of a bucket in a segment.
type extent struct{ chunks, bytes, first, past int64 }

func (e *extent) add(number int64, length int) {
	if e.chunks == 0 || number < e.first {
		e.first = number
	}
	e.past = max(e.past, number+1)
	e.chunks++
	e.bytes += int64(length)
}
