package store

import (
	"context"
	"runtime"

	"dalmatiner/internal/head"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/version"
)

// reader is one look after the other at a series: each is a copy of what the head
// holds, and behind it the version that is laid below. In this order a point that a
// flush moves from the one to the other meanwhile is seen twice, never not at all.
type reader struct {
	s       *Store
	version *version.Version // pinned; nil between two looks

	from              int64    // slot of the first copied word, of a read
	words, timestamps []uint64 // copied
}

// Steps of a look, for tests that go on in between.
const (
	stepCopied = "copied"
	stepPinned = "pinned"
)

// enter returns a reader, which leave ends.
func (s *Store) enter() (*reader, error) {
	if !s.versions.Enter() {
		return nil, ErrClosed
	}
	if r, _ := s.idleReaders.Get().(*reader); r != nil {
		return r, nil
	}
	return &reader{s: s}, nil
}

func (r *reader) leave() {
	r.end()
	r.s.versions.Leave()
	r.s.idleReaders.Put(r)
}

// look copies what the head holds of a series and pins the version until end. copyOut
// is called with the column of the series, with no group where the head holds nothing
// of it, and says whether the column still was its own. It may be called again. known is false for a series that is not there; then nothing is
// pinned.
//
// A deletion takes the points out of the head before its tombstone is published. If it
// came between the copy and the version, the copy is of the series before it and the
// rest is not: the look begins again, as it does behind any deletion, for that is rare. It does so, too, while a column changes its
// owner.
func (r *reader) look(ctx context.Context, id metric.SeriesID, copyOut func(g *head.Group, col int) (own bool, err error)) (known bool, err error) {
	for ; ; runtime.Gosched() {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		deletions := r.s.versions.Latest().Deletions
		ref, ok := r.s.index.Lookup(id)
		if !ok {
			return false, nil
		}
		own, err := copyOut(r.s.groups.Column(ref))
		if err != nil {
			return false, err
		}
		if !own {
			continue
		}
		r.step(stepCopied)
		r.version = r.s.versions.Pin()
		r.step(stepPinned)
		if r.version.Deletions == deletions {
			return true, nil
		}
		r.end()
	}
}

func (r *reader) step(name string) {
	if r.s.onLook != nil {
		r.s.onLook(name)
	}
}

// end gives the version back.
func (r *reader) end() {
	if r.version != nil {
		r.s.versions.Unpin(r.version)
		r.version = nil
	}
}

// copyHead copies what the head holds of a column in the slots [from, from+n), of the
// timestamps behind it, too, in a pair.
func (r *reader) copyHead(g *head.Group, col int, id metric.SeriesID, from, n int64, pair bool) (own bool, err error) {
	r.words, r.timestamps = r.words[:0], r.timestamps[:0]
	if g == nil {
		return true, nil
	}
	lo, hi, own := g.Extent(col, id, from, from+n)
	if !own || lo >= hi {
		return own, nil
	}
	r.from = lo
	r.words = cleared(r.words, int(hi-lo))
	if !pair {
		return g.Read(col, id, lo, r.words)
	}
	r.timestamps = cleared(r.timestamps, int(hi-lo))
	return g.ReadPair(col, id, lo, r.words, r.timestamps)
}

// cleared returns n unset words in the memory of words, where there is enough.
func cleared(words []uint64, n int) []uint64 {
	if cap(words) < n {
		return make([]uint64, n)
	}
	words = words[:n]
	clear(words)
	return words
}

// layHead lays the copy of the head over values, the slots from from on, and over
// timestamps unless that is nil.
func (r *reader) layHead(from int64, values, timestamps []uint64) {
	for side, dst := range [2][]uint64{values, timestamps} {
		if src := [2][]uint64{r.words, r.timestamps}[side]; len(src) > 0 && len(dst) > 0 {
			overlay(dst[r.from-from:][:len(src)], src)
		}
	}
}

// overlay lays the set words of src over dst.
func overlay(dst, src []uint64) {
	for i, w := range src[:len(dst)] {
		if w != 0 {
			dst[i] = w
		}
	}
}
