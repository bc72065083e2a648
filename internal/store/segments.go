package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/cockroachdb/errors/oserror"

	"dalmatiner/internal/manifest"
	"dalmatiner/internal/segment"
)

// LostSegment is the account's cause for points in a segment that is missing
// or cannot be opened.
const LostSegment = "segment_unreadable"

// openSegments opens the committed segments and removes what no commit named.
// After damage to the MANIFEST, whole segments that it does not name are taken
// in instead: it may have lost their names.
func (s *Store) openSegments(state *manifest.State) error {
	var lost []uint64
	known := make(map[string]bool)
	for _, m := range state.Segments {
		name := segmentName(m.Seq)
		known[name] = true
		seg, err := s.openSegment(m.Seq)
		if err != nil && !unreadable(err) {
			return fmt.Errorf("%w; mend the cause and start again, nothing was changed", err)
		}
		if err != nil {
			s.reportDamage("segment "+name, err)
			s.account.Lose(LostSegment, uint64(m.Points))
			lost = append(lost, m.Seq)
			continue
		}
		s.segments = append(s.segments, seg)
	}
	adopted, err := s.removeStrays(known, state.Suspect)
	if err != nil {
		return err
	}
	if state.Suspect {
		if err := s.adopt(adopted, state); err != nil {
			return err
		}
	}
	slices.SortFunc(s.segments, func(a, b *storedSegment) int { return int(a.seq) - int(b.seq) })
	for _, seg := range s.segments {
		s.nextSeq = max(s.nextSeq, seg.seq+1)
	}
	return s.setAside(lost)
}

func (s *Store) openSegment(seq uint64) (*storedSegment, error) {
	r, err := segment.Open(s.o.FS, s.path(flushDir, segmentName(seq)))
	if err != nil {
		return nil, err
	}
	return &storedSegment{seq: seq, reader: r, info: r.Info()}, nil
}

// removeStrays deletes segments and temporary files that no commit named, or
// opens those that are whole for adoption. What is neither is not ours to
// delete: it goes to lost+found.
func (s *Store) removeStrays(known map[string]bool, adopt bool) (adopted []*storedSegment, err error) {
	names, err := s.o.FS.List(s.path(flushDir))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if known[name] {
			continue
		}
		seq, ok := parseSegmentName(strings.TrimSuffix(name, ".tmp"))
		switch {
		case !ok:
			s.reportDamage(flushDir, fmt.Errorf("%s is no segment; moved to %s", name, lostDir))
			err = s.o.FS.Rename(s.path(flushDir, name), s.path(lostDir, name))
		case adopt && name == segmentName(seq):
			seg, damage := s.openSegment(seq)
			if damage == nil {
				adopted = append(adopted, seg)
				continue
			}
			if !unreadable(damage) {
				return adopted, damage
			}
			s.reportDamage("segment "+name, damage)
			err = s.o.FS.Rename(s.path(flushDir, name), s.path(lostDir, name))
		default:
			err = s.o.FS.Remove(s.path(flushDir, name))
		}
		if err != nil {
			return adopted, err
		}
	}
	return adopted, nil
}

// unreadable tells a file that is damaged or missing, which is set aside, from
// one that the system does not let us open now or that a newer version wrote:
// a limit of open files must not cost a segment.
func unreadable(err error) bool {
	return len(segment.Damages(err)) > 0 || oserror.IsNotExist(err) || errors.Is(err, syscall.EIO)
}

func parseSegmentName(name string) (seq uint64, ok bool) {
	text, found := strings.CutSuffix(name, ".seg")
	seq, err := strconv.ParseUint(text, 16, 63)
	return seq, found && err == nil
}

// adopt takes in segments that a damaged MANIFEST does not name, and the
// buckets they describe. It ends the suspicion. Every segment lists all buckets
// there were, so the newest list tells what was created and deleted since the
// last edit that is left.
func (s *Store) adopt(adopted []*storedSegment, state *manifest.State) error {
	e := manifest.Edit{Settled: true}
	slices.SortFunc(adopted, func(a, b *storedSegment) int { return cmp.Compare(b.seq, a.seq) })
	listed := false
	for i, seg := range adopted {
		buckets, err := seg.reader.Buckets()
		if err != nil && len(segment.Damages(err)) == 0 {
			return err
		}
		listed = listed || seg.seq < state.NextSeq // the MANIFEST is newer
		if !listed {
			if i == 0 && err == nil {
				s.forgetAbsent(&e, buckets)
			}
			s.adoptBuckets(&e, buckets)
			listed = err == nil
		}
		for j := range buckets {
			s.buckets.nextID = max(s.buckets.nextID, buckets[j].ID+1)
		}
		s.segments = append(s.segments, seg)
		e.AddSegments = append(e.AddSegments, manifest.Segment{Seq: seg.seq, Bytes: seg.info.Size, Points: seg.info.Points})
		s.o.Logger.Warn("a segment that the MANIFEST does not name was taken in",
			"segment", segmentName(seg.seq), "points", seg.info.Points)
	}
	e.NextBucket = s.buckets.nextID
	return s.manifest.Commit(e)
}

// forgetAbsent takes buckets out of the registry that the list does not have.
func (s *Store) forgetAbsent(e *manifest.Edit, list []segment.Bucket) {
	for _, b := range s.buckets.all() {
		if !slices.ContainsFunc(list, func(l segment.Bucket) bool { return l.ID == b.info.ID }) {
			s.buckets.remove(b)
			e.DeleteBuckets = append(e.DeleteBuckets, b.info.ID)
		}
	}
}

// adoptBuckets enters listed buckets into the registry.
func (s *Store) adoptBuckets(e *manifest.Edit, list []segment.Bucket) {
	for _, b := range list {
		info := BucketInfo{
			ID: b.ID, Name: string(b.Name), Resolution: b.Resolution, PPF: b.PPF, TTL: b.TTL, Grace: b.Grace, HPTS: b.HPTS,
		}
		if info.validate() != nil {
			continue
		}
		if known := s.buckets.id(b.ID); known != nil {
			known.ttl.Store(b.TTL)
		} else if s.buckets.get(info.Name) == nil {
			s.buckets.add(s.newBucket(info))
		} else {
			continue
		}
		e.PutBuckets = append(e.PutBuckets, manifestBucket(info))
	}
}

// setAside moves unreadable segments to lost+found and takes their names out
// of the MANIFEST, so that their loss is counted once.
func (s *Store) setAside(lost []uint64) error {
	if len(lost) == 0 {
		return nil
	}
	for _, seq := range lost {
		name := segmentName(seq)
		if _, err := s.o.FS.Stat(s.path(flushDir, name)); err != nil {
			continue // it is missing
		}
		if err := s.o.FS.Rename(s.path(flushDir, name), s.path(lostDir, name)); err != nil {
			return fmt.Errorf("setting segment %s aside: %w", name, err)
		}
	}
	return errors.Join(
		syncDir(s.o.FS, s.path(lostDir)),
		s.manifest.Commit(manifest.Edit{RemoveSegments: lost, Account: s.account.Snapshot()}),
	)
}
