package reader

import (
	"cmp"
	"errors"
	"iter"
	"math"
	"slices"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/head"
)

// layer is a segment that may hold chunks of a series.
type layer struct {
	seg    *version.Segment
	order  int // of two that hold a slot the higher wins
	cursor segment.Cursor
	found  bool // the cursor has found its place, but does not stand there
	opened bool
	failed error // of opening it ahead
	polled int   // of the cursor's gaps

	// Of a window:
	first, past int64          // chunks that it stands for
	loaded      segment.Rollup // whose entries the aggregator has, plus 1
	spans       uint16         // of it
	noRollups   [2]bool        // they are damaged, or not kept, by level
	damage      error          // of them
}

// next opens the cursor of a window where that was not done, and returns the
// first chunk numbered from or above, or the end of the window.
func (l *layer) next(a *aggregator, from int64) (int64, error) {
	if !l.opened {
		l.open(a, from)
	} else if err := l.cursor.Advance(from); err != nil {
		return 0, err
	}
	if err := l.failed; err != nil {
		l.failed = nil
		return l.past, err
	}
	l.poll(a)
	if n, ok := l.cursor.Chunk(); ok {
		return n, nil
	}
	return l.past, nil
}

// find has the cursor of a window find its place, for open to follow.
func (l *layer) find(a *aggregator, from int64) {
	l.found = l.cursor.Find(l.seg.Reader, a.series.Bucket, segment.Hash(a.series.ID), from,
		min(l.past, chunksOf(a.end))) == nil
}

// open opens the cursor of a window at the first chunk numbered from or above. What fails is
// what next returns.
func (l *layer) open(a *aggregator, from int64) {
	l.opened = true
	var err error
	if past := min(l.past, chunksOf(a.end)); l.found {
		err = l.cursor.Stand(from)
	} else {
		err = l.cursor.Open(l.seg.Reader, a.series.Bucket, segment.Hash(a.series.ID), from, past)
	}
	if err != nil {
		a.layers.lose(a, l.seg, from, min(l.past, chunksOf(a.end)))
		l.failed = a.look.o.Damage.NoteReadError(l.seg, err)
	}
}

// poll takes in what the cursor passed by because it is damaged.
func (l *layer) poll(a *aggregator) {
	gaps := l.cursor.LostGaps()
	for ; l.polled < len(gaps); l.polled++ {
		a.layers.lose(a, l.seg, gaps[l.polled].First, gaps[l.polled].Past)
	}
}

// at reports whether the layer holds the chunk that was asked for last.
func (l *layer) at(number int64) bool {
	n, ok := l.cursor.Chunk()
	return ok && n == number
}

// layers are the sources of a series for a range of slots. A window that no
// other one overlaps stands apart: where nothing else holds anything, its levels
// can be used, and its index is not read before it is needed.
type layers struct {
	windows []layer // by the chunks that they stand for
	others  []layer // in order; all opened
	w       int     // the window under way

	head  []int64  // chunks that the head holds, ascending
	words []uint64 // of them, copied; of each as many as are in the look, at their slots

	nextShared int64 // chunk of the first of others and head, at or above the one asked for
	nextHead   int   // in head

	touched []version.Chunks // what is unknown of these, laying says
}

// lose notes chunks of a segment that cannot be read and are marked.
func (y *layers) lose(a *aggregator, seg *version.Segment, first, past int64) {
	p := hole.PrefixOf(a.series.ID)
	for _, m := range seg.Meta.Marks.Clip(hole.Mark{
		Bucket: a.series.Bucket,
		First:  first,
		Past:   past,
		Low:    p,
		High:   p,
	}) {
		y.touched = append(y.touched, version.Chunks{First: m.First, Past: m.Past})
	}
}

// nextTouched returns the first chunk numbered from or above that damage may hide.
func (y *layers) nextTouched(from int64) int64 {
	next := int64(math.MaxInt64)
	for _, r := range y.touched {
		if r.Past > from {
			next = min(next, max(from, r.First))
		}
	}
	return next
}

// maxHeadChunks is how many chunks of the head are copied for one look.
const maxHeadChunks = 64

// begin makes room for the sources of a look.
func (y *layers) begin() {
	*y = layers{
		windows:    y.windows[:0],
		others:     y.others[:0],
		head:       y.head[:0],
		words:      y.words[:0],
		touched:    y.touched[:0],
		nextShared: -1,
	}
}

// copyHead copies what the head holds of the slots [from, past), or of fewer where
// these are very many chunks, and returns where it ended.
func (y *layers) copyHead(g *head.Group, col int, id metric.SeriesID, from, past int64) (end int64,
	own bool, err error) {
	y.head, y.words = y.head[:0], y.words[:0]
	if g == nil {
		return past, true, nil
	}
	y.head, own = g.Chunks(col, id, from, past, y.head[:0])
	slices.Sort(y.head)
	y.head = slices.Compact(y.head)
	if len(y.head) > maxHeadChunks {
		past = y.head[maxHeadChunks] * chunk.Slots
		y.head = y.head[:maxHeadChunks]
	}
	y.words = cleared(y.words, len(y.head)*chunk.Slots)
	for i := 0; own && err == nil && i < len(y.head); i++ {
		start := y.head[i] * chunk.Slots
		lo, hi := max(from, start), min(past, start+chunk.Slots)
		words := y.words[i*chunk.Slots:][:chunk.Slots]
		own, err = g.Read(col, id, lo, words[lo-start:hi-start])
	}
	return past, own, err
}

// layHead lays the copy of the head over words, the slots from from on of the chunk
// that inHead was asked for last.
func (y *layers) layHead(from int64, words []uint64) {
	number := y.head[y.nextHead]
	overlay(words, y.words[y.nextHead*chunk.Slots:][from-number*chunk.Slots:])
}

// open finds the segments of the slots [from, past) that lie below the copy of the
// head.
func (y *layers) open(a *aggregator, from, past int64) error {
	first, last := from/chunk.Slots, (past-1)/chunk.Slots
	l := laying{
		damage:  a.look.o.Damage,
		version: a.look.version,
		bucket:  a.series.Bucket,
		id:      a.series.ID,
		from:    from,
	}
	l.begin(past - from)
	for _, span := range l.spans {
		y.touched = append(y.touched,
			version.Chunks{First: span.From / chunk.Slots, Past: chunksOf(span.Past)})
	}
	order := 0
	err := a.look.version.SegmentsOf(a.series.Bucket, a.series.ID,
		version.Chunks{First: first, Past: last + 1}, func(seg *version.Segment) error {
			order++
			if seg.Meta.Kind == manifest.Window {
				r := seg.Meta.Ranges[0]
				y.windows = append(y.windows, layer{seg: seg, order: order, first: r.First, past: r.Past})
				return nil
			}
			l := layer{seg: seg, order: order, opened: true}
			return y.addOther(a, l, first, last+1)
		})
	if err != nil {
		return err
	}
	slices.SortFunc(y.windows, func(a, b layer) int { return cmp.Compare(a.first, b.first) })
	return y.demote(a, first, last+1)
}

// addOther opens a layer and keeps it if it holds anything.
func (y *layers) addOther(a *aggregator, l layer, first, past int64) error {
	y.others = append(y.others, l)
	o := &y.others[len(y.others)-1]
	if err := o.cursor.Open(o.seg.Reader, a.series.Bucket, segment.Hash(a.series.ID), first,
		past); err != nil {
		y.lose(a, o.seg, first, past)
		return a.look.o.Damage.NoteReadError(o.seg, err)
	}
	o.poll(a)
	if _, ok := o.cursor.Chunk(); ok {
		return nil
	}
	err := o.close(a)
	y.others = y.others[:len(y.others)-1]
	return err
}

// demote makes others of the windows that overlap another window: files of one
// window, cut by series, of which all but one are dropped for this one.
func (y *layers) demote(a *aggregator, first, past int64) error {
	kept := y.windows[:0]
	for i := 0; i < len(y.windows); {
		j, end := i+1, y.windows[i].past
		for j < len(y.windows) && y.windows[j].first < end {
			end = max(end, y.windows[j].past)
			j++
		}
		if j-i == 1 {
			kept = append(kept, y.windows[i])
			i = j
			continue
		}
		held := len(y.others)
		for ; i < j; i++ {
			w := y.windows[i]
			w.opened = true
			if err := y.addOther(a, w, max(first, w.first), min(past, w.past)); err != nil {
				return err
			}
		}
		if len(y.others) == held+1 {
			kept = append(kept, y.others[held])
			y.others = y.others[:held]
		}
	}
	y.windows = kept
	slices.SortFunc(y.others, func(a, b layer) int { return cmp.Compare(a.order, b.order) })
	return nil
}

// close ends all cursors and notes the damage that was met.
func (y *layers) close(a *aggregator) (err error) {
	for _, list := range [2][]layer{y.windows, y.others} {
		for i := range list {
			err = errors.Join(err, list[i].close(a))
		}
	}
	return err
}

func (l *layer) close(a *aggregator) error {
	read, err := l.cursor.Close()
	a.stats.Bytes += read
	if err == nil {
		err = l.damage
	}
	return a.look.o.Damage.NoteReadError(l.seg, err)
}

// shared returns the first chunk numbered from or above of which something else
// than the windows holds anything. from never falls.
func (y *layers) shared(a *aggregator, from int64) (int64, error) {
	if y.nextShared >= from {
		return y.nextShared, nil
	}
	next := int64(math.MaxInt64)
	for i := range y.others {
		if err := y.others[i].cursor.Advance(from); err != nil {
			return 0, err
		}
		y.others[i].poll(a)
		if n, ok := y.others[i].cursor.Chunk(); ok {
			next = min(next, n)
		}
	}
	for y.nextHead < len(y.head) && y.head[y.nextHead] < from {
		y.nextHead++
	}
	if y.nextHead < len(y.head) {
		next = min(next, y.head[y.nextHead])
	}
	y.nextShared = next
	return next, nil
}

// window returns the window that stands for a chunk, or nil. The numbers never
// fall.
func (y *layers) window(number int64) *layer {
	for y.w < len(y.windows) && y.windows[y.w].past <= number {
		y.w++
	}
	if y.w < len(y.windows) && y.windows[y.w].first <= number {
		return &y.windows[y.w]
	}
	return nil
}

// nextWindow returns where the next window begins, behind a number for which
// there is none.
func (y *layers) nextWindow() int64 {
	if y.w < len(y.windows) {
		return y.windows[y.w].first
	}
	return math.MaxInt64
}

func (y *layers) inHead(number int64) bool {
	return y.nextHead < len(y.head) && y.head[y.nextHead] == number
}

// holding yields the layers that hold a chunk, the one that wins last.
func (y *layers) holding(number int64) iter.Seq[*layer] {
	return func(yield func(*layer) bool) {
		w := y.window(number)
		if w != nil && !w.at(number) {
			w = nil
		}
		for i := range y.others {
			o := &y.others[i]
			if w != nil && w.order < o.order {
				if !yield(w) {
					return
				}
				w = nil
			}
			if o.at(number) && !yield(o) {
				return
			}
		}
		if w != nil {
			yield(w)
		}
	}
}

// only returns the segment that alone holds a chunk, or nil where there are
// several, the head has something of it, or damage may hide some of it.
func (y *layers) only(number int64) *layer {
	if y.inHead(number) || y.nextTouched(number) == number {
		return nil
	}
	var one *layer
	for l := range y.holding(number) {
		if one != nil {
			return nil
		}
		one = l
	}
	return one
}
