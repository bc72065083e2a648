package recovery

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/model/buckets"
)

// town is a world in which buckets are made and deleted: points are of one of those that
// live. A deletion is in the log until the next flush is committed.
type town struct {
	*world
	of        map[int]uint64 // by point: its bucket
	alive     []uint64       // buckets
	fresh     []buckets.Info // behind the last flush
	pending   []buckets.Deletion
	deleted   map[uint64]uint64 // by bucket: position of the record of its deletion
	traceless map[uint64]bool   // segments that were removed by an edit that adds none
	ids       uint64
}

func newTown(seed uint64) *town {
	w := &town{world: newWorld(seed), of: map[int]uint64{}, deleted: map[uint64]uint64{},
		traceless: map[uint64]bool{}}
	w.found()
	return w
}

// found makes a bucket.
func (w *town) found() {
	w.ids++
	w.alive = append(w.alive, w.ids)
	w.fresh = append(w.fresh, buckets.Info{ID: w.ids, Name: fmt.Sprint("b", w.ids), Resolution: 1000,
		PPF: 1})
}

// raze deletes a bucket; one is always left.
func (w *town) raze() {
	if len(w.alive) < 2 {
		return
	}
	i := w.rng.IntN(len(w.alive))
	id := w.alive[i]
	w.alive = slices.Delete(w.alive, i, i+1)
	w.lsn++
	w.deleted[id] = w.lsn
	w.fresh = slices.DeleteFunc(w.fresh, func(b buckets.Info) bool { return b.ID == id })
	w.pending = append(w.pending, buckets.Deletion{ID: id, Clock: w.lsn, Name: fmt.Sprint("b", id)})
}

// rangesOf are the ranges of a segment with these points.
func (w *town) rangesOf(points map[int]bool) (ranges []manifest.Range) {
	seen := map[uint64]bool{}
	for p := range points {
		seen[w.of[p]] = true
	}
	for _, id := range slices.Sorted(maps.Keys(seen)) {
		ranges = append(ranges, manifest.Range{Bucket: id, First: 0, Past: 1})
	}
	return ranges
}

func (w *town) flush() {
	seq := w.next
	w.next++
	w.lsn += 10
	w.points[seq], w.until[seq] = map[int]bool{}, w.lsn
	for range 3 {
		w.points[seq][w.sent] = true
		w.of[w.sent] = w.alive[w.rng.IntN(len(w.alive))]
		w.sent++
	}
	m := manifest.Segment{Seq: seq, Generation: seq, Points: 3, Ranges: w.rangesOf(w.points[seq])}
	e := manifest.Edit{
		AddSegments: []manifest.Segment{m}, PutBuckets: w.fresh, DeleteBuckets: w.pending,
		ReplayPosition: w.lsn,
		Accounts:       manifest.Accounts{AccountLSN: w.lsn, Account: fmt.Append(nil, seq)},
		NextSeq:        w.next,
	}
	w.fresh, w.pending = nil, nil
	w.write(e)
	w.commit(e)
}

// merge replaces some segments by one a bucket, without what was deleted: nothing may be
// left of them.
func (w *town) merge() {
	var from []uint64
	points := map[uint64]map[int]bool{} // by bucket
	generation := uint64(0)
	flushes := true // they go in their order
	for _, m := range w.state.Segments {
		if m.Kind == manifest.Flush {
			flushes = flushes && w.rng.IntN(3) > 0
		}
		if m.Kind == manifest.Flush && !flushes || m.Kind != manifest.Flush && w.rng.IntN(2) == 0 {
			continue
		}
		from = append(from, m.Seq)
		generation = max(generation, m.Generation)
		for p := range w.points[m.Seq] {
			if id := w.of[p]; !w.state.IsDeleted(id) {
				if points[id] == nil {
					points[id] = map[int]bool{}
				}
				points[id][p] = true
			}
		}
	}
	if len(from) == 0 {
		return
	}
	e := manifest.Edit{RemoveSegments: from}
	for _, id := range slices.Sorted(maps.Keys(points)) {
		seq := w.next
		w.next++
		w.points[seq] = points[id]
		e.AddSegments = append(e.AddSegments, manifest.Segment{
			Seq: seq, Kind: manifest.Window, Generation: generation, Points: int64(len(points[id])),
			Ranges: w.rangesOf(points[id]),
		})
	}
	e.NextSeq = w.next
	w.write(e)
	w.commit(e)
	stay := w.rng.IntN(3) == 0
	for _, seq := range from {
		w.traceless[seq] = len(e.AddSegments) == 0
		if !stay || w.rng.IntN(2) == 0 {
			delete(w.disk, seq)
		}
	}
}

// says reports whether anything that can be read says that a bucket was deleted.
func says(in *Input, id uint64) bool {
	return in.State.IsDeleted(id) || slices.ContainsFunc(in.Files, func(f File) bool {
		return f.opens() && f.Edit != nil &&
			slices.ContainsFunc(f.Edit.DeleteBuckets, func(d buckets.Deletion) bool {
				return d.ID == id
			})
	})
}

// checkBuckets wants no point of a whole file and of a living bucket to be lost, and no
// bucket back that was deleted, unless the deletion is in the log. With a damaged file
// beside, that may have been the last one to say so.
func (w *town) checkBuckets(t *testing.T, what string, in Input, whole bool) Plan {
	t.Helper()
	p := Decide(in)
	served, from := w.served(p), replayFrom(p.State)
	replays := in.LogFrom <= max(1, from)
	for seq, lsn := range w.until {
		if replays && lsn > p.State.ReplayPosition {
			maps.Copy(served, w.points[seq])
		}
	}
	for i := range in.Files {
		f := &in.Files[i]
		for point := range w.points[f.Seq] {
			if id := w.of[point]; f.opens() && !served[point] && w.deleted[id] == 0 {
				t.Fatalf("%s: point %d of bucket %d in segment %d, which is whole, is lost: %v", what, point,
					id, f.Seq, p.Lines())
			}
		}
	}
	for id, lsn := range w.deleted {
		if (whole || says(&in, id)) && !w.pends(id) && hasBucket(p.State, id) &&
			!(in.LogFrom <= lsn && lsn >= from) {
			t.Fatalf("%s: bucket %d was deleted and is back: %v", what, id, p.Lines())
		}
	}
	for _, l := range p.Lost {
		if !l.Unknown && !slices.ContainsFunc(l.Meta.Ranges, func(r manifest.Range) bool {
			return w.deleted[r.Bucket] == 0 || !p.State.IsDeleted(r.Bucket)
		}) {
			t.Fatalf("%s: a segment of deleted buckets counts as lost: %v", what, p.Lines())
		}
	}
	return p
}

// pends reports whether the deletion of a bucket is in the log only.
func (w *town) pends(id uint64) bool {
	return slices.ContainsFunc(w.pending, func(d buckets.Deletion) bool { return d.ID == id })
}

// Whatever edits are lost, with files that a failed removal left and one that is damaged
// beside: no point of a living bucket is lost, no deleted bucket is back, and what was
// of deleted buckets alone is no loss.
func TestNoDeletedBucketComesBack(t *testing.T) {
	deleted, named := 0, 0
	for seed := range uint64(300) {
		w := newTown(seed)
		for range 4 + w.rng.IntN(12) {
			switch w.rng.IntN(6) {
			case 0:
				w.found()
			case 1:
				w.raze()
			case 2, 3:
				w.flush()
			default:
				w.merge()
			}
		}
		if len(w.log) == 0 {
			continue
		}
		deleted += len(w.deleted)
		for name, st := range w.damagedStates() {
			for _, logFrom := range []uint64{1, max(w.state.AccountLSN, 1)} {
				what := fmt.Sprintf("seed %d, %s, log from %d", seed, name, logFrom)
				in := w.input(st, logFrom)
				p := w.checkBuckets(t, what, in, true)
				// of one that is gone without a trace an older file may say that it counts
				for _, l := range p.Lost {
					if !l.Unknown || name == "whole" || !w.traceless[l.Meta.Seq] {
						t.Fatalf("%s: counts a loss: %v", what, p.Lines())
					}
					named++
				}
				if len(in.Files) == 0 {
					continue
				}
				bad := in
				bad.Files = slices.Clone(in.Files)
				i := w.rng.IntN(len(bad.Files))
				bad.Files[i].Damage, bad.Files[i].Edit = "a flipped bit", nil
				w.checkBuckets(t, fmt.Sprintf("%s, %s damaged", what, bad.Files[i].Path), bad, false)
			}
		}
	}
	if deleted < 100 {
		t.Errorf("%d buckets were deleted", deleted)
	}
	t.Logf("%d buckets were deleted, %d segments without a trace were called lost", deleted, named)
}
