package graphite

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"
	"unsafe"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/ingest/ahead"
	"dalmatiner/internal/ingest/labels"
	"dalmatiner/internal/ingest/unacked"
	"dalmatiner/internal/write"
)

// appender is the way of one sender's points into the node: what all three
// protocols have behind their framing. It is not for concurrent use.
type appender struct {
	s       *Server
	peer    netip.AddrPort
	bucket  *unacked.Bucket
	stream  write.Stream // nil while there is no bucket to write to
	missing string       // why, as a reason
	batch   *batch       // between begin and commit
	dec     decoder

	// Points that the store will refuse as too far ahead, between begin and commit.
	last  uint64 // slot that is not
	ahead int
	most  int64 // their latest time, in ms

	tags   labels.TagBatch
	failed error // of tags: nothing can be stored any more
}

// batch is points on their way to a stream, so that it is called once for many.
type batch struct {
	points []write.Point
	names  []byte // their keys
}

// A batch has the points of an ordinary read: 128 lines of 60 bytes.
const (
	batchPoints = 128
	batchNames  = 8 << 10
	batchSize   = batchNames + batchPoints*int(unsafe.Sizeof(write.Point{}))
)

func newBatch() *batch {
	return &batch{points: make([]write.Point, 0, batchPoints), names: make([]byte, 0, batchNames)}
}

func (s *Server) newAppender(peer netip.AddrPort) appender {
	return appender{s: s, peer: peer, bucket: unacked.NewBucket(s.o.Points, s.o.Bucket, s.o.Monitor),
		tags: s.tags.NewBatch()}
}

// begin prepares for points that have just arrived. Only the failure to store any
// is an error; points without a bucket are refused one by one.
func (a *appender) begin() error {
	stream, resolution, err := a.bucket.Stream()
	a.stream, a.missing = stream, ""
	if err != nil {
		reason, ok := unacked.Refused(err)
		if !ok {
			return err
		}
		a.missing, resolution = reason, 1
	}
	arrived := a.s.o.Now()
	now := arrived.UnixMilli()
	a.dec.reset(now, resolution)
	a.last = uint64((now + a.s.o.MaxFuture.Milliseconds()) / resolution)
	a.tags.Begin(arrived, a.peer)
	a.batch = a.s.batches.Get().(*batch)
	a.s.buffers.Add(batchSize)
	return nil
}

// commit ends what begin began.
func (a *appender) commit() error {
	a.append()
	a.s.batches.Put(a.batch)
	a.s.buffers.Add(-batchSize)
	a.batch = nil
	a.tellAhead()
	return errors.Join(a.failed, a.bucket.Commit(), a.tags.Give(a.s.ctx))
}

// tellAhead notes that the sender's clock is ahead.
func (a *appender) tellAhead() {
	if a.ahead == 0 {
		return
	}
	a.s.o.Ahead.Tell(ahead.Found{Listener: "graphite", Addr: a.peer.Addr(), Count: a.ahead,
		Sent: time.UnixMilli(a.most), Arrived: time.UnixMilli(a.dec.now), Fate: ahead.Refused})
	a.ahead, a.most = 0, 0
}

// append hands the points of the batch over.
func (a *appender) append() {
	b := a.batch
	if len(b.points) > 0 {
		a.stream.Append(b.points)
		clear(b.points)
	}
	b.points, b.names = b.points[:0], b.names[:0]
}

// text takes the whole lines at the start of p and returns how many bytes they
// have. At the end of a datagram the last line needs no newline.
func (a *appender) text(p []byte, atEnd bool) int {
	taken := 0
	lines := int64(0)
	for taken < len(p) {
		n := bytes.IndexByte(p[taken:], '\n')
		next := taken + n + 1
		if n < 0 {
			if !atEnd {
				break
			}
			n, next = len(p)-taken, len(p)
		}
		line := p[taken : taken+n]
		taken = next
		if n == 0 || n == 1 && line[0] == '\r' {
			continue // an empty line says nothing
		}
		lines++
		a.line(line)
	}
	a.s.stats.Lines.Add(lines)
	return taken
}

func (a *appender) line(line []byte) {
	r := lineTooLong
	if len(line) <= a.s.o.MaxLine {
		r = a.dec.line(line)
	}
	if r != accepted {
		a.refuse(r, line)
		return
	}
	a.point(line)
}

// nsPerMs turns the time of a point into the timestamp it gets in a bucket that has
// them.
const nsPerMs = 1_000_000

// point adds the decoded point to the batch.
func (a *appender) point(input []byte) {
	if a.stream == nil {
		a.s.refusals.Count(a.missing, a.peer, input)
		return
	}
	if a.dec.slot > a.last {
		a.ahead++
		a.most = max(a.most, a.dec.ms)
	}
	b := a.batch
	if len(b.points) == cap(b.points) || len(b.names)+len(a.dec.key) > cap(b.names) {
		a.append()
	}
	from := len(b.names)
	b.names = append(b.names, a.dec.key...)
	b.points = append(b.points, write.Point{
		Key:  b.names[from:],
		Slot: a.dec.slot,
		Word: a.dec.word,
		Time: uint64(a.dec.ms) * nsPerMs,
	})
	if a.dec.name > 0 {
		a.failed = cmp.Or(a.failed, a.tag(a.dec.key, a.dec.name))
	}
}

func (a *appender) refuse(r reason, input []byte) {
	a.s.refusals.Count(r.String(), a.peer, input)
}

// list takes a pickled list of (path, (time, value)). A frame that is none is
// refused as a whole; an entry that cannot be stored is refused alone.
func (a *appender) list(us *unpicklers, frame []byte) {
	us.run(frame, func(u *unpickler, top cell, err error) {
		if err == nil && top.kind != kindList && top.kind != kindTuple {
			err = fmt.Errorf("%w: it holds no list", errPickle)
		}
		if err != nil {
			a.refuse(badPickle, []byte(err.Error()))
			return
		}
		for _, c := range u.items(top) {
			path, r := a.entry(u, c)
			if r != accepted {
				a.refuse(r, path)
				continue
			}
			a.point(path)
		}
	})
}

// entry decodes one (path, (time, value)).
func (a *appender) entry(u *unpickler, c cell) (path []byte, r reason) {
	outer := u.items(c)
	if len(outer) != 2 || outer[0].kind != kindText {
		return nil, malformed
	}
	path = u.bytes(outer[0])
	inner := u.items(outer[1])
	if len(inner) != 2 || len(path) == 0 {
		return path, malformed
	}
	d := &a.dec
	if !d.shortKey(path) {
		if r := d.anyKey(path); r != accepted {
			return path, r
		}
	}
	if r := d.cellTime(u, inner[0]); r != accepted {
		return path, r
	}
	return path, d.cellValue(u, inner[1])
}

func (d *decoder) cellTime(u *unpickler, c cell) reason {
	var (
		ms      int64
		now, ok bool
	)
	switch c.kind {
	case kindInt:
		ms, now, ok = intSeconds(int64(c.v))
	case kindFloat:
		ms, now, ok = floatSeconds(math.Float64frombits(c.v))
	case kindText:
		ms, now, ok = parseSeconds(u.bytes(c))
	}
	if !ok {
		return badTimestamp
	}
	d.setTime(ms, now)
	return accepted
}

func (d *decoder) cellValue(u *unpickler, c cell) reason {
	ok := true
	switch c.kind {
	case kindInt:
		d.word = point.FromInt(int64(c.v))
	case kindFloat:
		d.word = floatWord(math.Float64frombits(c.v))
	case kindText:
		d.word, ok = parseValue(u.bytes(c))
	default:
		ok = false
	}
	if !ok {
		return badValue
	}
	return accepted
}
