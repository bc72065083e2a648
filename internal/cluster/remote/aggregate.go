package remote

import (
	"context"
	"fmt"
	"slices"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/sumtree"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/query/source"
	"dalmatiner/internal/store/reader"
)

const (
	maxSlots = 512 << 10        // of a copy of all series that are asked for together
	maxPiece = 32 * chunk.Slots // of one series
	maxRead  = 120 * chunk.Slots
)

// AggregateEach implements source.Aggregator.
func (r *Remote) AggregateEach(ctx context.Context, list []source.Series, from, step int64,
	dst []chunk.Header, each func(i int, cost source.Cost, err error) error) error {
	if step <= 0 || from < reader.MinFrom || len(dst) == 0 || from > buckets.MaxSlot ||
		int64(len(dst)) > (buckets.MaxSlot-from)/step {
		return each(0, source.Cost{},
			fmt.Errorf("aggregates of %d steps of %d slots from %d on cannot be", len(dst), step, from))
	}
	if r.allHere(list) {
		local := make([]source.Series, len(list))
		for i, s := range list {
			local[i] = s.(*series).local
		}
		return r.o.Local.Offers().Together.AggregateEach(ctx, local, from, step, dst, each)
	}
	if len(dst) > maxSteps {
		return r.aggregateLong(ctx, list, from, step, dst, each)
	}
	most := min(max(maxSteps/len(dst), 1), maxKeys)
	for done := 0; done < len(list); {
		if n := privates(list[done:]); n > 0 {
			first := done
			err := r.AggregateEach(ctx, list[first:first+n], from, step, dst,
				func(i int, cost source.Cost, err error) error {
					return each(first+i, cost, err)
				})
			if err != nil {
				return err
			}
			done += n
			continue
		}
		b := batch{r: r, info: list[done].(*series).of.info, from: from, step: step, count: len(dst)}
		for _, s := range list[done:] {
			if s := s.(*series); s.of.info.ID == b.info.ID && len(b.keys) < most {
				b.keys = append(b.keys, s.key)
				continue
			}
			break
		}
		if err := b.run(ctx); err != nil {
			return each(done, source.Cost{}, err)
		}
		for i := range b.results {
			copy(dst, b.results[i].headers)
			if err := each(done, b.results[i].cost, nil); err != nil {
				return err
			}
			done++
		}
	}
	return nil
}

// allHere reports whether this node alone answers for the series.
func (r *Remote) allHere(list []source.Series) bool {
	return !slices.ContainsFunc(list, func(s source.Series) bool { return !s.(*series).isLocal() })
}

// privates returns how many of the first series are of buckets that this node alone has.
func privates(list []source.Series) (n int) {
	for n < len(list) && list[n].(*series).of.private {
		n++
	}
	return n
}

// aggregateLong is AggregateEach of more steps than a request asks for.
func (r *Remote) aggregateLong(ctx context.Context, list []source.Series, from, step int64,
	dst []chunk.Header, each func(i int, cost source.Cost, err error) error) error {
	for i := range list {
		var all source.Cost
		var err error
		for at := 0; at < len(dst) && err == nil; at += maxSteps {
			part := dst[at:min(at+maxSteps, len(dst))]
			err = r.AggregateEach(ctx, list[i:i+1], from+int64(at)*step, step, part,
				func(_ int, cost source.Cost, err error) error {
					all.Add(cost)
					all.Unknown = append(all.Unknown, cost.Unknown...)
					all.MoreUnknown += cost.MoreUnknown
					return err
				})
		}
		if err := each(i, all, err); err != nil {
			return err
		}
	}
	return nil
}

// batch is the aggregates of some series of a bucket.
type batch struct {
	r          *Remote
	info       buckets.Info
	keys       [][]byte
	from, step int64
	count      int
	results    []result
}

// result is the aggregates of a series. Those of the steps from resolve on come from merged slots.
type result struct {
	headers []chunk.Header
	cost    source.Cost
	resolve int
}

func (b *batch) endSlot() int64 { return b.from + b.step*int64(b.count) }

// run asks for aggregates and digests, and for the slots of what differs.
func (b *batch) run(ctx context.Context) error {
	first, past := enclosing(b.from, b.step*int64(b.count))
	split := min(max(b.r.live(b.info), first), past)
	q := request{kind: askAggregates, from: b.from, step: b.step, count: b.count, split: split}
	targets, err := b.r.gather(ctx, b.info, q, b.keys)
	if err != nil {
		return err
	}
	b.results = make([]result, len(b.keys))
	var all, some []int
	at := b.count // the first step that may differ where only young chunks do
	if s := split*chunk.Slots - b.from; s < b.step*int64(b.count) {
		at = int(max(s, 0) / b.step)
	}
	for i := range targets {
		switch b.judge(&targets[i], &b.results[i], at) {
		case 0:
			all = append(all, i)
		case b.count:
		default:
			some = append(some, i)
		}
	}
	if err := b.resolve(ctx, all, 0); err != nil {
		return err
	}
	return b.resolve(ctx, some, at)
}

// judge takes the aggregates of one copy as far as they are those of all, and returns the first
// step that they are not of.
func (b *batch) judge(t *target, res *result, young int) int {
	res.resolve = 0
	copies := latestAnswers(t.answers)
	res.headers = make([]chunk.Header, b.count)
	whole := slices.IndexFunc(copies, func(a *answer) bool { return a.headers != nil && !a.newer })
	if whole < 0 || slices.ContainsFunc(t.answers, func(a *answer) bool { return a.newer }) {
		return 0
	}
	one := copies[whole]
	if len(t.answers) > 1 &&
		(len(copies) < len(t.answers) || slices.ContainsFunc(t.answers, b.hasHole)) {
		return 0
	}
	// none of them has any here
	copies = slices.DeleteFunc(slices.Clone(copies), func(a *answer) bool { return a.hints })
	for _, a := range copies {
		switch {
		case a.digests[0] != one.digests[0]:
			return 0
		case a.digests[1] != one.digests[1]:
			res.resolve = young
		}
	}
	if !slices.ContainsFunc(copies, func(a *answer) bool { return a.digests != one.digests }) {
		res.resolve = b.count
	}
	res.headers, res.cost = one.headers, one.cost
	return res.resolve
}

// hasHole reports whether damage took slots of the range from a copy.
func (b *batch) hasHole(a *answer) bool {
	return a.cost.MoreUnknown > 0 || len(clipUnknown(a.cost.Unknown, b.from, b.endSlot())) > 0
}

// resolve aggregates merged slots, from a step on.
func (b *batch) resolve(ctx context.Context, which []int, step int) error {
	from, past := max(b.from+int64(step)*b.step, 0), b.endSlot()
	for n := max(maxSlots/chunk.Slots, 1); len(which) > 0; {
		some := which[:min(n, len(which))]
		which = which[len(some):]
		lo, hi := from, past
		var err error
		if hi-lo > maxRead { // one of all time would be gone through for hours
			lo, hi, err = b.extent(ctx, some, lo, hi)
		}
		if err == nil {
			err = b.fold(ctx, some, step, lo, hi)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) keysOf(which []int) (keys [][]byte) {
	for _, i := range which {
		keys = append(keys, b.keys[i])
	}
	return keys
}

// extent returns the chunks outside of which none of the series has a point.
func (b *batch) extent(ctx context.Context, which []int, from,
	past int64) (first, end int64, err error) {
	targets, err := b.r.gather(ctx, b.info, request{
		kind:  askExtent,
		from:  from,
		count: int(past - from),
	}, b.keysOf(which))
	for i := range targets {
		lo, hi := extent(targets[i].answers)
		switch {
		case lo >= hi:
		case first >= end:
			first, end = lo, hi
		default:
			first, end = min(first, lo), max(end, hi)
		}
	}
	return max(from, first/chunk.Slots*chunk.Slots),
		min(past, (end+chunk.Slots-1)/chunk.Slots*chunk.Slots), err
}

// fold reads the slots [from, past) of series piece by piece, and adds them up from a step on.
func (b *batch) fold(ctx context.Context, which []int, step int, from, past int64) error {
	keys, folds := b.keysOf(which), make([]fold, len(which))
	for k, i := range which {
		res := &b.results[i]
		clear(res.headers[step:])
		res.cost.Unknown = clipUnknown(res.cost.Unknown, b.from, b.from+int64(step)*b.step)
		folds[k] = fold{dst: res.headers, from: b.from, step: b.step, open: -1}
	}
	piece := min(max(int64(maxSlots/len(which)/chunk.Slots), 1)*chunk.Slots, maxPiece)
	words := make([]uint64, piece)
	for at := from; at < past; {
		end := min((at+piece)/chunk.Slots*chunk.Slots, past)
		targets, err := b.r.gather(ctx, b.info, request{
			kind:  askSlots,
			from:  at,
			count: int(end - at),
		}, keys)
		if err != nil {
			return err
		}
		for k := range targets {
			dst, res := words[:end-at], &b.results[which[k]]
			clear(dst)
			cost := merge(targets[k].answers, at, dst, nil)
			folds[k].add(dst, at)
			res.cost.Add(cost)
			res.cost.Unknown = append(res.cost.Unknown, cost.Unknown...)
			b.r.tell(b.info, keys[k], targets[k].answers, at, len(dst))
		}
		at = end
	}
	for k := range folds {
		folds[k].end()
	}
	return nil
}

// fold adds up slots that come in order, step by step, as a store does.
type fold struct {
	dst        []chunk.Header
	from, step int64
	open       int64 // step
	tree       sumtree.Tree
}

// add takes words from a slot on. Those of a chunk come at once.
func (f *fold) add(words []uint64, slot int64) {
	for len(words) > 0 {
		number, i := slot/chunk.Slots, (slot-f.from)/f.step
		n := min(min((number+1)*chunk.Slots, f.from+(i+1)*f.step)-slot, int64(len(words)))
		if i != f.open {
			f.end()
			f.open = i
		}
		f.tree.Words(words[:n], int(slot%chunk.Slots), number, int(number*chunk.Slots-f.from-i*f.step))
		words, slot = words[n:], slot+n
	}
}

// end ends the open step.
func (f *fold) end() {
	if f.open >= 0 {
		f.tree.End(&f.dst[f.open])
		f.open = -1
	}
}

// enclosing returns the chunks that enclose n slots from from on, none below slot 0.
func enclosing(from, n int64) (first, past int64) {
	lo, hi := max(from, 0), max(from+n, 0)
	return lo / chunk.Slots, (hi + chunk.Slots - 1) / chunk.Slots
}
