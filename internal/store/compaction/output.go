package compaction

import (
	"context"
	"errors"

	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/window"
	"dalmatiner/internal/model/metric"
)

const (
	// DefaultMaxFile cuts a window and an overlay into files by series, so that
	// no writer holds the index of more than some million chunks. Chunks of
	// series that stand still have a dozen bytes: each counts with indexCost
	// more.
	DefaultMaxFile = 256 << 20
	indexCost      = 32
)

// output is a window or an overlay being written, as one file or several.
type output struct {
	ctx        context.Context // of the merge
	m          *merging
	kind       manifest.Kind
	generation uint64
	window     manifest.Range  // what every file of a window stands for
	rollups    *window.Rollups // of a window

	meta   manifest.Segment // of the open file
	w      *segment.Writer  // nil when no file is open
	names  int              // of series, in the open file
	ranges window.Ranges    // what the open file of an overlay holds
	bytes  int64            // in it, and of its index
	last   segment.Hash
}

// add adds a chunk. Chunks come by series within a range.
func (o *output) add(bucket uint64, c *window.Chunk) error {
	h := c.Hash
	// Timestamps stay in the file of their values: readPairs looks nowhere else.
	if o.w != nil && o.bytes > o.m.c.o.MaxFile &&
		metric.SeriesID(h).Value() != metric.SeriesID(o.last).Value() {
		if err := o.end(false); err != nil {
			return err
		}
	}
	if o.w == nil {
		if err := o.begin(); err != nil {
			return err
		}
	}
	if o.kind == manifest.Overlay {
		o.ranges.Add(bucket, c.Number)
	} else {
		n, err := o.rollups.Add(o.w, h, c.Number, &c.Header, c.Digest)
		if err != nil {
			return err
		}
		o.bytes += int64(n)
	}
	if err := o.m.turn.Yield(o.ctx); err != nil {
		return err
	}
	o.m.turn.Grow(indexCost)
	o.last = h
	o.bytes += int64(len(c.Data)) + indexCost
	return o.w.Add(bucket, h, c.Number, c.Points, c.Data)
}

// begin opens a file. The first one of a round takes the identities of
// everything that goes away.
func (o *output) begin() error {
	c := o.m.c
	o.meta = manifest.Segment{
		Seq:        c.o.Dir.TakeNumber(),
		Kind:       o.kind,
		Generation: o.generation,
		Purged:     o.m.purged,
	}
	w, err := c.o.Dir.Create(&o.meta)
	if err != nil {
		return err
	}
	o.w, o.bytes, o.names, o.ranges = w, 0, 0, window.Ranges{}
	w.Compress()
	w.Describe(int64(o.generation), o.window.First, uint32(o.window.Past-o.window.First))
	for _, b := range c.o.Buckets.Buckets() {
		w.AddBucket(b)
	}
	if o.m.carried {
		return nil
	}
	o.m.carried = true
	return o.carry()
}

// carry hands over the identities in what goes away that count, see counts.
func (o *output) carry() error {
	m := o.m
	// A list that grows to them would take several times their memory on the way.
	var names int64
	for _, seq := range m.plan.Remove {
		names += m.source(seq).Reader.IdentityBytes()
	}
	m.turn.Grow(names)
	o.w.Reserve(0, 0, names)
	for _, seq := range m.plan.Remove {
		seg := m.source(seq)
		err := seg.Reader.Series(func(e segment.Series) error {
			if m.counts(seg, &e) {
				o.w.AddSeries(e)
				o.names++
			}
			return nil
		})
		if segment.IsDamage(err) &&
			(!segment.ReadFailed(err) || m.source(seq).Noted.Unread >= MaxUnread) {
			m.noteDamage(map[uint64]error{seq: err}, &window.MergeLosses{})
		} else if err != nil {
			return err
		}
	}
	return nil
}

// counts reports whether the outputs take an identity of a segment over. Tombstones go along as
// long as they count or are remembered, and names as long as their series are in the index, or a
// start would find them: the log may have points in front of what took a series, and where the
// catalogue is lost a segment alone says whose they are.
func (m *merging) counts(seg *version.Segment, e *segment.Series) bool {
	known, id := m.c.o.Series, metric.SeriesID(e.Hash)
	tombs := m.tombs[e.Bucket]
	switch {
	case !m.c.living(e.Bucket):
		return e.DeleteSequence == 0 && !m.c.o.Manifest.IsDeleted(e.Bucket)
	case e.DeleteSequence > 0:
		return !m.hides(seg, e.Bucket, e.Hash) &&
			(tombs.DeleteSequence(id) == e.DeleteSequence || known.Remembers(e.Bucket, id, e.Incarnation))
	}
	in := known.Known(id) // the order matters
	if known.Going(id) {
		return true
	}
	last, deleted := tombs.Find(id)
	return in && !m.hides(seg, e.Bucket, e.Hash) && (!deleted || last.LSN < e.Since)
}

// identities returns how many identities the segments hold that go away.
func (m *merging) identities() (n int64) {
	for _, seq := range m.plan.Remove {
		n += m.source(seq).Info.Identities
	}
	return n
}

// end ends the open file, if there is one, or gives it up.
func (o *output) end(giveUp bool) error {
	w := o.w
	o.w = nil
	o.m.turn.Hold(0)
	switch {
	case w == nil:
		return nil
	case giveUp, o.bytes == 0 && o.names == 0: // or all of it was deleted
		return w.Abort()
	case o.kind == manifest.Window:
		o.meta.Ranges = []manifest.Range{o.window}
		if _, err := o.rollups.Flush(w); err != nil {
			return errors.Join(err, w.Abort())
		}
	default:
		o.meta.Ranges = o.ranges.List()
	}
	info, err := w.Seal()
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	o.meta.Points = info.Points
	o.m.out = append(o.m.out, &version.Segment{Meta: o.meta})
	o.m.writers = append(o.m.writers, w)
	return nil
}

// finish gives all files of the round their names and what they say of themselves, which is known
// when all are written. Each names all of them and what they replace, so that a start believes it
// only while all are there.
func (m *merging) finish() error {
	c := m.c
	own := manifest.Edit{
		RemoveSegments: m.plan.Remove,
		NextSeq:        c.o.Dir.NextNumber(),
		AddHoles:       hole.Join(m.holes),
	}
	for _, o := range m.out {
		o.Meta.Marks = m.marks(o)
		own.AddSegments = append(own.AddSegments, o.Meta)
	}
	state := c.o.Manifest.State()
	state.Apply(&own)
	carried := state.CarriedEdit()
	own.Live, own.LastFlush, own.LastMerged = carried.Live, carried.LastFlush, carried.LastMerged
	carried.AddSegments, carried.RemoveSegments = own.AddSegments, own.RemoveSegments
	for i, o := range m.out {
		say := &own
		if i == 0 {
			say = &carried
		}
		m.writers[i].SetState(say.Encode())
		seg, err := c.o.Dir.Finish(o.Meta, m.writers[i])
		if err != nil {
			return err
		}
		o.Meta, o.Info, o.Reader = seg.Meta, seg.Info, seg.Reader
	}
	return nil
}
