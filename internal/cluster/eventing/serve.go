package eventing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dalmatiner/internal/cluster/call"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/events"
)

// server answers other nodes.
type server struct{ *Eventing }

// Serve answers a request of another node.
func (e *Eventing) Serve(ctx context.Context, from ring.ID, request []byte,
	reply func(part []byte) error) error {
	if err := e.o.Check(); err != nil {
		return err
	}
	if len(request) == 0 {
		return errMalformed
	}
	s := server{e}
	var err error
	switch body := request[1:]; request[0] {
	case kindStore:
		err = s.serveStore(ctx, body, reply)
	case kindPage:
		err = s.servePage(ctx, body, reply)
	case kindSums:
		err = s.serveSums(ctx, from, body, reply)
	case kindDigests:
		err = s.serveDigests(ctx, from, body, reply)
	case kindCount:
		err = s.serveCount(ctx, body, reply)
	case kindFollow:
		err = s.serveFollow(from, body)
	case kindShow:
		err = s.serveShow(from, body)
	default:
		err = errMalformed
	}
	refusal := (*memory.Refusal)(nil)
	switch {
	case errors.As(err, &refusal):
		err = &call.Error{Peer: e.o.Self, Code: call.Memory, Text: err.Error()}
	case errors.Is(err, buckets.ErrUnknown):
		err = &call.Error{Peer: e.o.Self, Code: call.UnknownBucket, Text: err.Error()}
	}
	return err
}

func (e server) serveStore(ctx context.Context, body []byte, reply func([]byte) error) error {
	var m storeRequest
	if err := m.parse(body); err != nil {
		return err
	}
	if len(m.defined) > 0 {
		if err := e.o.Learn(m.defined); err != nil {
			return err
		}
	}
	classes, err := e.take(ctx, &m)
	if err != nil {
		return err
	}
	out := make([]byte, len(classes))
	for i, c := range classes {
		out[i] = byte(c)
	}
	return give(out, reply)
}

func (e server) servePage(ctx context.Context, body []byte, reply func([]byte) error) error {
	var m pageRequest
	if err := m.parse(body); err != nil {
		return err
	}
	p, err := e.page(ctx, &m)
	if err != nil {
		return err
	}
	return give(p.append(nil), reply)
}

// page reads a page of the events of this node. A bucket that is not here has none.
func (e *Eventing) page(ctx context.Context, m *pageRequest) (p page, err error) {
	if err := e.checkVersion(m.version); m.version != (ring.Version{}) && err != nil {
		return page{}, err
	}
	info, ok := e.o.ByID(m.bucket)
	if !ok {
		return page{}, nil
	}
	read, start, end := e.o.Own.Read, m.start, m.end
	if m.back {
		read = e.o.Own.ReadBack
	}
	behind := m.behind != position{}
	if behind && m.back {
		end = min(end, m.behind.time+1)
	} else if behind {
		start = max(start, m.behind.time)
	}
	last, bytes := events.Event{Time: m.behind.time, ID: m.behind.id}, 0
	p.gaps, err = read(ctx, info.Name, start, end, func(n *events.Event) error {
		order := eventfile.Compare(n, &last)
		if behind && (order == 0 || order < 0 != m.back) {
			return nil
		}
		size := eventHead
		if !m.keys {
			size += len(n.Body)
		}
		if len(p.list) > 0 && bytes+size > m.limit {
			p.more = true
			return events.Stop
		}
		bytes += size
		got := events.Event{Time: n.Time, ID: n.ID}
		if !m.keys {
			got.Body = slices.Clone(n.Body)
		}
		p.list = append(p.list, got)
		return nil
	})
	if errors.Is(err, buckets.ErrUnknown) {
		return page{}, nil // it was deleted
	}
	p.gaps = mergeGaps(p.gaps, maxGaps)
	return p, err
}

// checkVersion returns an error with which a node asks for another try where the ring is not the
// one that was meant.
func (e *Eventing) checkVersion(version ring.Version) error {
	if v := e.o.View().Version(); v != version {
		return &call.Error{
			Peer: e.o.Self,
			Code: call.OtherRing,
			Text: fmt.Sprintf("its ring is %s, not %s", v, version),
		}
	}
	return nil
}

// owns reports whether a node owns what a bucket has of an hour, or will.
func (e *Eventing) owns(v *ring.View, id ring.ID, bucket uint64, hour int64) bool {
	return v.Owns(id, pieceOf(v, bucket, hour), e.o.Copies(bucket))
}

// digests returns the digests of this node that a node owns. Events that expire soon are left out.
func (e *Eventing) digests(ctx context.Context, of ring.ID, info *buckets.Info, start, end,
	step int64) ([]events.Digest, error) {
	list, _, err := e.o.Own.Digests(ctx, info.ID, max(start, e.o.Own.WholeFrom(info, step)), end,
		events.Cells{Step: step})
	if err != nil {
		return nil, err
	}
	v, known, owned := e.o.View(), int64(-1), false
	return slices.DeleteFunc(list, func(d events.Digest) bool {
		if hour := d.Start / events.DigestStep; hour != known {
			known, owned = hour, e.owns(v, of, info.ID, hour)
		}
		return !owned
	}), nil
}

// sumsFor returns what stands for the events of this node that another one owns.
func (e server) sumsFor(ctx context.Context, of ring.ID, cut int64) (map[uint64]halves, error) {
	out := make(map[uint64]halves)
	for _, info := range e.o.Own.Buckets() {
		if e.o.Private(info.Name) {
			continue
		}
		list, err := e.digests(ctx, of, &info, 0, maxTime, events.DigestStep)
		if err != nil {
			return nil, err
		}
		old := countBefore(list, cut)
		if s := (halves{sumOf(list[:old]), sumOf(list[old:])}); s != (halves{}) {
			out[info.ID] = s
		}
	}
	return out, nil
}

// maxTime is the end of the last hour that there is.
const maxTime = (1<<63 - 1) / events.DigestStep * events.DigestStep

// serveSums answers once nothing is being stored under an older ring.
func (e server) serveSums(ctx context.Context, from ring.ID, body []byte,
	reply func([]byte) error) error {
	var m sumsRequest
	if err := m.parse(body); err != nil {
		return err
	}
	e.taking.Lock()
	version := e.o.View().Version()
	e.taking.Unlock()
	of, err := e.sumsFor(ctx, from, m.cut)
	if err != nil {
		return err
	}
	return give((&sums{version, of}).append(nil), reply)
}

func (e server) serveDigests(ctx context.Context, from ring.ID, body []byte,
	reply func([]byte) error) error {
	var m digestsRequest
	if err := m.parse(body); err != nil {
		return err
	}
	info, ok := e.o.ByID(m.bucket)
	if !ok {
		return nil
	}
	list, err := e.digests(ctx, from, &info, m.start, m.end, m.step)
	if err != nil {
		return err
	}
	return give(appendDigests(nil, list), reply)
}

func (e server) serveCount(ctx context.Context, body []byte, reply func([]byte) error) error {
	var m countRequest
	if err := m.parse(body); err != nil {
		return err
	}
	t, err := e.ownCells(ctx, &m)
	if err != nil {
		return err
	}
	return give(t.append(nil), reply)
}

func (e server) serveFollow(from ring.ID, body []byte) error {
	var m followRequest
	if err := m.parse(body); err != nil {
		return err
	}
	if p := e.peer(from); p != nil {
		p.tails.set(m.buckets, time.Now().Add(3*e.o.Follow))
	}
	return nil
}

func (e server) serveShow(from ring.ID, body []byte) error {
	var m tailBatch
	if err := m.parse(body); err != nil {
		return err
	}
	if p := e.peer(from); p != nil && p.tails.isNew(&m) {
		e.o.Own.Show(m.bucket, m.list, m.missed)
	}
	return nil
}
