package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dalmatiner/internal/chunk"
	"dalmatiner/internal/hole"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/segment"
	"dalmatiner/internal/version"
	"dalmatiner/internal/window"
)

// LostBlocks is the account's cause for points in damaged blocks of a segment
// that was merged.
const LostBlocks = "block_damaged"

const (
	// closeAfter is how long after its end a window is written: late points of
	// an hour then need no overlay.
	closeAfter = time.Hour

	// maxUnread is how many merges fail because the device cannot read a segment
	// before what it cannot read counts as damaged: one bad sector must not keep
	// all else from being merged, and what has expired on the disk. With a merge
	// after each flush these are some 100 minutes.
	maxUnread = 8

	// maxRounds bounds one call: what a round leaves to do is for the next
	// flush. Two rounds are what a day that closes takes.
	maxRounds = 16
)

// MergeResult says what a merge did.
type MergeResult struct {
	Windows  int // written
	Overlays int // written, 0 or 1
	Removed  int // segments
	Bytes    int64
	Took     time.Duration
}

// Merge merges what is closed until nothing is left to do. Segments that hold
// anything of deleted series are rewritten without, and series of which nothing
// is left go.
func (s *Store) Merge(ctx context.Context) (MergeResult, error) {
	if err := s.awaitReplay(ctx); err != nil {
		return MergeResult{}, err
	}
	s.mergeMu.Lock()
	defer s.mergeMu.Unlock()
	sum, err := s.merge(ctx, true)
	if err == nil {
		err = s.expire(ctx, s.idle())
	}
	return sum, err
}

// merge is what Merge does, and the background without all: it leaves what is
// not worth its while.
func (s *Store) merge(ctx context.Context, all bool) (MergeResult, error) {
	start := s.o.Now()
	var sum MergeResult
	for round := 0; ; round++ {
		r, err := s.mergeRound(ctx, all)
		sum.Windows += r.Windows
		sum.Overlays += r.Overlays
		sum.Removed += r.Removed
		sum.Bytes += r.Bytes
		sum.Took = s.o.Now().Sub(start)
		if err != nil {
			return sum, err
		}
		if r.Windows+r.Overlays+r.Removed == 0 || round == maxRounds {
			return sum, errors.Join(s.settleTombstones(), s.endHoles(ctx))
		}
	}
}

// merging is a round of merges under way.
type merging struct {
	s       *Store
	plan    window.Plan
	sources []*version.Segment // all segments when the round began
	out     []*version.Segment
	writers []*segment.Writer // of them, sealed
	carried bool              // the identities of what goes away are in an output
	late    map[uint64]map[manifest.Range]int64
	turn    time.Time // since when it works without a look at who waits

	clean   uint64                        // the outputs hold nothing that was deleted below
	tombs   map[uint64]version.Tombstones // of the buckets that have any, when the round began
	newest  uint64                        // their highest below
	holes   []hole.Hole                   // that the round found
	hidden  map[uint64]uint64             // points that holes kept out, by the lost file that made the hole
	dropped int64                         // points of deleted series that the outputs do without
	buckets map[uint64]window.Bucket
	expired expiring
}

// mergeRound makes one plan and does what it says. Everything is committed in
// one edit: after a crash before it the outputs are strays and are removed.
func (s *Store) mergeRound(ctx context.Context, all bool) (MergeResult, error) {
	m, err := s.beginMerge()
	if err != nil {
		return MergeResult{}, err
	}
	purge, err := m.purge(all)
	if err != nil {
		return MergeResult{}, fmt.Errorf("merge: %w", err)
	}
	metas := make([]manifest.Segment, len(m.sources))
	for i, seg := range m.sources {
		metas[i] = seg.Meta
	}
	short := m.makePlan(metas, purge)
	if m.plan.Empty() {
		return MergeResult{}, short
	}
	err = m.write(ctx)
	if err == nil {
		// What the outputs do without was deleted, or got a shorter lifetime, by records
		// that may be in memory only. A power cut must not undo these and keep the outputs.
		err = s.log.Sync()
	}
	if err == nil {
		err = m.finish()
	}
	if err == nil {
		err = m.commit()
	}
	if err != nil {
		m.noteUnread(err)
		return MergeResult{}, fmt.Errorf("merge: %w", errors.Join(err, m.giveUp()))
	}
	r := MergeResult{Windows: len(m.plan.Windows), Removed: len(m.plan.Remove)}
	if len(m.plan.Overlay) > 0 {
		r.Overlays = 1
	}
	for _, o := range m.out {
		r.Bytes += o.Info.Size
	}
	s.counters.merges.Add(1)
	s.counters.mergedBytes.Add(r.Bytes)
	s.counters.pointsDeleted.Add(m.dropped)
	return r, s.expire(ctx, m.expired)
}

// makePlan makes the plan. Where the disk has no room for it, what is gone
// altogether is still removed, and the error says what is missing.
func (m *merging) makePlan(metas []manifest.Segment, purge map[uint64]bool) error {
	buckets := m.s.mergeBuckets(metas)
	m.buckets = buckets
	m.plan = window.Make(metas, buckets, m.lateBytes, purge)
	err := m.checkSpace()
	if err == nil {
		return nil
	}
	metas = slices.DeleteFunc(metas, func(seg manifest.Segment) bool {
		return seg.Kind == manifest.Flush || len(seg.Ranges) == 0 || slices.ContainsFunc(seg.Ranges, func(r manifest.Range) bool {
			b, ok := buckets[r.Bucket]
			return ok && r.Past > b.ExpiredBefore
		})
	})
	m.plan = window.Make(metas, buckets, m.lateBytes, nil)
	return err
}

// checkSpace keeps merges off the space that storage.min_free holds for the
// log: a log that cannot be written ends the node.
func (m *merging) checkSpace() error {
	s := m.s
	free, known := s.freeSpace()
	if !known {
		return nil
	}
	var need int64 // at most: both copies are there until the commit
	for _, seg := range m.sources {
		reads := slices.ContainsFunc(m.plan.Windows, func(r manifest.Range) bool { return seg.Overlaps(r) }) ||
			slices.ContainsFunc(m.plan.Overlay, func(p window.Part) bool { return slices.Contains(p.From, seg.Meta.Seq) })
		if reads {
			need += seg.Info.Size
		}
	}
	if need > 0 && free-need < s.o.MinFree {
		return fmt.Errorf("merge: it needs up to %d bytes, %d are free and storage.min_free is %d: make space, or shorten a TTL",
			need, free, s.o.MinFree)
	}
	return nil
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
		if m.s.failed() == nil {
			err = errors.Join(err, m.s.dir.Discard(&o.Meta))
		}
	}
	return err
}

// mergeBuckets says of every bucket what is closed and what has expired. A
// window is closed some time after its end, and when the bucket's data has gone
// on past it: a backfill closes its windows as it goes.
func (s *Store) mergeBuckets(segments []manifest.Segment) map[uint64]window.Bucket {
	newest := make(map[uint64]int64)
	for i := range segments {
		for _, r := range segments[i].Ranges {
			newest[r.Bucket] = max(newest[r.Bucket], r.Past)
		}
	}
	out := make(map[uint64]window.Bucket)
	now := s.clock.Unix() / int64(time.Millisecond)
	for _, b := range s.buckets.All() {
		perChunk := b.info.Resolution * chunk.Slots
		closed := min((now-closeAfter.Milliseconds())/perChunk, newest[b.info.ID]-window.Small)
		w := window.Bucket{ClosedBefore: max(closed, 0)}
		if ttl := b.ttl.Load(); ttl > 0 {
			w.ExpiredBefore = max((now/b.info.Resolution-ttl)/chunk.Slots, 0)
		}
		out[b.info.ID] = w
	}
	return out
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
				m.late[seq][manifest.Range{Bucket: b.Bucket, First: first, Past: first + window.Small}] += int64(n)
			})
			if err != nil {
				m.s.reportDamage("segment "+seg.Name(), err)
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
	out := &output{ctx: ctx, m: m, kind: manifest.Window, generation: m.plan.Generation, window: r, levels: window.NewRollups(r)}
	merger.Holes = m.s.holesOf(r.Bucket)
	damaged, err := merger.Merge(ctx, r.Bucket, r.First, r.Past, sources,
		func(c *window.Chunk) error { return out.add(r.Bucket, c) })
	m.noteDamage(damaged, &merger.Lost)
	return errors.Join(err, out.end(err != nil))
}

// noteDamage names what a merge met, once a segment, and marks the segment. What it
// hides goes with the commit.
func (m *merging) noteDamage(damaged map[uint64]error, lost *window.Lost) {
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
		seg := m.source(seq)
		if !seg.Noted.Damaged {
			m.s.reportDamage("segment "+seg.Name(), err)
			m.s.dir.MarkDamaged(seg)
		}
	}
}

// noteUnread counts a merge that failed for the segments that the device could
// not read.
func (m *merging) noteUnread(err error) {
	for _, seg := range m.sources {
		if slices.ContainsFunc(segment.Damages(err), func(d *segment.DamageError) bool {
			return d.Cause != nil && d.File == m.s.path(seg.Name())
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
		merger.Holes = m.s.holesOf(part.Bucket)
		damaged, err = merger.Merge(ctx, part.Bucket, part.First, part.Past, sources,
			func(c *window.Chunk) error { return out.add(part.Bucket, c) })
		m.noteDamage(damaged, &merger.Lost)
	}
	return errors.Join(err, out.end(err != nil))
}

// commit makes the round permanent, moves the readers over and removes what is
// not needed any more. A segment with damage is not deleted but set aside.
func (m *merging) commit() error {
	s := m.s
	e := manifest.Edit{RemoveSegments: m.plan.Remove, NextSeq: s.dir.NextNumber(), AddHoles: hole.Join(m.holes), EndHoles: s.outlivedHoles()}
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
	if err := s.commitEdit(e); err != nil {
		return err
	}
	m.loseHidden()
	s.o.flushStep(StepMerged)
	gone := func(seg *version.Segment) bool { return slices.Contains(m.plan.Remove, seg.Meta.Seq) }
	for _, seg := range m.sources {
		if gone(seg) && seg.Noted.Damaged {
			m.countLost(seg)
		}
	}
	s.dir.Dropped(m.sources, gone)
	s.versions.Publish(func(v *version.Version) {
		v.Drop(gone)
		v.Add(m.out...)
		s.showHoles(v)
		v.Prune(func(bucket uint64) bool { return s.buckets.ID(bucket) != nil })
	})
	return nil
}

// countLost counts the points of a segment that cannot be read: at most so
// many are lost, another segment may hold some of them.
func (m *merging) countLost(seg *version.Segment) {
	lost := seg.Info.Points
	var words [chunk.Slots]uint64
	timestamps, err := seg.Reader.Timestamps()
	err = errors.Join(err, seg.Reader.Each(func(bucket uint64, series segment.Hash, _ int64, data []byte) error {
		h, err := chunk.ParseHeader(data)
		if err == nil && !timestamps.Is(bucket, series) && chunk.DecodeRange(words[:], data, 0) == nil {
			lost -= int64(h.Count)
		}
		return nil // what does not decode is counted
	}))
	if err != nil && !segment.IsDamage(err) {
		m.s.o.Logger.Warn("a damaged segment could not be read to its end: the count of its lost points is too high",
			"segment", seg.Name(), "err", err)
	}
	if lost > 0 {
		m.s.account.Lose(LostBlocks, uint64(lost))
	}
}

// mergeLoop merges in the background after flushes.
func (s *Store) mergeLoop() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-s.stop
		cancel()
	}()
	for {
		select {
		case <-s.stop:
			return
		case <-s.mergeWant:
		}
		s.mergeMu.Lock()
		r, err := s.merge(ctx, false)
		s.mergeMu.Unlock()
		if err != nil && ctx.Err() == nil {
			s.o.Logger.Error("merge failed; it is tried again after the next flush", "err", err)
		} else if r.Removed > 0 {
			s.o.Logger.Debug("merged", "windows", r.Windows, "overlays", r.Overlays, "removed", r.Removed, "bytes", r.Bytes, "took", r.Took)
		}
	}
}

func (s *Store) wantMerge() {
	select {
	case s.mergeWant <- struct{}{}:
	default: // one is already asked for
	}
}
