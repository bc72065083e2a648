package reader

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/series"
)

// Options are what reads go through.
type Options struct {
	Versions *version.Versions
	Index    *series.Index
	Groups   *series.Groups
	Damage   *damage.Notes // takes what reads meet

	// Replay brings what the log still has of a series into the head. It returns at once
	// where no replay is under way.
	Replay func(ctx context.Context, id metric.SeriesID) error
}

// Reader reads the series of a store. Its methods may be called concurrently.
type Reader struct {
	o Options

	// OnStep is called between two steps of a look. It is set before use, and by tests only.
	OnStep func(Step)

	aggregators, looks sync.Pool // of *aggregator, *look
}

// New returns a reader.
func New(o Options) *Reader { return &Reader{o: o} }

// Series is what is read: a series as the caller of a read knows it at that moment.
type Series struct {
	Bucket uint64
	ID     metric.SeriesID // of the values, where the bucket has timestamps
	Oldest int64           // slots below it are older than the bucket's lifetime, and hidden
	Stale  bool            // reads show stale markers, which are unset otherwise
}

// Stats is what a read took.
type Stats struct {
	Rollups int64 // entries of rollups used
	Headers int64 // headers of chunks used
	Points  int64 // slots decoded, once per source that holds them
	Bytes   int64 // read from files

	// Unknown are the slots that damage took, ascending for one read. Aggregates and
	// coverage leave them out.
	Unknown     []Unknown
	MoreUnknown int64 // slots that are not in Unknown, which has as many ranges as it may
}

// Unknown is a range of slots, [From, Past), of a series that are neither set nor
// unset: what lay there is lost to damage, and what lies below it may be out of date.
type Unknown struct {
	From, Past int64
	Why        string // what was lost
}

// maxUnknown bounds Stats.Unknown: a read of at most MaxRead slots has no more.
const maxUnknown = MaxRead / 2

// Add adds o to s.
func (s *Stats) Add(o Stats) {
	s.Rollups += o.Rollups
	s.Headers += o.Headers
	s.Points += o.Points
	s.Bytes += o.Bytes
	s.Unknown = append(s.Unknown, o.Unknown...)
	s.MoreUnknown += o.MoreUnknown
}

// look is one look after the other at a series: each is a copy of what the head
// holds, and behind it the version that is laid below. In this order a point that a
// flush moves from the one to the other meanwhile is seen twice, never not at all.
type look struct {
	*Reader
	version *version.Version // pinned; nil between two looks

	from              int64    // slot of the first copied word, of a read
	words, timestamps []uint64 // copied
}

// Step is a step of a look that is done.
type Step string

// Steps, for tests that go on in between.
const (
	Copied Step = "copied"
	Pinned Step = "pinned"
)

// enter returns a look, which leave ends.
func (r *Reader) enter() (*look, error) {
	if !r.o.Versions.Enter() {
		return nil, version.ErrClosed
	}
	if k, _ := r.looks.Get().(*look); k != nil {
		return k, nil
	}
	return &look{Reader: r}, nil
}

func (k *look) leave() {
	k.end()
	k.o.Versions.Leave()
	k.looks.Put(k)
}

// at copies what the head holds of a series and pins the version until end. copyOut
// is called with the column of the series, with no group where the head holds nothing
// of it, and says whether the column still was its own. It may be called again. known is
// false for a series that is not there; then nothing is pinned.
//
// A deletion takes the points out of the head before its tombstone is published. If it
// came between the copy and the version, the copy is of the series before it and the
// rest is not: the look begins again, as it does behind any deletion, for that is rare. It
// does so, too, while a column changes its owner.
func (k *look) at(ctx context.Context, id metric.SeriesID,
	copyOut func(g *head.Group, col int) (own bool, err error)) (known bool, err error) {
	err = k.begin(ctx, func() (bool, error) {
		ref, ok := k.o.Index.Lookup(id)
		if !ok {
			return false, errUnknown
		}
		return copyOut(k.o.Groups.Column(ref))
	})
	if err == errUnknown {
		return false, nil
	}
	return err == nil, err
}

// errUnknown ends a look at a series that is not there.
var errUnknown = errors.New("no such series")

// begin pins the version behind what copyOut copies of series, whose columns all still were
// their own (see at). After an error nothing is pinned.
func (k *look) begin(ctx context.Context, copyOut func() (own bool, err error)) error {
	for ; ; runtime.Gosched() {
		if err := ctx.Err(); err != nil {
			return err
		}
		deletions := k.o.Versions.Latest().Deletions
		own, err := copyOut()
		if err != nil {
			return err
		}
		if !own {
			continue
		}
		k.step(Copied)
		k.version = k.o.Versions.Pin()
		k.step(Pinned)
		if k.version.Deletions == deletions {
			return nil
		}
		k.end()
	}
}

func (k *look) step(done Step) {
	if k.OnStep != nil {
		k.OnStep(done)
	}
}

// end gives the version back.
func (k *look) end() {
	if k.version != nil {
		k.o.Versions.Unpin(k.version)
		k.version = nil
	}
}

// copyHead copies what the head holds of a column in the slots [from, from+n), of the
// timestamps behind it, too, in a pair.
func (k *look) copyHead(g *head.Group, col int, id metric.SeriesID, from, n int64,
	pair bool) (own bool, err error) {
	k.words, k.timestamps = k.words[:0], k.timestamps[:0]
	if g == nil {
		return true, nil
	}
	lo, hi, own := g.Extent(col, id, from, from+n)
	if !own || lo >= hi {
		return own, nil
	}
	k.from = lo
	k.words = cleared(k.words, int(hi-lo))
	if !pair {
		return g.Read(col, id, lo, k.words)
	}
	k.timestamps = cleared(k.timestamps, int(hi-lo))
	return g.ReadPair(col, id, lo, k.words, k.timestamps)
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
// timestamps unless that is nil. It reports whether there are stale markers in the copy.
func (k *look) layHead(from int64, values, timestamps []uint64) (stale bool) {
	for side, dst := range [2][]uint64{values, timestamps} {
		if src := [2][]uint64{k.words, k.timestamps}[side]; len(src) > 0 && len(dst) > 0 {
			stale = overlay(dst[k.from-from:][:len(src)], src) || stale
		}
	}
	return stale
}

// overlay lays the set words of src over dst, and reports whether there are stale markers
// among them.
func overlay(dst, src []uint64) (stale bool) {
	for i, w := range src[:len(dst)] {
		stale = stale || w == point.Stale
		dst[i] = point.Overwrite(w, dst[i])
	}
	return stale
}

// chunksOf is the first chunk that lies behind all slots before end.
func chunksOf(end int64) int64 { return (end + chunk.Slots - 1) / chunk.Slots }

// slotRange is the chunks of the slots from from on that dst stands for.
func slotRange(from int64, dst []uint64) version.Chunks {
	return version.Chunks{First: from / chunk.Slots, Past: (from+int64(len(dst))-1)/chunk.Slots + 1}
}
