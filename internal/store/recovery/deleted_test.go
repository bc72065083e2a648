package recovery

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"dalmatiner/internal/disk/manifest"
)

// mortal is a world in which series are deleted: point n is of series n%4.
type mortal struct {
	*world
	pending []manifest.Tombstones            // behind the last flush: in the log
	carried map[uint64][]manifest.Tombstones // by segment, as identities
	killed  map[int]bool                     // by deletions that are committed
	dying   map[int]bool                     // by those that are not
}

func hashOf(series int) (h [16]byte) { h[0] = byte(series + 1); return h }

// below is the highest number up to which tombstones hide a series.
func below(tombs []manifest.Tombstones, series int) (n uint64) {
	for _, t := range tombs {
		if slices.ContainsFunc(t.Series, func(d manifest.DeletedSeries) bool {
			return d.Hash == hashOf(series)
		}) {
			n = max(n, t.DeleteSequence)
		}
	}
	return n
}

// kill deletes a series.
func (w *mortal) kill(series int) {
	w.lsn++
	w.next++
	w.pending = append(w.pending, manifest.Tombstones{
		Bucket: 1, DeleteSequence: w.next, LSN: w.lsn, Series: []manifest.DeletedSeries{
			{Hash: hashOf(series)}},
	})
	for _, m := range w.state.Segments {
		for p := range w.points[m.Seq] {
			if p%4 == series {
				w.dying[p] = true
			}
		}
	}
}

// flush commits what was deleted: the segment, the tombstones in it, the edit.
func (w *mortal) flush() {
	seq := w.next
	w.next++
	w.lsn += 10
	m := manifest.Segment{Seq: seq, Generation: seq, Points: 3,
		Ranges: []manifest.Range{{Bucket: 1, First: 0, Past: 1}}}
	e := manifest.Edit{AddSegments: []manifest.Segment{m}, Tombstones: w.pending,
		ReplayPosition: w.lsn,
		Accounts:       manifest.Accounts{AccountLSN: w.lsn, Account: fmt.Append(nil, seq)},
		NextSeq:        w.next}
	w.write(e)
	w.disk[seq].Edit.Tombstones = w.pending
	w.carried[seq], w.pending = w.pending, nil
	w.points[seq], w.until[seq] = map[int]bool{}, w.lsn
	for range 3 {
		w.points[seq][w.sent] = true
		w.sent++
	}
	maps.Copy(w.killed, w.dying)
	clear(w.dying)
	w.commit(e)
}

// merge merges without what is hidden. Sources may stay on the disk, which keep the
// tombstones of the state.
func (w *mortal) merge() {
	before, next := w.state.Clone(), w.next
	w.world.merge(false, w.rng.IntN(2) == 0)
	if w.next == next {
		return
	}
	var from []uint64
	for _, m := range before.Segments {
		if !w.state.HasSegment(m.Seq) {
			from = append(from, m.Seq)
		}
	}
	visible := map[int]bool{}
	var tombs []manifest.Tombstones
	for _, seq := range from {
		tombs = append(tombs, w.carried[seq]...)
		i := slices.IndexFunc(before.Segments, func(m manifest.Segment) bool { return m.Seq == seq })
		for p := range w.points[seq] {
			visible[p] = visible[p] ||
				before.Segments[i].PurgedThrough() >= below(slices.Concat(before.Tombstones, w.pending), p%4)
		}
	}
	for i := range w.log[len(w.log)-1].AddSegments {
		m := &w.log[len(w.log)-1].AddSegments[i]
		m.Purged = next
		f := w.disk[m.Seq]
		f.Meta.Purged = next
		for j := range f.Edit.AddSegments {
			f.Edit.AddSegments[j].Purged = next
		}
		maps.DeleteFunc(w.points[m.Seq], func(p int, _ bool) bool { return !visible[p] })
		if i == 0 {
			w.carried[m.Seq] = tombs
		}
		for k := range w.state.Segments {
			if w.state.Segments[k].Seq == m.Seq {
				w.state.Segments[k].Purged = next
			}
		}
	}
}

// shown returns the points that a plan serves, with the tombstones of its state and of its
// segments.
func (w *mortal) shown(p Plan) map[int]bool {
	tombs := slices.Clone(p.State.Tombstones)
	for _, m := range p.State.Segments {
		tombs = append(tombs, w.carried[m.Seq]...)
	}
	all := map[int]bool{}
	for _, m := range p.State.Segments {
		for point := range w.points[m.Seq] {
			if m.PurgedThrough() >= below(tombs, point%4) {
				all[point] = true
			}
		}
	}
	return all
}

// damagedStates are what a start may read of a MANIFEST: all of it, nothing, and all but one
// edit, an old copy and a torn one for each edit.
func (w *world) damagedStates() map[string]*manifest.State {
	states := map[string]*manifest.State{"whole": w.state.Clone(), "none": {Suspect: true}}
	for i := range w.log {
		states[fmt.Sprint("without edit ", i)] = sum(w.log, func(j int) bool { return j == i })
		states[fmt.Sprint("old, up to edit ", i)] = sum(w.log[:i], func(int) bool { return false })
		states[fmt.Sprint("torn at edit ", i)] = sum(w.log, func(j int) bool { return j >= i })
	}
	return states
}

// Whatever edits are lost, with files left by a failed removal: nothing that was deleted is served,
// and all else is, except what is in the log.
func TestNothingDeletedComesBack(t *testing.T) {
	deleted := 0
	for seed := range uint64(300) {
		w := &mortal{world: newWorld(seed), carried: map[uint64][]manifest.Tombstones{},
			killed: map[int]bool{}, dying: map[int]bool{}}
		for range 4 + w.rng.IntN(12) {
			switch w.rng.IntN(4) {
			case 0:
				w.kill(w.rng.IntN(4))
			case 1, 2:
				w.flush()
			default:
				w.merge()
			}
		}
		if len(w.log) == 0 {
			continue
		}
		deleted += len(w.killed)
		for name, st := range w.damagedStates() {
			what := fmt.Sprintf("seed %d, %s", seed, name)
			p := Decide(w.input(st, max(w.state.AccountLSN, 1)))
			if len(p.Lost) > 0 {
				t.Fatalf("%s: counts a loss: %v", what, p.Lines())
			}
			shown := w.shown(p)
			for point := range w.sent {
				if shown[point] && w.killed[point] {
					t.Fatalf("%s: point %d was deleted and is back: %v", what, point, p.Lines())
				}
				if !shown[point] && !w.killed[point] && !w.dying[point] { // these the log deletes
					t.Fatalf("%s: point %d is lost: %v", what, point, p.Lines())
				}
			}
		}
	}
	if deleted == 0 {
		t.Error("nothing was deleted")
	}
}
