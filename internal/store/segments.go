package store

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/errors/oserror"

	"dalmatiner/internal/durable"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/segment"
	"dalmatiner/internal/window"
)

// LostSegment is the account's cause for points in a segment that is missing
// or cannot be opened.
const LostSegment = "segment_unreadable"

// segmentDirs are the directories of segments, by manifest.Kind.
var segmentDirs = [...]string{manifest.Flush: flushDir, manifest.Window: "window", manifest.Overlay: "overlay"}

// segmentFile is the path of a segment below the data directory.
func segmentFile(m *manifest.Segment) string {
	return fmt.Sprintf("%s/%016x.seg", segmentDirs[min(int(m.Kind), len(segmentDirs)-1)], m.Seq)
}

func parseSegmentName(name string) (seq uint64, ok bool) {
	text, found := strings.CutSuffix(name, ".seg")
	seq, err := strconv.ParseUint(text, 16, 63)
	return seq, found && err == nil && len(text) == 16
}

// openSegments opens the committed segments and removes what no commit named.
// After damage to the MANIFEST, whole segments that it does not name are taken
// in instead: it may have lost their names.
func (s *Store) openSegments(state *manifest.State) error {
	var lost []manifest.Segment
	known := make(map[string]bool)
	for _, m := range state.Segments {
		known[segmentFile(&m)] = true
		seg, err := s.openSegment(m)
		if segment.ReadFailed(err) {
			s.reportDamage("segment "+segmentFile(&m), err)
			seg, err = s.openLater(m), nil
		}
		if errors.Is(err, segment.ErrFormat) {
			return err
		}
		if err != nil && !unreadable(err) {
			return fmt.Errorf("%w; mend the cause and start again, nothing was changed", err)
		}
		if err != nil {
			s.reportDamage("segment "+segmentFile(&m), err)
			s.account.Lose(LostSegment, uint64(m.Points))
			lost = append(lost, m)
			continue
		}
		s.segments = append(s.segments, seg)
	}
	var found strays
	for kind := range segmentDirs {
		if err := s.removeStrays(manifest.Kind(kind), known, s.adoptFrom(manifest.Kind(kind), state), &found); err != nil {
			return err
		}
	}
	if state.Suspect || len(found.adopted) > 0 || found.unread {
		if err := s.adopt(&found, state); err != nil {
			return err
		}
	}
	if state.Suspect || len(found.adopted) > 0 {
		s.settleBySegments()
	}
	s.sortSegments()
	for _, seg := range s.segments {
		s.nextSeq.Store(max(s.nextSeq.Load(), seg.meta.Seq+1))
	}
	return s.setAside(lost)
}

// adoptNone is the answer of adoptFrom when all strays are to be removed.
const adoptNone = math.MaxUint64

// adoptFrom returns the number from which on whole segments that the MANIFEST
// does not name are taken in. After damage to it, that is all of them. An edit
// at its end that was cut off by a crash cannot be told from one that was
// permanent and got damaged, so the flush it may have named is taken in as well:
// the log, as far as it is still there, says the same again.
func (s *Store) adoptFrom(kind manifest.Kind, state *manifest.State) uint64 {
	switch {
	case state.Suspect:
		return 0
	case s.manifestTorn && kind == manifest.Flush:
		return state.NextSeq
	}
	return adoptNone
}

// sortSegments puts the segments into the order in which a reader lays them
// over each other.
func (s *Store) sortSegments() {
	slices.SortFunc(s.segments, func(a, b *storedSegment) int { return window.Order(a.meta, b.meta) })
}

func (s *Store) openSegment(m manifest.Segment) (*storedSegment, error) {
	r, err := s.files.Open(s.path(segmentFile(&m)))
	if err != nil {
		return nil, err
	}
	return s.stored(m, r), nil
}

// openLater is openSegment for a file that the device does not give now. It
// stays: reads and merges try again, as they do with every block that cannot be
// read, and so does the next start. Its size is that of the MANIFEST.
func (s *Store) openLater(m manifest.Segment) *storedSegment {
	seg := s.stored(m, s.files.Later(s.path(segmentFile(&m))))
	seg.info.Size, seg.info.Points = m.Bytes, m.Points
	return seg
}

func (s *Store) stored(m manifest.Segment, r *segment.Reader) *storedSegment {
	seg := &storedSegment{meta: m, reader: r, info: r.Info()}
	_, err := s.o.FS.Stat(s.lostPath(seg.name()))
	seg.damaged = err == nil
	return seg
}

// lostPath is where a segment goes that is set aside.
func (s *Store) lostPath(file string) string { return s.path(lostDir, s.o.FS.PathBase(file)) }

// markDamaged marks a segment in which a merge met damage: its file is not
// deleted in the end. The mark is a second name in lost+found, which a restart
// finds. Without one, on a file system that has no links, the mark lasts until
// the store is closed.
func (s *Store) markDamaged(seg *storedSegment) {
	seg.damaged = true
	err := s.o.FS.Link(s.path(seg.name()), s.lostPath(seg.name()))
	if err == nil {
		err = durable.SyncDir(s.o.FS, s.path(lostDir))
	}
	if err != nil && !oserror.IsExist(err) {
		s.o.Logger.Warn("a damaged segment is set aside only if the node runs on until it is merged", "segment", seg.name(), "err", err)
	}
}

// strays are segments that the MANIFEST does not name.
type strays struct {
	adopted []*storedSegment // whole
	unread  bool             // the device does not give some now: they stay where they are
}

// removeStrays deletes segments and temporary files that no commit named, or
// opens those that are whole for adoption. What is neither is not ours to
// delete: it goes to lost+found.
func (s *Store) removeStrays(kind manifest.Kind, known map[string]bool, adoptFrom uint64, found *strays) error {
	dir := segmentDirs[kind]
	names, err := s.o.FS.List(s.path(dir))
	if err != nil {
		return err
	}
	for _, name := range names {
		m := manifest.Segment{Kind: kind}
		var ok bool
		m.Seq, ok = parseSegmentName(strings.TrimSuffix(name, tempSuffix))
		file := dir + "/" + name
		switch {
		case known[file]:
		case !ok:
			s.reportDamage(dir, fmt.Errorf("%s is no segment; moved to %s", name, lostDir))
			err = s.o.FS.Rename(s.path(file), s.path(lostDir, name))
		case m.Seq >= adoptFrom && file == segmentFile(&m):
			seg, damage := s.adoptable(m)
			if damage == nil {
				known[seg.name()] = true
				found.adopted = append(found.adopted, seg)
				continue
			}
			if !unreadable(damage) {
				return damage
			}
			s.reportDamage("segment "+file, damage)
			if segment.ReadFailed(damage) {
				found.unread = true
				s.nextSeq.Store(max(s.nextSeq.Load(), m.Seq+1)) // its name is not given again
				continue
			}
			err = s.o.FS.Rename(s.path(file), s.path(lostDir, name))
		default:
			err = s.o.FS.Remove(s.path(file))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// adoptable opens a stray. A window may be one of several files, the others
// never finished: it becomes an overlay, which does not stand for all of its
// range.
func (s *Store) adoptable(m manifest.Segment) (*storedSegment, error) {
	if m.Kind == manifest.Window {
		from := s.path(segmentFile(&m))
		m.Kind = manifest.Overlay
		if err := s.o.FS.Rename(from, s.path(segmentFile(&m))); err != nil {
			return nil, err
		}
	}
	return s.openSegment(m)
}

// describe gives an adopted segment the place among the others that its footer
// and its index tell.
func (s *Store) describe(seg *storedSegment) error {
	m, info := &seg.meta, &seg.info
	m.Bytes, m.Points, m.Generation = info.Size, info.Points, uint64(info.Generation)
	var ranges window.Ranges
	for _, b := range s.buckets.all() {
		err := seg.reader.Entries(b.info.ID, func(number int64, _ int) { ranges.Add(b.info.ID, number) })
		if err := s.noteUnreadable(seg, err); err != nil {
			return err
		}
	}
	m.Ranges = ranges.List()
	return nil
}

// unreadable tells a file that is damaged, missing, or that the device does not
// give, from one that the system does not let us open now or that a newer version
// wrote: a limit of open files must not cost a segment.
func unreadable(err error) bool {
	return segment.IsDamage(err) || oserror.IsNotExist(err)
}

// adopt takes in segments that a damaged MANIFEST does not name, and the
// buckets they describe, and the tombstones that segments carry. It ends the
// suspicion, unless the device did not give all of these, when the next start
// looks again. Every segment lists all buckets there were, so the newest list
// tells what was created and deleted since the last edit that is left.
func (s *Store) adopt(found *strays, state *manifest.State) error {
	var e manifest.Edit
	adopted := found.adopted
	slices.SortFunc(adopted, func(a, b *storedSegment) int { return cmp.Compare(b.meta.Seq, a.meta.Seq) })
	listed := false
	for i, seg := range adopted {
		buckets, err := seg.reader.Buckets()
		if err := s.noteUnreadable(seg, err); err != nil {
			return err
		}
		listed = listed || seg.meta.Seq < state.NextSeq // the MANIFEST is newer
		if !listed {
			if i == 0 && err == nil {
				s.forgetAbsent(&e, buckets)
			}
			s.adoptBuckets(&e, buckets)
			listed = err == nil
		}
		s.segments = append(s.segments, seg)
		s.o.Logger.Warn("a segment that the MANIFEST does not name was taken in",
			"segment", seg.name(), "points", seg.info.Points)
	}
	for _, seg := range adopted {
		if err := s.describe(seg); err != nil {
			return err
		}
		e.AddSegments = append(e.AddSegments, seg.meta)
	}
	e.DeletionsFrom = s.buckets.deletionsFrom()
	whole, err := s.exhume(&e)
	if err != nil {
		return err
	}
	e.Settled, e.Suspect = whole && !found.unread, found.unread
	return s.manifest.Commit(e)
}

// forgetAbsent takes buckets out of the registry that the list does not have.
func (s *Store) forgetAbsent(e *manifest.Edit, list []segment.Bucket) {
	for _, b := range s.buckets.all() {
		if !slices.ContainsFunc(list, func(l segment.Bucket) bool { return l.ID == b.info.ID }) {
			d := s.buckets.deletion(b, s.o.Now())
			s.buckets.remove(b, d)
			e.DeleteBuckets = append(e.DeleteBuckets, d)
		}
	}
}

// adoptBuckets enters listed buckets into the registry.
func (s *Store) adoptBuckets(e *manifest.Edit, list []segment.Bucket) {
	for _, b := range list {
		info := bucketInfo(manifest.Bucket(b))
		if info.validate() != nil {
			continue
		}
		if known := s.buckets.id(b.ID); known != nil {
			known.ttl.Store(b.TTL)
		} else if s.buckets.get(info.Name) == nil && !s.buckets.wasDeleted(b.ID) {
			s.buckets.add(s.newBucket(info))
		} else {
			continue
		}
		e.PutBuckets = append(e.PutBuckets, manifestBucket(info))
	}
}

// setAside moves unreadable segments to lost+found and takes their names out
// of the MANIFEST, so that their loss is counted once.
func (s *Store) setAside(lost []manifest.Segment) error {
	if len(lost) == 0 {
		return nil
	}
	e := manifest.Edit{Account: s.account.Snapshot()}
	for i := range lost {
		e.RemoveSegments = append(e.RemoveSegments, lost[i].Seq)
		if err := s.moveToLost(segmentFile(&lost[i])); err != nil {
			return err
		}
	}
	return errors.Join(durable.SyncDir(s.o.FS, s.path(lostDir)), s.manifest.Commit(e))
}

// moveToLost moves a file to lost+found, if it is there.
func (s *Store) moveToLost(file string) error {
	if _, err := s.o.FS.Stat(s.path(file)); oserror.IsNotExist(err) {
		return nil // it is missing
	} else if err != nil {
		return fmt.Errorf("setting segment %s aside: %w", file, err)
	}
	// The name in lost+found may be the mark of markDamaged, a link to the same
	// file, and a rename to that does nothing.
	if err := s.o.FS.Remove(s.lostPath(file)); err != nil && !oserror.IsNotExist(err) {
		return fmt.Errorf("setting segment %s aside: %w", file, err)
	}
	if err := s.o.FS.Rename(s.path(file), s.lostPath(file)); err != nil {
		return fmt.Errorf("setting segment %s aside: %w", file, err)
	}
	return nil
}
