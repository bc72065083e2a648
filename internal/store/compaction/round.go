package compaction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/window"
	"dalmatiner/internal/host/background"
)

// MaxUnread is how many merges fail because the device cannot read a segment
// before what it cannot read counts as damaged: one bad sector must not keep
// all else from being merged, and what has expired on the disk. With a merge
// after each flush these are some 100 minutes.
const MaxUnread = 8

// merging is a round of merges under way.
type merging struct {
	c       *Compactor
	plan    window.Plan
	sources []*version.Segment // all segments when the round began
	out     []*version.Segment
	writers []*segment.Writer // of them, sealed
	carried bool              // the identities of what goes away are in an output
	late    map[uint64]map[manifest.Range]int64
	turn    *background.Turn

	purged uint64                        // the outputs hold nothing that was deleted below
	tombs  map[uint64]version.Tombstones // of the buckets that have any, when the round began
	newest uint64                        // their highest below
	holes  []hole.Hole                   // that the round found
	met    map[uint64]bool               // sources in which it met damage
	// points that holes kept out, by the lost file that made the hole
	hidden  map[uint64]uint64
	dropped int64 // points of deleted series that the outputs do without
	buckets map[uint64]window.Bucket
	expired expiring
}

// round makes one plan and does what it says. Everything is committed in
// one edit: after a crash before it the outputs are strays and are removed.
func (c *Compactor) round(ctx context.Context, all bool) (Result, error) {
	m, err := c.begin()
	if err != nil {
		return Result{}, err
	}
	defer m.turn.End()
	short, err := m.makePlan(all)
	if err != nil {
		return Result{}, fmt.Errorf("merge: %w", err)
	}
	if m.plan.Empty() {
		return Result{}, short
	}
	err = m.write(ctx)
	if err == nil {
		// What the outputs do without was deleted, or got a shorter lifetime, by records
		// that may be in memory only. A power cut must not undo these and keep the outputs.
		err = c.o.Sync()
	}
	if err == nil {
		err = m.finish()
	}
	if err == nil {
		err = m.commit()
	}
	if err != nil {
		m.noteUnread(err)
		return Result{}, fmt.Errorf("merge: %w", errors.Join(err, m.giveUp()))
	}
	r := Result{Windows: len(m.plan.Windows), Removed: len(m.plan.Remove)}
	if len(m.plan.Overlay) > 0 {
		r.Overlays = 1
	}
	for _, o := range m.out {
		r.Bytes += o.Info.Size
	}
	c.merges.Add(1)
	c.mergedBytes.Add(r.Bytes)
	c.pointsDeleted.Add(m.dropped)
	return r, c.expire(ctx, m.expired)
}

// begin takes what a round of merges works on in one moment between two
// deletions: what it writes holds nothing of the series that were deleted
// before, and is hidden by the deletions behind it.
func (c *Compactor) begin() (*merging, error) {
	c.o.Gate.Lock()
	defer c.o.Gate.Unlock()
	if c.o.Gate.IsClosed() {
		return nil, version.ErrClosed
	}
	now := c.o.Versions.Latest()
	m := &merging{c: c, turn: c.work.Begin(), late: map[uint64]map[manifest.Range]int64{},
		met: map[uint64]bool{}, purged: c.o.Dir.NextNumber(),
		tombs: map[uint64]version.Tombstones{}, sources: slices.Clone(now.Segments)}
	for _, b := range c.o.Buckets.Buckets() {
		if t := now.Tombstones(b.ID); len(t) > 0 {
			m.tombs[b.ID] = t
			for i := range t {
				m.newest = max(m.newest, t[i].DeleteSequence)
			}
		}
	}
	return m, nil
}

// makePlan makes the plan. short says for what of it the disk has no room.
func (m *merging) makePlan(all bool) (short, err error) {
	purge, err := m.purge(all)
	if err != nil {
		return nil, err
	}
	s := state{
		now:     m.c.o.Clock.Unix() / int64(time.Millisecond),
		buckets: m.c.o.Buckets.Buckets(),
		late:    m.lateBytes,
		purge:   purge,
		minFree: m.c.o.MinFree,
	}
	for _, seg := range m.sources {
		s.segments = append(s.segments, seg.Meta)
	}
	s.free, s.known = m.c.o.Free()
	m.plan, m.buckets, short = s.plan()
	return short, nil
}

// giveUp removes the outputs of a merge that failed: on a full disk every
// further try would leave more of them. After a failed commit they stay,
// because the MANIFEST may name them.
func (m *merging) giveUp() (err error) {
	for i, o := range m.out {
		if o.Reader != nil {
			err = errors.Join(err, o.Reader.Close())
		} else {
			_ = m.writers[i].Abort() // the file is given up
		}
		if m.c.o.Failed() == nil {
			err = errors.Join(err, m.c.o.Dir.Discard(&o.Meta))
		}
	}
	return err
}

// lateBytes returns what a segment holds of a window, from its index.
func (m *merging) lateBytes(seq uint64, r manifest.Range) int64 {
	seg := m.source(seq)
	if !seg.Overlaps(r) {
		return 0 // without a look at its index
	}
	if m.late[seq] == nil {
		m.late[seq] = make(map[manifest.Range]int64)
		for _, b := range seg.Meta.Ranges {
			err := seg.Reader.Entries(b.Bucket, func(number int64, n int) {
				first := number - number%window.Small
				m.late[seq][manifest.Range{
					Bucket: b.Bucket,
					First:  first,
					Past:   first + window.Small,
				}] += int64(n)
			})
			if err != nil {
				m.c.o.Damage.Report("segment "+seg.Name(), err)
			}
		}
	}
	var n int64
	for first := r.First; first < r.Past; first += window.Small {
		n += m.late[seq][manifest.Range{Bucket: r.Bucket, First: first, Past: first + window.Small}]
	}
	return n
}

func (m *merging) source(seq uint64) *version.Segment {
	i := slices.IndexFunc(m.sources, func(s *version.Segment) bool { return s.Meta.Seq == seq })
	return m.sources[i]
}

// write writes all outputs of the plan.
func (m *merging) write(ctx context.Context) error {
	var merger window.Merger
	for _, r := range m.plan.Windows {
		if err := m.window(ctx, &merger, r); err != nil {
			return err
		}
	}
	if len(m.plan.Overlay) > 0 || !m.carried && m.identities() > 0 {
		return m.overlay(ctx, &merger)
	}
	return nil
}

// window writes one window, cut into files by series.
func (m *merging) window(ctx context.Context, merger *window.Merger, r manifest.Range) error {
	var sources []window.Source
	for _, seg := range m.sources {
		if seg.Overlaps(r) {
			sources = append(sources, m.mergeSource(seg, r.Bucket))
		}
	}
	out := &output{
		ctx:        ctx,
		m:          m,
		kind:       manifest.Window,
		generation: m.plan.Generation,
		window:     r,
		rollups:    window.NewRollups(r),
	}
	merger.Holes = m.c.holesOf(r.Bucket)
	damaged, err := merger.Merge(ctx, r.Bucket, r.First, r.Past, sources,
		func(c *window.Chunk) error { return out.add(r.Bucket, c) })
	m.noteDamage(damaged, &merger.Lost)
	return errors.Join(err, out.end(err != nil))
}

// noteDamage names what a merge met, once a segment, and marks the segment. What it
// hides goes with the commit.
func (m *merging) noteDamage(damaged map[uint64]error, lost *window.MergeLosses) {
	m.holes = append(m.holes, lost.Holes...)
	for seq := range lost.Covered {
		m.source(seq).Noted.Covered = true
	}
	for source, points := range lost.Hidden {
		if m.hidden == nil {
			m.hidden = make(map[uint64]uint64)
		}
		m.hidden[source] += points
	}
	for seq, err := range damaged {
		m.met[seq] = true
		seg := m.source(seq)
		if !seg.Noted.Damaged {
			m.c.o.Damage.Report("segment "+seg.Name(), err)
			m.c.o.Dir.MarkDamaged(seg)
		}
	}
}

// noteUnread counts a merge that failed for the segments that the device could
// not read.
func (m *merging) noteUnread(err error) {
	for _, seg := range m.sources {
		if slices.ContainsFunc(segment.Damages(err), func(d *segment.DamageError) bool {
			return d.Cause != nil && d.File == m.c.o.Dir.Path(&seg.Meta)
		}) {
			seg.Noted.Unread++
		}
	}
}

// overlay writes the overlay of the plan. It takes the identities along where
// no window could.
func (m *merging) overlay(ctx context.Context, merger *window.Merger) error {
	out := &output{ctx: ctx, m: m, kind: manifest.Overlay, generation: m.plan.OverlayGeneration}
	err := out.begin() // it may be written for the identities alone
	for _, part := range m.plan.Overlay {
		if err != nil {
			break
		}
		var sources []window.Source
		for _, seq := range part.From {
			sources = append(sources, m.mergeSource(m.source(seq), part.Bucket))
		}
		var damaged map[uint64]error
		merger.Holes = m.c.holesOf(part.Bucket)
		damaged, err = merger.Merge(ctx, part.Bucket, part.First, part.Past, sources,
			func(c *window.Chunk) error { return out.add(part.Bucket, c) })
		m.noteDamage(damaged, &merger.Lost)
	}
	return errors.Join(err, out.end(err != nil))
}

// commit makes the round permanent, moves the readers over and removes what is
// not needed any more. A segment with damage is not deleted but set aside.
func (m *merging) commit() error {
	c := m.c
	e := manifest.Edit{
		RemoveSegments: m.plan.Remove,
		NextSeq:        c.o.Dir.NextNumber(),
		AddHoles:       hole.Join(m.holes),
		EndHoles:       c.outlivedHoles(),
	}
	m.expired = expiring{}
	for _, seq := range m.plan.Remove {
		if err := m.noteExpired(m.source(seq)); err != nil {
			return err
		}
	}
	for _, o := range m.out {
		e.AddSegments = append(e.AddSegments, o.Meta)
	}
	m.noteHidden(&e)
	if err := c.o.Commit(e); err != nil {
		return err
	}
	m.loseHidden()
	c.o.Merged()
	gone := func(seg *version.Segment) bool { return slices.Contains(m.plan.Remove, seg.Meta.Seq) }
	for _, seg := range m.sources {
		if gone(seg) && seg.Noted.Damaged {
			m.countLost(seg)
		}
	}
	c.o.Dir.NoteDropped(m.sources, gone)
	c.o.Versions.Publish(func(v *version.Version) {
		v.Drop(gone)
		v.Add(m.out...)
		c.showHoles(v)
		m.noteChanges(v)
		v.Prune(c.living)
	})
	return nil
}

// noteChanges notes what the round changed for readers: damaged sources may have had readable
// aggregates of points that the outputs do without, and what has expired may be within a lifetime
// that was set meanwhile.
func (m *merging) noteChanges(v *version.Version) {
	for id, b := range m.buckets {
		v.Expire(id, b.ExpiredBefore*chunk.Slots)
	}
	for _, seg := range m.sources {
		if m.met[seg.Meta.Seq] || seg.Noted.Damaged && slices.Contains(m.plan.Remove, seg.Meta.Seq) {
			for _, r := range seg.Meta.Ranges {
				v.Change(r.Bucket)
			}
		}
	}
}

// living reports whether a bucket is not deleted.
func (c *Compactor) living(bucket uint64) bool {
	_, ok := c.o.Buckets.BucketByID(bucket)
	return ok
}

// countLost counts the points of a segment that cannot be read: at most so
// many are lost, another segment may hold some of them.
func (m *merging) countLost(seg *version.Segment) {
	lost := seg.Info.Points
	var words [chunk.Slots]uint64
	timestamps, err := seg.Reader.Timestamps()
	err = errors.Join(err,
		seg.Reader.Each(func(bucket uint64, series segment.Hash, _ int64, data []byte) error {
			n, err := chunk.Count(data)
			if err == nil && !timestamps.Is(bucket, series) && chunk.DecodeRange(words[:], data, 0) == nil {
				lost -= int64(n)
			}
			return nil // what does not decode is counted
		}))
	if err != nil && !segment.IsDamage(err) {
		m.c.o.Logger.Warn("a damaged segment could not be read to its end: the count of its lost "+
			"points is too high",
			"segment", seg.Name(), "err", err)
	}
	if lost > 0 {
		m.c.o.Account.Lose(LostBlocks, uint64(lost))
	}
}
