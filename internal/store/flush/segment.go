package flush

import (
	"errors"
	"slices"

	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/window"
	"dalmatiner/internal/write/columns"
)

// write does steps 1 and 2. It returns nil when no chunk, no name and no tombstone
// is to be written.
func (f *Flusher) write(u *unit, seq uint64) (*version.Segment, error) {
	if err := f.o.Log.Sync(); err != nil {
		return nil, err
	}
	f.o.Step(StepLogSynced)
	empty := len(u.changes.Tombstones) == 0 && !slices.ContainsFunc(u.changes.Catalogue, columns.Names)
	if empty && u.captures.Empty() && len(u.adopted) == 0 {
		return nil, nil
	}
	m := manifest.Segment{Seq: seq, Kind: manifest.Flush, Generation: seq}
	w, err := f.o.Dir.Create(&m)
	if err != nil {
		return nil, err
	}
	if err = f.fillSegment(u, w, &m); err != nil {
		_ = w.Abort() // the file is given up; a leftover is removed at the next start
		return nil, err
	}
	w.Describe(int64(seq), 0, 0)
	w.SetState(f.state(u, &m))
	seg, err := f.o.Dir.Finish(m, w)
	if err != nil {
		return nil, errors.Join(err, f.o.Dir.Discard(&m))
	}
	f.o.Step(StepSegmentSynced)
	return seg, nil
}

// fillSegment writes what was captured and says in m what it was.
func (f *Flusher) fillSegment(u *unit, w *segment.Writer, m *manifest.Segment) error {
	var ranges window.Ranges
	var marks hole.Builder
	for _, b := range u.buckets {
		w.AddBucket(b)
	}
	u.reserve(w)
	for _, c := range u.changes.Catalogue {
		if columns.Names(c) {
			w.AddSeries(c.Series)
		}
	}
	for i := range u.changes.Tombstones {
		addTombstones(w, &u.changes.Tombstones[i])
	}
	// In the order of the segment's index: the chunks of a partition, and those
	// of a series, then lie together in the file.
	var encoder Encoder
	add := func(e *Chunk) error {
		ranges.Add(e.Bucket, e.Number)
		marks.Add(e.Bucket, hole.PrefixOf(e.ID), e.Number, e.Marked)
		return w.Add(e.Bucket, segment.Hash(e.ID), e.Number, int(e.Points), e.Data)
	}
	if err := encoder.Each(&u.captures, f.o.ShareSize, add); err != nil {
		return err
	}
	for i := range u.adopted {
		if err := add(&u.adopted[i]); err != nil {
			return err
		}
	}
	m.Ranges = ranges.List()
	m.Marks = version.MarksOver(marks.Marks().List, m, f.o.Versions.Latest().Segments)
	return nil
}

// reserve makes room in the writer for what the flush is about to add: lists that
// grow to it would take several times its memory on the way.
func (u *unit) reserve(w *segment.Writer) {
	var chunks, series, names int64
	for i := range u.captures.List {
		c := &u.captures.List[i]
		n := c.Chunks()
		chunks += n
		series += min(n, int64(c.Columns().Len()))
	}
	chunks += int64(len(u.adopted))
	for i := range u.changes.Catalogue {
		if c := &u.changes.Catalogue[i]; columns.Names(*c) {
			names += segment.SeriesSize(&c.Series)
		}
	}
	w.Reserve(chunks, series, names)
}

// addTombstones names the deleted series in a segment as well: the MANIFEST may
// lose the edit that has them.
func addTombstones(w *segment.Writer, t *manifest.Tombstones) {
	for i := range t.Series {
		d := &t.Series[i]
		w.AddSeries(segment.Series{
			Bucket:         t.Bucket,
			Hash:           d.Hash,
			Group:          d.Group,
			Column:         uint16(d.Column),
			Since:          t.LSN,
			DeleteSequence: t.DeleteSequence,
			Incarnation:    t.Incarnation,
		})
	}
}

// state is what a flush says of itself in its segment: what the MANIFEST will say
// of it, so that both are not lost together.
func (f *Flusher) state(u *unit, m *manifest.Segment) []byte {
	e := f.edit(u, m)
	state := f.o.Manifest.State()
	state.Apply(&e)
	carried := state.CarriedEdit()
	carried.AddSegments, carried.Tombstones = e.AddSegments, u.changes.Tombstones
	return carried.Encode()
}
