package reader

import (
	"context"
	"fmt"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/sumtree"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/write/head"
)

// maxHold is the most slots of a range for which Aggregate holds a version at a
// time, a multiple of every level: twelve days at a second a slot. It bounds for how
// long it keeps files that are merged away.
const maxHold = 12 * segment.LargeChunks * chunk.Slots

// MinFrom bounds the begin of a range, so that no distance from it to a slot
// overflows. It is 146 million years before 1970 at a millisecond a slot.
const MinFrom = -1 << 62

// pastSteps returns where n steps from from on end, or buckets.MaxSlot+1 if that is less.
func pastSteps(from, step int64, n int) int64 {
	if from > buckets.MaxSlot || int64(n) > (buckets.MaxSlot-from)/step {
		return buckets.MaxSlot + 1
	}
	return from + step*int64(n)
}

// Aggregate fills dst with the aggregates of the series' slots, step by step:
// dst[i] is of the slots [from+i×step, from+(i+1)×step), and its offsets count
// from the first of them. Its Count is 0 where no slot is set, as in every step
// of an unknown series. The float parts of the sums are those of sumtree.Tree, the
// same bits wherever the points lie.
//
// It takes levels and headers where they hold all of what there is of a piece
// of a step, and decodes the rest. Nothing is carried from one step to the next.
func (r *Reader) Aggregate(ctx context.Context, s Series, from, step int64,
	dst []chunk.Header) (Stats, error) {
	clear(dst)
	if step <= 0 {
		return Stats{}, fmt.Errorf("an aggregate over steps of %d slots: a step has at least one", step)
	}
	if from < MinFrom {
		return Stats{}, fmt.Errorf("an aggregate from slot %d on: the lowest is %d", from, int64(MinFrom))
	}
	first := max(from, s.Oldest, 0) // older than the TTL: hidden at once
	past := pastSteps(from, step, len(dst))
	if !r.o.Index.Has(s.ID) || first >= past {
		return Stats{}, ctx.Err()
	}
	if err := r.o.Replay(ctx, s.ID); err != nil {
		return Stats{}, err
	}
	k, err := r.enter()
	if err != nil {
		return Stats{}, err
	}
	defer k.leave()
	a := r.aggregator()
	defer r.aggregators.Put(a)
	a.begin(k, s, from, step, dst)
	err = a.run(ctx, first, past)
	a.endStep()
	return a.stats, err
}

// aggregator is an aggregate read under way, with its memory.
type aggregator struct {
	look   *look
	series Series
	from   int64 // of the first step
	step   int64
	dst    []chunk.Header
	stats  Stats
	tree   sumtree.Tree // of the open step
	open   int64        // that has more pieces than one; -1 for none
	digest *digest      // not nil: it is made in place of aggregates

	end    int64 // of the slots of the look
	layers *layers
	alone  layers
	parts  []part // of several series
	words  [chunk.Slots]uint64
	adder  chunk.Adder
	steps  [chunk.Slots/chunk.Lane + 1]chunk.Header // of one chunk
	units  [segment.MaxSpans]chunk.Header           // of the level of a window
}

func (a *aggregator) begin(k *look, s Series, from, step int64, dst []chunk.Header) {
	a.look, a.series, a.from, a.step, a.dst = k, s, from, step, dst
	a.stats, a.open, a.digest, a.layers = Stats{}, -1, nil, &a.alone
}

// aggregator returns one whose memory was used before, if there is any.
func (r *Reader) aggregator() *aggregator {
	if a, _ := r.aggregators.Get().(*aggregator); a != nil {
		return a
	}
	return new(aggregator)
}

// run does the slots [first, past).
func (a *aggregator) run(ctx context.Context, first, past int64) error {
	first, past = a.extent(first, past)
	for first < past {
		if err := ctx.Err(); err != nil {
			return err
		}
		end, err := a.oneLook(ctx, first, min(past, first-first%maxHold+maxHold))
		if err != nil {
			return err
		}
		first = end
	}
	return nil
}

// extent cuts a range of more slots than are read in one look to what there is
// of the series: one of all time would be gone through for hours.
func (a *aggregator) extent(first, past int64) (int64, int64) {
	if past-first <= maxHold {
		return first, past
	}
	lo, hi := past, first
	// before the segments, to which a flush moves it
	if ref, ok := a.look.o.Index.Lookup(a.series.ID); ok && !ref.Inactive() {
		if g := a.look.o.Groups.Get(ref.Group()); g != nil {
			if from, until, _ := g.Extent(ref.Column(), a.series.ID, first, past); from < until {
				lo, hi = from, until
			}
		}
	}
	v := a.look.o.Versions.Latest()
	_ = v.SegmentsOf(a.series.Bucket, a.series.ID,
		version.Chunks{First: first / chunk.Slots, Past: (past-1)/chunk.Slots + 1},
		func(seg *version.Segment) error {
			for _, r := range seg.Meta.Ranges {
				if r.Bucket == a.series.Bucket {
					lo, hi = min(lo, r.First*chunk.Slots), max(hi, r.Past*chunk.Slots)
				}
			}
			return nil
		})
	l := laying{
		damage:  a.look.o.Damage,
		version: v,
		bucket:  a.series.Bucket,
		id:      a.series.ID,
		from:    first,
	}
	l.begin(past - first)
	for _, span := range l.spans {
		lo, hi = min(lo, span.From), max(hi, span.Past)
	}
	return max(first, lo), min(past, hi)
}

// oneLook does the slots [pos, end) in one look at the series, or fewer where the head
// holds very many chunks of them, and returns where it ended.
func (a *aggregator) oneLook(ctx context.Context, pos, end int64) (int64, error) {
	y := a.layers
	y.begin()
	a.end = end
	known, err := a.look.at(ctx, a.series.ID, func(g *head.Group, col int) (own bool, err error) {
		a.end, own, err = y.copyHead(g, col, a.series.ID, pos, end)
		return own, err
	})
	if err != nil || !known {
		return end, err // unknown: deleted a moment ago
	}
	defer a.look.end()
	return a.end, a.through(pos, y.open(a, pos, a.end))
}

// through does the slots from pos on to the end of the look, whose layers were opened, maybe
// with an error, and closes them.
func (a *aggregator) through(pos int64, err error) error {
	for err == nil && pos < a.end {
		pos, err = a.advance(pos)
	}
	if closeErr := a.layers.close(a); err == nil {
		err = closeErr
	}
	return err
}

// stepEnd is where the step that holds a slot ends, or the look.
func (a *aggregator) stepEnd(pos int64) int64 {
	return pos + min(a.end-pos, a.step-(pos-a.from)%a.step)
}

// advance takes in what begins at pos and returns where it ends.
func (a *aggregator) advance(pos int64) (int64, error) {
	number := pos / chunk.Slots
	shared, err := a.layers.shared(a, number)
	if err != nil {
		return pos, err
	}
	next := min(shared, a.layers.nextTouched(number))
	if w := a.layers.window(number); w != nil {
		if pos%chunk.Slots == 0 {
			if units := a.stored(w, number, next); units > 0 {
				return pos + units*chunk.Slots, nil
			}
		}
		n, err := w.next(a, number)
		if err != nil {
			return pos, err
		}
		next = min(next, n, a.layers.nextTouched(number))
	} else {
		next = min(next, a.layers.nextWindow())
	}
	if next >= chunksOf(a.end) {
		return a.end, nil
	}
	if next > number {
		return next * chunk.Slots, nil
	}
	end := min(a.end, (number+1)*chunk.Slots)
	if a.digest != nil {
		return end, a.digest.chunk(a, number, pos, end)
	}
	if pos%chunk.Slots == 0 && end == pos+chunk.Slots && end <= a.stepEnd(pos) {
		if done, err := a.header(number); done || err != nil {
			return end, err
		}
	}
	if l := a.layers.only(number); l != nil && a.step >= chunk.Lane {
		return end, a.chunk(l, number, pos, end)
	}
	return end, a.decode(number, pos, end)
}

// stored takes in what a window has stored of the chunks from number on, and
// returns for how many it stands, or 0.
func (a *aggregator) stored(w *layer, number, shared int64) int64 {
	if a.digest != nil {
		return a.digest.level(a, w, number, shared)
	}
	return a.level(w, number, shared)
}

// level takes in the entry of a level that begins with the chunk number, the
// larger the better: a step has to cover it, and only the window may hold
// anything of it. It returns for how many chunks it stands, or 0.
func (a *aggregator) level(w *layer, number, shared int64) int64 {
	stepEnd := a.stepEnd(number*chunk.Slots) / chunk.Slots
	for l := segment.Large; l >= segment.Small; l-- {
		n := l.Chunks()
		if number%n != 0 || number+n > min(stepEnd, w.past, shared) || w.noRollups[l] {
			continue
		}
		if w.loaded != l+1 {
			var read int64
			var err error
			w.spans, read, err = w.seg.Reader.Rollups(l, a.series.Bucket, segment.Hash(a.series.ID),
				&a.units)
			a.stats.Bytes += read
			if err != nil {
				// The headers of the chunks say the same.
				w.noRollups[l], w.damage = true, err
				continue
			}
			if w.spans == 0 { // few chunks, or none
				w.noRollups = [2]bool{true, true}
				return 0
			}
			w.loaded = l + 1
		}
		if i := (number - w.first) / n; w.spans>>i&1 != 0 {
			a.add(&a.units[i], number, n)
			a.stats.Rollups++
		}
		return n
	}
	return 0
}

// header takes in a whole chunk by its header. It reports false where more than
// one source holds it, or it is damaged.
func (a *aggregator) header(number int64) (bool, error) {
	l := a.layers.only(number)
	if l == nil {
		return false, nil
	}
	data, err := a.data(l, number)
	if err != nil || data == nil {
		return false, err
	}
	h, err := chunk.ParseHeader(data)
	if err != nil {
		return false, nil
	}
	a.add(&h, number, 1)
	a.stats.Headers++
	return true, nil
}

// data returns the chunk that a layer stands at, with those read that are
// wanted next: up to the next level, where steps are as long as one.
func (a *aggregator) data(l *layer, number int64) ([]byte, error) {
	until := chunksOf(a.end)
	if a.step >= segment.SmallChunks*chunk.Slots {
		until = min(until, number-number%segment.SmallChunks+segment.SmallChunks)
	}
	return l.cursor.Data(until)
}

// chunk takes in the slots [pos, end) of a chunk that only one segment holds,
// step by step.
func (a *aggregator) chunk(l *layer, number, pos, end int64) error {
	data, err := a.data(l, number)
	if err != nil {
		return err
	}
	if data == nil {
		return a.decode(number, pos, end)
	}
	start := number * chunk.Slots
	s := chunk.Steps{
		From:  int(pos - start),
		To:    int(end - start),
		Cut:   int(a.stepEnd(pos) - start),
		Every: int(min(a.step, chunk.Slots)),
	}
	n, first := s.Count(), (pos-a.from)/a.step
	steps := a.dst[first : first+int64(n)]
	direct := a.open != first // none of them has anything
	if !direct {
		steps = a.steps[:n]
	}
	goesOn := a.step-(end-1-a.from)%a.step > 1 // the last one, behind the chunk
	if err := a.adder.Steps(steps, data, s); err != nil {
		clear(steps)
		return a.decode(number, pos, end)
	}
	a.stats.Points += end - pos
	at := int(start - a.from - first*a.step)
	for i := range steps {
		switch h := &steps[i]; {
		case h.Count == 0:
		case direct && (i < n-1 || !goesOn):
			h.FirstOff += at
			h.LastOff += at
		default:
			piece := *h
			*h = chunk.Header{}
			a.add(&piece, number, 1)
		}
		at -= int(a.step)
	}
	return nil
}

// decode takes in the slots [pos, end) of a chunk that several sources hold, step
// by step.
func (a *aggregator) decode(number, pos, end int64) error {
	words, err := a.resolve(number, pos, end)
	if err != nil {
		return err
	}
	off := int(pos - number*chunk.Slots)
	for len(words) > 0 {
		n := int(min(a.stepEnd(pos)-pos, int64(len(words))))
		h := chunk.Summarize(words[:n], off)
		a.add(&h, number, 1)
		words, pos, off = words[n:], pos+int64(n), off+n
	}
	return nil
}

// resolve lays what all sources hold of the slots [pos, end) of a chunk over each
// other. The words are valid until the next call.
func (a *aggregator) resolve(number, pos, end int64) ([]uint64, error) {
	if a.layers.nextTouched(number) == number {
		return a.lay(pos, end)
	}
	words := a.words[:end-pos]
	off := int(pos - number*chunk.Slots)
	clear(words)
	for l := range a.layers.holding(number) {
		data, err := a.data(l, number)
		if err != nil {
			return nil, err
		}
		if data == nil || chunk.DecodeRange(words, data, off) != nil {
			return a.lay(pos, end)
		}
		a.stats.Points += int64(len(words))
	}
	if a.layers.inHead(number) {
		a.layers.layHead(pos, words)
		a.stats.Points += int64(len(words))
	}
	return words, nil
}

// lay is resolve for a chunk of which damage may have taken something: it gives what
// a read gives.
func (a *aggregator) lay(pos, end int64) ([]uint64, error) {
	words := a.words[:end-pos]
	clear(words)
	l := laying{
		damage:  a.look.o.Damage,
		version: a.look.version,
		bucket:  a.series.Bucket,
		id:      a.series.ID,
		from:    pos,
		stats:   &a.stats,
	}
	if err := l.segments(context.Background(), words); err != nil {
		return nil, err
	}
	if a.layers.inHead(pos / chunk.Slots) {
		a.layers.layHead(pos, words)
	}
	l.end(words)
	return words, nil
}

// add takes in the aggregates of chunks from number on, which belong to one step.
func (a *aggregator) add(h *chunk.Header, number, chunks int64) {
	if h.Count == 0 {
		return // stale markers alone
	}
	start := number * chunk.Slots // may lie before the step
	off := start + int64(h.FirstOff) - a.from
	i := off / a.step
	if a.open != i {
		a.endStep()
		if chunks*chunk.Slots-int64(h.FirstOff) >= a.step-off%a.step {
			at := int(start - a.from - i*a.step)
			h.FirstOff += at
			h.LastOff += at
			a.dst[i] = *h // nothing comes behind it
			return
		}
	}
	a.open = i
	a.tree.Add(h, number, chunks, int(start-a.from-i*a.step))
}

// endStep gives out the open step.
func (a *aggregator) endStep() {
	if a.open >= 0 {
		a.tree.End(&a.dst[a.open])
		a.open = -1
	}
}
