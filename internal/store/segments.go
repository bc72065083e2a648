package store

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

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
		if err != nil {
			s.reportDamage("segment "+name, err)
			s.account.Lose(LostSegment, uint64(m.Points))
			lost = append(lost, m.Seq)
			continue
		}
		s.segments = append(s.segments, seg)
	}
	if err := s.removeStrays(known, state.Suspect); err != nil {
		return err
	}
	if state.Suspect {
		if err := s.manifest.Commit(manifest.Edit{Settled: true}); err != nil {
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
// adopts them. What is neither is not ours to delete: it goes to lost+found.
func (s *Store) removeStrays(known map[string]bool, adopt bool) error {
	names, err := s.o.FS.List(s.path(flushDir))
	if err != nil {
		return err
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
			err = s.adopt(seq)
		default:
			err = s.o.FS.Remove(s.path(flushDir, name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func parseSegmentName(name string) (seq uint64, ok bool) {
	text, found := strings.CutSuffix(name, ".seg")
	seq, err := strconv.ParseUint(text, 16, 63)
	return seq, found && err == nil
}

// adopt takes in a segment and the buckets it describes, or sets it aside when
// it is not whole.
func (s *Store) adopt(seq uint64) error {
	name := segmentName(seq)
	seg, err := s.openSegment(seq)
	if err != nil {
		s.reportDamage("segment "+name, err)
		return s.o.FS.Rename(s.path(flushDir, name), s.path(lostDir, name))
	}
	buckets, err := seg.reader.Buckets()
	if err != nil && len(segment.Damages(err)) == 0 {
		return err
	}
	for _, b := range buckets {
		info := BucketInfo{
			ID: b.ID, Name: string(b.Name), Resolution: b.Resolution, PPF: b.PPF, TTL: b.TTL, Grace: b.Grace, HPTS: b.HPTS,
		}
		if s.buckets.byID[b.ID] == nil && s.buckets.byName[info.Name] == nil && info.validate() == nil {
			s.buckets.add(s.newBucket(info))
		}
	}
	s.segments = append(s.segments, seg)
	s.o.Logger.Warn("a segment that the MANIFEST does not name was taken in", "segment", name, "points", seg.info.Points)
	return s.manifest.Commit(manifest.Edit{
		AddSegments: []manifest.Segment{{Seq: seq, Bytes: seg.info.Size, Points: seg.info.Points}},
	})
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
