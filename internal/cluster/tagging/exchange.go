package tagging

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/zeebo/xxh3"

	"dalmatiner/internal/cluster/call"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/tagstore"
	"dalmatiner/internal/tags"
)

// exchange is what two nodes say to each other. It starts no goroutine and waits for nothing but
// the peer and the disk.
type exchange struct {
	o *Options

	mu    sync.Mutex
	doing map[uint64]int // incarnations of deletions that other nodes told of and that are being done
}

// applyResult is what became of changes and deletions of another node.
type applyResult struct {
	refused   uint64          // of buckets that are not here
	deletions []deletedSeries // of series whose changes were older than that
	applied   tagstore.Applied
}

// The bounds of what is adopted together.
const (
	adoptedChanges = 256
	adoptedBytes   = 512 << 10
)

// adopter takes changes in batches.
type adopter struct {
	x     *exchange
	taken applyResult
	list  []tags.Change
	bytes int
	known map[metric.SeriesID]bool // deletions that are noted
}

// add takes a change, encoded.
func (a *adopter) add(ctx context.Context, encoded []byte) (rest []byte, err error) {
	var c tags.Change
	rest, err = tags.ParseChange(&c, encoded)
	if err != nil {
		return nil, errMalformed
	}
	a.list = append(a.list, c)
	if a.bytes += len(encoded) - len(rest); len(a.list) == adoptedChanges || a.bytes >= adoptedBytes {
		err = a.flush(ctx)
	}
	return rest, err
}

// flush hands over what was added.
func (a *adopter) flush(ctx context.Context) error {
	if len(a.list) == 0 {
		return nil
	}
	applied, err := a.x.o.Tags.Adopt(ctx, a.list)
	if applied.Token > 0 {
		a.taken.applied = applied
	}
	for _, r := range applied.Refused {
		gone, refusal := (*tagstore.DeletedError)(nil), (*memory.Refusal)(nil)
		switch {
		case errors.As(r.Err, &gone):
			a.note(&a.list[r.At], gone.Incarnation)
		case errors.Is(r.Err, buckets.ErrUnknown):
			a.taken.refused++
		case errors.As(r.Err, &refusal) && err == nil:
			err = r.Err
		}
	}
	clear(a.list)
	a.list, a.bytes = a.list[:0], 0
	return err
}

// note notes that the peer is to hear of a deletion.
func (a *adopter) note(c *tags.Change, incarnation uint64) {
	id := metric.Series(c.Bucket, c.Key)
	if len(a.taken.deletions) == maxDeletions || a.known[id] {
		return // further ones are for the next time
	}
	if a.known == nil {
		a.known = make(map[metric.SeriesID]bool)
	}
	a.known[id] = true
	a.taken.deletions = append(a.taken.deletions, deletedSeries{c.Bucket, incarnation, id})
}

// take does what another node pushes. It is in memory when it returns.
func (x *exchange) take(ctx context.Context, p *push) (applyResult, error) {
	if len(p.defined) > 0 {
		if err := x.o.Learn(p.defined); err != nil {
			return applyResult{}, err
		}
	}
	if err := x.delete(ctx, p.deletions); err != nil {
		return applyResult{}, err
	}
	a := adopter{x: x}
	for rest := p.changes; len(rest) > 0; {
		var err error
		if rest, err = a.add(ctx, rest); err != nil {
			return a.taken, err
		}
	}
	err := a.flush(ctx)
	return a.taken, err
}

// delete does deletions that another node told of. They are durable when it returns.
func (x *exchange) delete(ctx context.Context, list []deletedSeries) error {
	of := make(map[uint64][]deletion.At)
	for _, d := range list {
		of[d.bucket] = append(of[d.bucket], deletion.At{ID: d.id, Incarnation: d.incarnation})
	}
	x.mark(list, 1)
	defer x.mark(list, -1)
	for _, bucket := range slices.Sorted(maps.Keys(of)) {
		err := x.o.Delete(ctx, bucket, of[bucket])
		if err != nil && !errors.Is(err, buckets.ErrUnknown) { // it was deleted with all its series
			return err
		}
	}
	return nil
}

// mark notes which deletions are being done here: other nodes need not hear of them from here.
func (x *exchange) mark(list []deletedSeries, n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.doing == nil {
		x.doing = make(map[uint64]int)
	}
	for i := range list {
		at := list[i].incarnation
		if x.doing[at] += n; x.doing[at] == 0 {
			delete(x.doing, at)
		}
	}
}

// noteMark reports whether another node told of a deletion.
func (x *exchange) noteMark(incarnation uint64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.doing[incarnation] > 0
}

// serve answers a request of another node.
func (x *exchange) serve(ctx context.Context, request []byte, reply func(part []byte) error) error {
	if len(request) == 0 {
		return errMalformed
	}
	var err error
	switch body := request[1:]; request[0] {
	case kindPush:
		err = x.servePush(ctx, body, reply)
	case kindCompare:
		err = x.serveCompare(ctx, body, reply)
	case kindFetch:
		err = x.serveFetch(ctx, body, reply)
	default:
		err = errMalformed
	}
	if refusal := (*memory.Refusal)(nil); errors.As(err, &refusal) {
		err = &call.Error{Peer: x.o.Self, Code: call.Memory, Text: err.Error()}
	}
	return err
}

// servePush answers when what was pushed is on disk.
func (x *exchange) servePush(ctx context.Context, body []byte, reply func([]byte) error) error {
	var p push
	if err := p.parse(body); err != nil {
		return err
	}
	t, err := x.take(ctx, &p)
	if err == nil {
		err = x.o.Tags.WaitDurable(ctx, t.applied)
	}
	if err != nil {
		return err
	}
	return reply((&pushReply{t.refused, t.deletions}).append(nil))
}

// sync makes all that this node knows durable: a peer takes an equal digest for an acknowledgement.
func (x *exchange) sync(ctx context.Context) error {
	return x.o.Tags.WaitDurable(ctx, tagstore.Applied{Token: 1})
}

func (x *exchange) serveCompare(ctx context.Context, body []byte, reply func([]byte) error) error {
	if len(body) != 8 {
		return errMalformed
	}
	d := tags.Copies{Of: x.o.Tags.Index()}.Digests()
	if err := x.sync(ctx); err != nil || sumOf(&d) == binary.LittleEndian.Uint64(body) {
		return err
	}
	return reply(appendDigests(nil, &d))
}

// sumOf returns what stands for the digests of all ranges.
func sumOf(d *tags.Digests) uint64 { return xxh3.Hash(appendDigests(nil, d)) }

// writer cuts items into parts.
type writer struct {
	buf   []byte
	reply func([]byte) error
}

func (w *writer) item(kind byte, body []byte) error {
	w.buf = appendItem(w.buf, kind, body)
	if len(w.buf) < call.MaxPart {
		return nil
	}
	return w.flush()
}

func (w *writer) flush() error {
	for len(w.buf) > 0 {
		n := min(len(w.buf), call.MaxPart)
		if err := w.reply(w.buf[:n]); err != nil {
			return err
		}
		w.buf = slices.Delete(w.buf, 0, n)
	}
	return nil
}

// serveFetch answers with what this node knows of series that differ, and with those of which the
// asker knows something else.
func (x *exchange) serveFetch(ctx context.Context, body []byte, reply func([]byte) error) error {
	var f fetch
	if err := f.parse(body); err != nil {
		return err
	}
	index := tags.Copies{Of: x.o.Tags.Index()}
	own, reached := index.SeriesDigests(f.from, f.through, replySeries)
	if err := x.sync(ctx); err != nil {
		return err
	}
	w := writer{reply: reply}
	defined := make(map[uint64]bool)
	var encoded []byte
	give := func(id uint64) error {
		return index.WalkID(id, func(c *tags.Change) error {
			if !defined[c.Bucket] {
				defined[c.Bucket] = true
				if d := x.o.Define([]uint64{c.Bucket}); len(d) > 0 {
					if err := w.item(itemDefined, d); err != nil {
						return err
					}
				}
			}
			encoded = tags.AppendChange(encoded[:0], c)
			return w.item(itemChange, encoded)
		})
	}
	want := func(id uint64) error {
		return w.item(itemWanted, binary.LittleEndian.AppendUint64(nil, id))
	}
	for i, j := 0, 0; i < len(own) || j < len(f.have); {
		switch {
		case i == len(own) || j < len(f.have) && f.have[j].ID < own[i].ID:
			if f.have[j].Hash() > reached {
				j = len(f.have) // all of these are for the next reply
				continue
			}
			if err := want(f.have[j].ID); err != nil {
				return err
			}
			j++
		case j == len(f.have) || own[i].ID < f.have[j].ID:
			if err := give(own[i].ID); err != nil {
				return err
			}
			i++
		default:
			if own[i].Sum != f.have[j].Sum {
				if err := errors.Join(give(own[i].ID), want(own[i].ID)); err != nil {
					return err
				}
			}
			i, j = i+1, j+1
		}
	}
	if err := w.item(itemEnd, binary.LittleEndian.AppendUint32(nil, reached)); err != nil {
		return err
	}
	return w.flush()
}
