package reader

import (
	"context"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/disk/segment"
)

// mostTogether is how many series are looked at together. What the head holds of each is
// copied before the first is done.
const mostTogether = 8

// part is one of several series under way.
type part struct {
	first, end int64
	wanted     bool // it may have points
	long       bool // the head has more of it than one look takes
	opened     bool // its layers are, and not closed
	layers     layers
	stats      Stats
	err        error
}

// AggregateEach is Aggregate for series one after the other: it fills dst for each, and calls
// each with its number, which may do with dst what it likes. Many series take less time so:
// some have one version, and what the next one needs is asked for while one is added up. It
// ends with the first error that each returns.
func (r *Reader) AggregateEach(ctx context.Context, list []Series, from, step int64,
	dst []chunk.Header, each func(i int, st Stats, err error) error) error {
	if step <= 0 || from < MinFrom || pastSteps(from, step, len(dst))-from > maxHold ||
		len(list) == 1 {
		for i := range list {
			st, err := r.Aggregate(ctx, list[i], from, step, dst)
			if err := each(i, st, err); err != nil {
				return err
			}
		}
		return nil
	}
	a := r.aggregator()
	defer r.aggregators.Put(a)
	for i := 0; i < len(list); i += mostTogether {
		some := list[i:min(i+mostTogether, len(list))]
		err := r.together(ctx, a, some, from, step, dst, func(k int, st Stats, err error) error {
			return each(i+k, st, err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// together does AggregateEach for as many as are looked at together.
func (r *Reader) together(ctx context.Context, a *aggregator, list []Series, from, step int64,
	dst []chunk.Header, each func(i int, st Stats, err error) error) error {
	if a.parts == nil {
		a.parts = make([]part, mostTogether)
	}
	parts, past := a.parts[:len(list)], pastSteps(from, step, len(dst))
	for i := range list {
		p, s := &parts[i], &list[i]
		p.first, p.stats, p.err, p.long, p.opened = max(from, s.Oldest, 0), Stats{}, nil, false, false
		if p.wanted = p.first < past && r.o.Index.Has(s.ID); p.wanted {
			p.err = r.o.Replay(ctx, s.ID)
		}
	}
	k, err := r.enter()
	if err != nil {
		return each(0, Stats{}, err)
	}
	defer k.leave()
	if err := k.begin(ctx, func() (bool, error) {
		return k.copyHeads(list, parts, past)
	}); err != nil {
		return each(0, Stats{}, err)
	}
	defer a.closeParts(parts, list)
	for i := range list {
		a.begin(k, list[i], from, step, dst)
		a.find(&parts[i])
	}
	a.stand(list, parts, 0)
	for i := range list {
		a.stand(list, parts, i+1)
		clear(dst)
		p := &parts[i]
		a.begin(k, list[i], from, step, dst)
		a.stats = p.stats
		switch {
		case p.err != nil:
		case p.long:
			a.stats, p.err = r.Aggregate(ctx, list[i], from, step, dst)
		case p.opened:
			a.layers, a.end, p.opened = &p.layers, p.end, false
			p.err = a.through(p.first, nil)
			a.endStep()
		default:
			p.err = ctx.Err()
		}
		if err := each(i, a.stats, p.err); err != nil {
			return err
		}
	}
	return nil
}

// copyHeads copies what the head holds of the series that are wanted.
func (k *look) copyHeads(list []Series, parts []part, past int64) (own bool, err error) {
	for i := range parts {
		p, id := &parts[i], list[i].ID
		if !p.wanted || p.err != nil {
			continue
		}
		ref, ok := k.o.Index.Lookup(id)
		if !ok {
			p.wanted = false // deleted a moment ago
			continue
		}
		p.layers.begin()
		g, col := k.o.Groups.Column(ref)
		if p.end, own, err = p.layers.copyHead(g, col, id, p.first, past); err != nil || !own {
			return own, err
		}
		p.long = p.end < past
	}
	return true, nil
}

// find opens the layers of a part, and has the cursors of windows find their places.
func (a *aggregator) find(p *part) {
	if !p.wanted || p.long || p.err != nil {
		return
	}
	a.layers, a.end, p.opened = &p.layers, p.end, true
	p.err = p.layers.open(a, p.first, p.end)
	if a.step < segment.SmallChunks*chunk.Slots { // else their levels may do
		for i := range p.layers.windows {
			if w := &p.layers.windows[i]; !w.opened {
				w.find(a, max(p.first/chunk.Slots, w.first))
			}
		}
	}
	p.stats = a.stats
}

// stand has the cursors of part i, if there is one, stand at their first chunks, and asks for
// these.
func (a *aggregator) stand(list []Series, parts []part, i int) {
	if i == len(parts) || !parts[i].opened || parts[i].err != nil {
		return
	}
	p := &parts[i]
	a.layers, a.end, a.series = &p.layers, p.end, list[i]
	for j := range p.layers.windows {
		if w := &p.layers.windows[j]; w.found && !w.opened {
			w.open(a, max(p.first/chunk.Slots, w.first))
			w.cursor.Fetch(chunksOf(p.end))
		}
	}
}

// closeParts closes what is still open behind an error.
func (a *aggregator) closeParts(parts []part, list []Series) {
	for i := range parts {
		if p := &parts[i]; p.opened {
			a.layers, a.series, p.opened = &p.layers, list[i], false
			_ = p.layers.close(a) // the error before it is told
		}
	}
}
