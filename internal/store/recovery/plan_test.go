package recovery

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
)

// world is a store without bytes: points are numbers, a segment holds some of them.
// It keeps to the order of writes of the store, and knows what was ever sent.
type world struct {
	rng    *rand.Rand
	state  *manifest.State
	log    []manifest.Edit // of the MANIFEST, the first one a snapshot of nothing
	disk   map[uint64]*File
	points map[uint64]map[int]bool // by segment
	until  map[uint64]uint64       // by flush: the log up to where it holds
	next   uint64
	lsn    uint64
	sent   int
}

func newWorld(seed uint64) *world {
	return &world{
		rng: rand.New(rand.NewPCG(seed, 1)), state: &manifest.State{}, disk: map[uint64]*File{},
		points: map[uint64]map[int]bool{}, until: map[uint64]uint64{}, next: 1, lsn: 10,
	}
}

func (w *world) commit(e manifest.Edit) {
	e.NextSeq = w.next
	w.state.Apply(&e)
	w.log = append(w.log, e)
}

// write puts the files of one commit on the disk, each with what it says of itself.
func (w *world) write(e manifest.Edit) {
	st := w.state.Clone()
	st.Apply(&e)
	said := st.CarriedEdit()
	said.AddSegments, said.RemoveSegments = e.AddSegments, e.RemoveSegments
	src := said.Encode()
	for _, m := range e.AddSegments {
		own, err := manifest.DecodeEdit(src)
		if err != nil {
			panic(err)
		}
		w.disk[m.Seq] = &File{Path: datadir.Segment(m.Kind, m.Seq), Kind: m.Kind, Seq: m.Seq, Meta: m,
			Edit: &own}
	}
}

// flush writes a flush; where the crash comes in between it is not committed, and
// its points are in the log.
func (w *world) flush(crash bool) {
	seq := w.next
	w.next++
	w.lsn += 10
	m := manifest.Segment{Seq: seq, Generation: seq, Points: 3,
		Ranges: []manifest.Range{{Bucket: 1, First: 0, Past: 1}}}
	e := manifest.Edit{AddSegments: []manifest.Segment{m}, ReplayPosition: w.lsn,
		Accounts: manifest.Accounts{AccountLSN: w.lsn, Account: fmt.Append(nil, seq)}, NextSeq: w.next}
	w.write(e)
	w.points[seq], w.until[seq] = map[int]bool{}, w.lsn
	for range 3 {
		if !crash {
			w.points[seq][w.sent] = true
			w.sent++
		}
	}
	if crash {
		return
	}
	w.commit(e)
}

// merge replaces some segments by several files. Sources stay on the disk where
// their removal fails.
func (w *world) merge(crash, stay bool) {
	var from []uint64
	for _, m := range w.state.Segments {
		if m.Kind != manifest.Flush && w.rng.IntN(2) == 0 {
			from = append(from, m.Seq)
		}
	}
	flushes := slices.DeleteFunc(slices.Clone(w.state.Segments), func(m manifest.Segment) bool {
		return m.Kind != manifest.Flush
	})
	for _, m := range flushes[:w.rng.IntN(len(flushes)+1)] {
		from = append(from, m.Seq)
	}
	if len(from) == 0 {
		return
	}
	e := manifest.Edit{RemoveSegments: from}
	all := map[int]bool{}
	generation := uint64(0)
	for _, seq := range from {
		maps.Copy(all, w.points[seq])
		generation = max(generation, w.disk[seq].Meta.Generation)
	}
	n := 1 + w.rng.IntN(3)
	for i := range n {
		seq := w.next
		w.next++
		w.points[seq] = map[int]bool{}
		for p := range all {
			if p%n == i {
				w.points[seq][p] = true
			}
		}
		kind := manifest.Window
		if w.rng.IntN(2) == 0 {
			kind = manifest.Overlay
		}
		e.AddSegments = append(e.AddSegments, manifest.Segment{
			Seq: seq, Kind: kind, Generation: generation, Points: int64(len(w.points[seq])),
			Ranges: []manifest.Range{{Bucket: 1, First: 0, Past: 1}},
		})
	}
	e.NextSeq = w.next
	w.write(e)
	if crash {
		if w.rng.IntN(2) == 0 {
			delete(w.disk, e.AddSegments[len(e.AddSegments)-1].Seq)
		}
		return
	}
	w.commit(e)
	for _, seq := range from {
		if !stay || w.rng.IntN(2) == 0 {
			delete(w.disk, seq)
		}
	}
}

// input is what a start would find with the given state.
func (w *world) input(st *manifest.State, logFrom uint64) Input {
	in := Input{State: st, LogFrom: logFrom}
	for _, seq := range slices.Sorted(maps.Keys(w.disk)) {
		in.Files = append(in.Files, *w.disk[seq])
		in.Highest = max(in.Highest, seq)
	}
	return in
}

// served returns the points that a plan serves.
func (w *world) served(p Plan) map[int]bool {
	all := map[int]bool{}
	for _, m := range p.State.Segments {
		maps.Copy(all, w.points[m.Seq])
	}
	return all
}

// check compares a plan with what every file on the disk holds.
func (w *world) check(t *testing.T, what string, in Input) Plan {
	t.Helper()
	p := Decide(in)
	served := w.served(p)
	if in.LogFrom <= max(1, replayFrom(p.State)) { // the log begins at 1
		for seq, lsn := range w.until {
			if lsn > p.State.ReplayPosition { // the replay has it
				maps.Copy(served, w.points[seq])
			}
		}
	}
	for i := range in.Files {
		f := &in.Files[i]
		if !f.opens() {
			continue
		}
		for point := range w.points[f.Seq] {
			if !served[point] {
				t.Fatalf("%s: point %d of segment %d, which is whole, is lost\nstate %+v\nlines %v", what,
					point, f.Seq, in.State, p.Lines())
			}
		}
	}
	if p.NextSeq <= in.Highest {
		t.Fatalf("%s: number %d is given again", what, p.NextSeq)
	}
	for _, m := range p.State.Segments {
		if w.disk[m.Seq] == nil {
			t.Fatalf("%s: segment %d counts and is not there", what, m.Seq)
		}
	}
	for _, v := range p.Verdicts {
		if v.Fate == Remove && in.State.Suspect {
			t.Fatalf("%s: %s is removed on the word of a damaged MANIFEST", what, v.File.Path)
		}
	}
	return p
}

// sum is the state of some of the edits.
func sum(edits []manifest.Edit, without func(i int) bool) *manifest.State {
	st := &manifest.State{}
	for i := range edits {
		e := edits[i]
		if without(i) {
			st.Suspect = true
			continue
		}
		if st.Suspect {
			e.ReplayPosition, e.ReplayPositions = 0, nil
		}
		st.Apply(&e)
	}
	return st
}

// Whatever edits are lost, whatever files a crash or a failed removal left, and
// whatever file is damaged beside: no point of a whole file is lost, and without damage to a file
// none is counted as lost.
func TestNoPointOfAWholeFileIsLost(t *testing.T) {
	for seed := range uint64(400) {
		w := newWorld(seed)
		for range 3 + w.rng.IntN(9) {
			if w.rng.IntN(2) == 0 {
				w.flush(w.rng.IntN(12) == 0)
			} else {
				w.merge(w.rng.IntN(6) == 0, w.rng.IntN(3) == 0)
			}
		}
		if len(w.log) == 0 {
			continue
		}
		states := map[string]*manifest.State{"whole": w.state.Clone(), "none": {Suspect: true}}
		for i := range w.log {
			states[fmt.Sprint("without edit ", i)] = sum(w.log, func(j int) bool { return j == i })
			states[fmt.Sprint("old, up to edit ", i)] = sum(w.log[:i], func(int) bool { return false })
			states[fmt.Sprint("torn at edit ", i)] = sum(w.log, func(j int) bool { return j >= i })
			j := w.rng.IntN(len(w.log))
			states[fmt.Sprint("without edits ", i, " and ", j)] = sum(w.log, func(k int) bool {
				return k == i || k == j
			})
		}
		for name, st := range states {
			for _, logFrom := range []uint64{1, max(w.state.AccountLSN, 1)} {
				what := fmt.Sprintf("seed %d, %s, log from %d", seed, name, logFrom)
				in := w.input(st, logFrom)
				p := w.check(t, what, in)
				if len(p.Lost) > 0 {
					t.Fatalf("%s: counts a loss: %v", what, p.Lines())
				}
				if logFrom == w.state.AccountLSN && name != "whole" &&
					p.State.AccountLSN < w.state.AccountLSN && w.anyFlush() {
					t.Fatalf("%s: the account is of %d, not of %d", what, p.State.AccountLSN, w.state.AccountLSN)
				}
				for i := range in.Files {
					bad := in
					bad.Files = slices.Clone(in.Files)
					bad.Files[i].Damage, bad.Files[i].Edit = "a flipped bit", nil
					w.check(t, fmt.Sprintf("%s, %s damaged", what, in.Files[i].Path), bad)
					j := w.rng.IntN(len(in.Files))
					bad.Files[j].Damage, bad.Files[j].Edit = "another", nil
					w.check(t, fmt.Sprintf("%s, %s and %s damaged", what, in.Files[i].Path, in.Files[j].Path), bad)
				}
			}
		}
	}
}

// A start after a start finds nothing more to do.
func TestAPlanSettles(t *testing.T) {
	for seed := range uint64(200) {
		w := newWorld(seed)
		for range 8 {
			if w.rng.IntN(2) == 0 {
				w.flush(false)
			} else {
				w.merge(w.rng.IntN(6) == 0, w.rng.IntN(2) == 0)
			}
		}
		lost := w.rng.IntN(max(1, len(w.log)))
		in := w.input(sum(w.log, func(i int) bool { return i == lost }), 1)
		if len(in.Files) > 0 && w.rng.IntN(2) == 0 {
			in.Files[w.rng.IntN(len(in.Files))].Damage = "bad"
		}
		p := Decide(in)
		again := Input{State: p.State, Highest: in.Highest, LogFrom: 1}
		for i := range p.Verdicts {
			if v := &p.Verdicts[i]; v.Fate == Keep || v.Fate == Adopt {
				again.Files = append(again.Files, *v.File)
			}
		}
		q := Decide(again)
		if q.Changed || len(q.Lines()) > 0 {
			t.Fatalf("seed %d: a second start does %v\nthe first did %v", seed, q.Lines(), p.Lines())
		}
		if !maps.Equal(w.served(p), w.served(q)) {
			t.Fatalf("seed %d: a second start serves other points", seed)
		}
	}
}

// A file that was counted as lost and is there again is taken in, and its points
// are recovered.
func TestALostFileComesBack(t *testing.T) {
	w := newWorld(1)
	w.flush(false)
	w.flush(false)
	file := *w.disk[1]
	delete(w.disk, 1)
	p := Decide(w.input(w.state.Clone(), 1))
	if len(p.Lost) != 1 || p.Lost[0].Meta.Points != 3 || p.Lost[0].Meta.Seq != 1 {
		t.Fatalf("%+v", p.Lost)
	}
	w.state = p.State
	w.flush(false)
	w.disk[1] = &file
	q := Decide(w.input(w.state.Clone(), 1))
	if len(q.Found) != 1 || q.Found[0] != (manifest.LostSegment{Seq: 1, Points: 3}) ||
		!q.State.HasSegment(1) || len(q.State.Lost) != 0 {
		t.Fatalf("%+v, %v", q.Found, q.Lines())
	}
	if text := fmt.Sprint(q.Lines()); !strings.Contains(text, "is taken in") {
		t.Error(text)
	}
}

// anyFlush reports whether a file tells the newest account: the flush itself, or a
// merge that came behind it.
func (w *world) anyFlush() bool {
	for _, f := range w.disk {
		if f.Edit.AccountLSN >= w.state.AccountLSN {
			return true
		}
	}
	return false
}

// BenchmarkDecide is a start of a store of so many segments, each of which names all before it.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{50, 200, 800} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newWorld(1)
			for range n {
				w.flush(false)
			}
			in := w.input(w.state, w.lsn)
			for b.Loop() {
				Decide(in)
			}
		})
	}
}
