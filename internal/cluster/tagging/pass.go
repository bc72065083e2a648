package tagging

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/tags"
)

// A pass compares what two nodes know, and gives each of them what it lacks. Behind it the peer has
// on disk what this node knew when it began, and the other way round, but for refused changes.
type pass struct {
	*exchange
	peer    ring.ID
	refused uint64 // changes of buckets that one of the two does not have
	moved   int64  // changes that went or came
}

// compare runs a pass with a peer.
func (x *exchange) compare(ctx context.Context, peer ring.ID) (p pass, err error) {
	p = pass{exchange: x, peer: peer}
	own := tags.Copies{Of: x.o.Tags.Index()}.Digests()
	var other []byte
	request := binary.LittleEndian.AppendUint64([]byte{kindCompare}, sumOf(&own))
	err = x.o.Ask(ctx, peer, request, func(part []byte) error {
		if other = append(other, part...); len(other) > 8*tags.Ranges {
			return errMalformed
		}
		return nil
	})
	if err != nil || len(other) == 0 {
		return p, err
	}
	theirs, err := parseDigests(other)
	if err != nil {
		return p, err
	}
	for first := 0; first < tags.Ranges; first++ {
		past := first
		for past < tags.Ranges && own[past] != theirs[past] {
			past++
		}
		if past == first {
			continue
		}
		if err := p.ranges(ctx, uint32(first)<<rangeBits, uint32(past)<<rangeBits-1); err != nil {
			return p, err
		}
		first = past
	}
	return p, x.sync(ctx)
}

// rangeBits are the bits of a hash within a range.
const rangeBits = 22

// ranges makes what two nodes know of the series between two hashes the same, page by page.
func (p *pass) ranges(ctx context.Context, from, through uint32) error {
	for {
		have, reached := tags.Copies{Of: p.o.Tags.Index()}.SeriesDigests(from, through, pageSeries)
		f := fetch{from: from, through: reached, have: have}
		reached, err := p.page(ctx, &f)
		if err != nil || reached >= through {
			return err
		}
		from = reached + 1
	}
}

// page asks for what differs, takes it, and pushes what the peer wants. It returns the hash up to
// which that is done.
func (p *pass) page(ctx context.Context, f *fetch) (reached uint32, err error) {
	a := adopter{x: p.exchange}
	var s items
	var wanted []uint64
	ended := false
	err = p.o.Ask(ctx, p.peer, f.append(nil), func(part []byte) error {
		return s.add(part, func(kind byte, body []byte) error {
			switch kind {
			case itemDefined:
				return p.o.Learn(body)
			case itemChange:
				p.moved++
				rest, err := a.add(ctx, bytes.Clone(body))
				if len(rest) > 0 {
					return errMalformed
				}
				return err
			case itemWanted:
				if len(body) != 8 || len(wanted) > len(f.have) {
					return errMalformed
				}
				wanted = append(wanted, binary.LittleEndian.Uint64(body))
				return nil
			}
			if len(body) != 4 {
				return errMalformed
			}
			reached, ended = binary.LittleEndian.Uint32(body), true
			return nil
		})
	})
	if err == nil && (!ended || !s.isComplete() || reached < f.from || reached > f.through) {
		err = errMalformed
	}
	if err = errors.Join(err, a.flush(ctx)); err != nil {
		return 0, err
	}
	p.refused += a.taken.refused
	return reached, p.give(ctx, wanted, a.taken.deletions)
}

// bucketsOfPush is how many buckets the changes of a push are of at most: their definitions stand
// in it.
const bucketsOfPush = 128

// give pushes deletions, and all that is known of series.
func (p *pass) give(ctx context.Context, series []uint64, deletions []deletedSeries) error {
	g := push{deletions: deletions}
	of := make(map[uint64]bool)
	send := func() error {
		if len(g.changes)+len(g.deletions) == 0 {
			return nil
		}
		g.defined = p.o.Define(slices.Sorted(maps.Keys(of)))
		got, err := p.push(ctx, p.peer, &g)
		p.refused += got.refused
		g.changes, g.deletions = g.changes[:0], nil
		clear(of)
		return err
	}
	for _, id := range series {
		err := tags.Copies{Of: p.o.Tags.Index()}.WalkID(id, func(c *tags.Change) error {
			p.moved++
			of[c.Bucket] = true
			if g.changes = tags.AppendChange(g.changes, c); len(g.changes) >= pushBytes ||
				len(of) == bucketsOfPush {
				return send()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return send()
}

// push pushes to a peer. What it says of deletions is done here.
func (x *exchange) push(ctx context.Context, peer ring.ID, p *push) (pushReply, error) {
	var body []byte
	err := x.o.Ask(ctx, peer, p.append(nil), func(part []byte) error {
		if body = append(body, part...); len(body) > maxPushed {
			return errMalformed
		}
		return nil
	})
	var got pushReply
	if err == nil {
		err = got.parse(body)
	}
	if err == nil {
		err = x.delete(ctx, got.deletions)
	}
	return got, err
}

// maxPushed bounds the reply to a push.
const maxPushed = 16 + maxDeletions*32
