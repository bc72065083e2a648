package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dalmatiner/internal/buckets"
	"dalmatiner/internal/columns"
	"dalmatiner/internal/datadir"
	"dalmatiner/internal/flush"
	"dalmatiner/internal/head"
	"dalmatiner/internal/hole"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/segment"
	"dalmatiner/internal/version"
	"dalmatiner/internal/wal"
	"dalmatiner/internal/window"
)

// The numbered steps of a flush (design, section 4). Options.flushStep is
// called after each.
const (
	StepCaptured      = 0 // what is written is taken from the head, and writes go on
	StepLogSynced     = 1
	StepSegmentSynced = 2 // written, fsynced, renamed, directory fsynced
	StepCatalogue     = 3
	StepCommitted     = 4 // the MANIFEST edit is on disk: the commit point
	StepLogTrimmed    = 5

	// StepMerged is called after the commit of a merge.
	StepMerged = 6
)

// FlushResult says what a flush wrote.
type FlushResult struct {
	Segment string // "" when there was nothing to write
	Bytes   int64
	Points  int64
	Series  int64
	Took    time.Duration
}

// Flush seals every block and flushes: afterwards all points received before
// the call are in segments. After Close the error is ErrClosed.
func (s *Store) Flush(ctx context.Context) (FlushResult, error) {
	if err := s.awaitReplay(ctx); err != nil {
		return FlushResult{}, err
	}
	return s.flushAll(ctx)
}

// flushAll is Flush for what is in the head.
func (s *Store) flushAll(ctx context.Context) (FlushResult, error) {
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	if s.flushMu.Closed() {
		return FlushResult{}, ErrClosed
	}
	rarely := s.flushesRarely()
	for i, g := range s.columns.Groups.All() {
		closed := g.CloseBlocks(func(uint64, int64, int64) bool { return true })
		s.sealers.Applied(g, head.Applied{Closed: closed})
		if rarely && i%trimGroups == 0 {
			s.arenas.Trim()
		}
	}
	return s.flush(ctx)
}

// flushSealed writes what is sealed.
func (s *Store) flushSealed() error {
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	_, err := s.flush(context.Background())
	return err
}

// flushing is a flush under way.
type flushing struct {
	rarely          bool // see flushesRarely
	captures        flush.Captures
	base            wal.LSN // records below were in the head before the first capture
	replayPositions flush.Positions
	account         []byte
	lsn             wal.LSN // the account holds all records below
	changes         columns.Changes
	buckets         []buckets.Info
	highest         []manifest.Highest // slots that are flushed with it

	forget uint64 // deletions up to this clock, 0 for none,
	early  int64  // of so many series before their time
}

// flush writes what is sealed. On an error before the commit point everything
// is as it was and the next flush tries again with new files; an error of the
// log or the MANIFEST ends the store. flushMu is held.
func (s *Store) flush(ctx context.Context) (FlushResult, error) {
	if err := s.pressure.Failed(); err != nil {
		return FlushResult{}, err
	}
	if err := ctx.Err(); err != nil {
		return FlushResult{}, err
	}
	start := s.o.Now()
	err := s.pressure.CheckFlush()
	if err == nil {
		err = s.ledger.CheckRoom() // for refusals, which the flush enters into the account
	}
	if err != nil {
		s.pressure.SetFlushFailed(true)
		return FlushResult{}, err
	}
	f := s.capture()
	seq := s.dir.TakeNumber()
	seg, err := s.write(f, seq)
	if err == nil {
		if err = s.putCatalogue(f); err != nil && seg != nil {
			err = errors.Join(err, seg.Reader.Close(), s.dir.Discard(&seg.Meta))
		}
	}
	if err != nil {
		s.abort(f)
		s.pressure.SetFlushFailed(true)
		return FlushResult{}, fmt.Errorf("flush %d: %w", seq, err)
	}
	if err := s.commitFlush(f, seg); err != nil {
		return FlushResult{}, s.uncommitted(f, seg, err)
	}
	s.publish(f, seg)
	took := s.o.Now().Sub(start)
	s.lastFlush.Store(s.clock.Steady())
	s.pressure.SetFlushFailed(false)
	s.counters.flushes.Add(1)
	s.counters.flushNanos.Add(int64(took))
	s.o.FlushTook(took)
	r := FlushResult{Took: took}
	if seg != nil {
		r.Segment, r.Bytes, r.Points, r.Series = seg.Name(), seg.Info.Size, seg.Info.Points, seg.Info.Series
		s.counters.flushedBytes.Add(r.Bytes)
		s.counters.flushedPoints.Add(r.Points)
	}
	s.o.Logger.Debug("flushed", "segment", r.Segment, "bytes", r.Bytes, "points", r.Points, "took", took)
	return r, nil
}

// capture takes what is to be written: first the groups' sealed blocks and late
// points, then, in one moment, the account, the new series and the end of the
// log, or of what is counted of it. A series defined after that moment has its
// record above f.lsn, which stays in the log.
func (s *Store) capture() *flushing {
	f := &flushing{base: s.headEnd(), rarely: s.flushesRarely()}
	for i, g := range s.columns.Groups.All() {
		if f.rarely && i%trimGroups == 0 {
			s.arenas.Trim() // the sealed blocks of the next ones take as much as these give back
		}
		c := g.BeginFlush()
		f.settle(s.buckets.ID(g.Bucket), g, &c)
		if !c.Empty() || c.ReplayPosition != 0 {
			f.captures.Add(g, &c)
		}
	}
	if f.replayPositions = s.replayPositions; !s.keepReplayPositions.Load() {
		f.replayPositions = s.replayPositions.Next(&f.captures, f.base)
	}
	s.replayPositions = f.replayPositions
	if f.rarely {
		s.arenas.Trim()
	}
	s.o.flushStep(StepCaptured)
	s.columns.Unflushed.DropGone()
	s.ledger.Snapshot(func() {
		// What is replayed for its points alone was in the account before.
		f.lsn = max(s.accountEnd(), s.accounted)
		f.account = s.ownerless.Snapshot(&f.replayPositions, s.lostLog.CountedAgain(&f.replayPositions))
		f.changes = s.columns.Unflushed.Take(s.needed.Load())
		f.forget, f.early = s.outlived(version.CountDeleted(f.changes.Tombstones))
		f.buckets = s.Buckets()
	})
	return f
}

// abort puts back what capture took.
func (s *Store) abort(f *flushing) {
	for _, g := range f.captures.Groups {
		g.AbortFlush()
	}
	s.columns.Unflushed.PutBack(f.changes)
}

// write does steps 1 and 2. It returns nil when no chunk, no name and no tombstone
// is to be written.
func (s *Store) write(f *flushing, seq uint64) (*version.Segment, error) {
	if err := s.log.Sync(); err != nil {
		return nil, err
	}
	s.o.flushStep(StepLogSynced)
	empty := len(f.changes.Tombstones) == 0 && !slices.ContainsFunc(f.changes.Catalogue, columns.Names)
	if empty && f.captures.Empty() {
		return nil, nil
	}
	m := manifest.Segment{Seq: seq, Kind: manifest.Flush, Generation: seq}
	w, err := s.dir.Create(&m)
	if err != nil {
		return nil, err
	}
	if err = s.fillSegment(f, w, &m); err != nil {
		_ = w.Abort() // the file is given up; a leftover is removed at the next start
		return nil, err
	}
	w.Describe(int64(seq), 0, 0)
	w.SetState(s.flushState(f, &m))
	seg, err := s.dir.Finish(m, w)
	if err != nil {
		return nil, errors.Join(err, s.dir.Discard(&m))
	}
	s.o.flushStep(StepSegmentSynced)
	return seg, nil
}

// fillSegment writes what was captured and says in m what it was.
func (s *Store) fillSegment(f *flushing, w *segment.Writer, m *manifest.Segment) error {
	var ranges window.Ranges
	var marks hole.Builder
	addBuckets(w, f.buckets)
	f.reserve(w)
	for _, c := range f.changes.Catalogue {
		if columns.Names(c) {
			w.AddSeries(c.Series)
		}
	}
	for i := range f.changes.Tombstones {
		addTombstones(w, &f.changes.Tombstones[i])
	}
	// In the order of the segment's index: the chunks of a partition, and those
	// of a series, then lie together in the file.
	var encoder flush.Encoder
	err := encoder.Each(&f.captures, flush.ShareSize, func(e *flush.Chunk) error {
		ranges.Add(e.Bucket, e.Number)
		marks.Add(e.Bucket, hole.PrefixOf(e.ID), e.Number, e.Marked)
		return w.Add(e.Bucket, segment.Hash(e.ID), e.Number, int(e.Points), e.Data)
	})
	if err != nil {
		return err
	}
	m.Ranges = ranges.List()
	m.Marks = version.MarksOver(marks.Marks().List, m, s.versions.Latest().Segments)
	return nil
}

// reserve makes room in the writer for what the flush is about to add: lists that
// grow to it would take several times its memory on the way.
func (f *flushing) reserve(w *segment.Writer) {
	var chunks, series, names int64
	for i := range f.captures.List {
		c := &f.captures.List[i]
		n := c.Chunks()
		chunks += n
		series += min(n, int64(c.Columns().Len()))
	}
	for i := range f.changes.Catalogue {
		if c := &f.changes.Catalogue[i]; columns.Names(*c) {
			names += segment.SeriesSize(&c.Series)
		}
	}
	w.Reserve(chunks, series, names)
}

func addBuckets(w *segment.Writer, buckets []buckets.Info) {
	for _, b := range buckets {
		w.AddBucket(b)
	}
}

// putCatalogue does step 3. After an error the catalogue may know series that
// no committed segment names; the log still defines them, and the next flush
// names them.
//
// A catalogue that has failed keeps nothing from being flushed: all that it would
// know is in segments and log, and the commit says that the next start has to
// rebuild it.
func (s *Store) putCatalogue(f *flushing) error {
	err := s.changeCatalogue(f)
	if failed := s.catalogue.Failed(); failed != nil {
		s.damage.Report(datadir.Catalogue, failed)
	} else if err != nil {
		return err
	}
	s.o.flushStep(StepCatalogue)
	return nil
}

func (s *Store) changeCatalogue(f *flushing) error {
	if err := s.catalogue.Change(f.changes.Catalogue); err != nil {
		return err
	}
	for _, d := range f.changes.Buckets {
		if err := s.catalogue.DeleteBucket(d.ID); err != nil {
			return err
		}
	}
	return s.catalogue.Flush()
}

// commitFlush does step 4: see commitEdit for its errors.
func (s *Store) commitFlush(f *flushing, seg *version.Segment) error {
	var m *manifest.Segment
	if seg != nil {
		m = &seg.Meta
	}
	if err := s.commitEdit(s.edit(f, m)); err != nil {
		return err
	}
	s.o.flushStep(StepCommitted)
	return nil
}

// uncommitted gives up a flush whose commit failed. For want of room it is as if it had
// not been; after any other error the MANIFEST may name its file.
func (s *Store) uncommitted(f *flushing, seg *version.Segment, err error) error {
	if seg != nil {
		err = errors.Join(err, seg.Reader.Close())
	}
	if !errors.Is(err, manifest.ErrUnwritten) {
		return err
	}
	if seg != nil {
		err = errors.Join(err, s.dir.Discard(&seg.Meta))
	}
	s.abort(f)
	return err
}

// commitEdit makes an edit permanent. On a full disk, manifest.ErrUnwritten, it does not
// count, points are refused, and a flush is tried every second until there is room. Any
// other error ends the store: what is on disk is no longer known.
func (s *Store) commitEdit(e manifest.Edit) error {
	err := s.manifest.Commit(e)
	switch {
	case errors.Is(err, manifest.ErrUnwritten):
		s.pressure.SetFlushFailed(true)
		s.pressure.SetUnwritten(true)
		s.pressure.CheckDisk()
	case err != nil:
		s.pressure.Fail(err)
	default:
		s.pressure.SetUnwritten(false)
	}
	return err
}

// flushState is what a flush says of itself in its segment: what the MANIFEST will say
// of it, so that both are not lost together.
func (s *Store) flushState(f *flushing, m *manifest.Segment) []byte {
	e := s.edit(f, m)
	state := s.manifest.State()
	state.Apply(&e)
	carried := state.Carried()
	carried.AddSegments, carried.Tombstones = e.AddSegments, f.changes.Tombstones
	return carried.Encode()
}

func (s *Store) edit(f *flushing, m *manifest.Segment) manifest.Edit {
	e := manifest.Edit{
		PutBuckets:      f.buckets,
		DeleteBuckets:   f.changes.Buckets,
		Tombstones:      f.changes.Tombstones,
		ReplayPosition:  f.replayPositions.Base,
		ReplayPositions: f.replayPositions.Own,
		Account:         f.account,
		AccountLSN:      uint64(f.lsn),
		NextSeq:         s.dir.NextNumber(),
		Catalogue:       s.catalogue.Mark(),
		Highest:         f.highest,
		Incarnation:     s.columns.Deletions.Last(),
		RememberAfter:   f.forget,
		DeletionsFrom:   s.buckets.DeletionsFrom(),
	}
	if m != nil {
		e.AddSegments = []manifest.Segment{*m}
	}
	e.NextGroup = s.columns.Groups.Next()
	return e
}

// publish moves readers from the head to the segment and does step 5. The segment is
// there before a group drops what it holds: a reader, who copies from the head before
// he looks at segments, may see a point twice, never not at all.
func (s *Store) publish(f *flushing, seg *version.Segment) {
	for _, h := range f.highest {
		s.columns.RaiseHighest(h.Bucket, h.Slot)
	}
	s.forgetDeletions(f.forget, f.early)
	if seg != nil {
		s.versions.Publish(func(v *version.Version) { v.Add(seg) })
	}
	for _, g := range f.captures.Groups {
		sealedBlocks, late := g.EndFlush()
		s.pressure.AddSealed(-sealedBlocks)
		s.pressure.AddLate(-late)
	}
	if f.rarely {
		s.arenas.ReleaseSealed()
	}
	s.columns.Unflushed.Done(f.changes)
	s.countChunks()
	s.columns.NoteSilent(f.replayPositions.Of)
	s.pressure.MakeRoom()
	s.wantMerge()
	s.needed.Store(uint64(lowWaterLSN(f)))
	// The second reading of a replay goes on from f.base, whatever it will pass over.
	if err := s.log.RemoveBelow(min(lowWaterLSN(f), f.base)); err != nil {
		s.o.Logger.Warn("old log files stay until the next flush", "err", err)
	}
	s.o.flushStep(StepLogTrimmed)
}

// lowWaterLSN is the first position in the log that a restart needs.
func lowWaterLSN(f *flushing) wal.LSN {
	return min(f.lsn, f.replayPositions.Lowest())
}
