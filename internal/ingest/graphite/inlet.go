package graphite

import (
	"bytes"
	"fmt"
	"math"
	"net/netip"

	"dalmatiner/internal/ingest/oneway"
	"dalmatiner/internal/point"
	"dalmatiner/internal/store"
)

// inlet is the way of one sender's points into the store: what all three
// protocols have behind their framing. It is not for concurrent use.
type inlet struct {
	s       *Server
	peer    netip.AddrPort
	bucket  *oneway.Bucket
	session *store.Session // nil while there is no bucket to write to
	missing string         // why, as a reason
	dec     decoder
}

func (s *Server) newInlet(peer netip.AddrPort) inlet {
	return inlet{s: s, peer: peer, bucket: oneway.NewBucket(s.o.Store, s.o.Bucket, s.o.Monitor)}
}

// begin prepares for points that have just arrived. Only the store's failure
// is an error; points without a bucket are refused one by one.
func (in *inlet) begin() error {
	session, resolution, err := in.bucket.Session()
	in.session, in.missing = session, ""
	if err != nil {
		reason, ok := oneway.Refused(err)
		if !ok {
			return err
		}
		in.missing, resolution = reason, 1
	}
	in.dec.reset(in.s.o.Store.Now().UnixMilli(), resolution)
	return nil
}

// commit ends what begin began.
func (in *inlet) commit() error { return in.bucket.Commit() }

// text takes the whole lines at the start of p and returns how many bytes they
// have. At the end of a datagram the last line needs no newline.
func (in *inlet) text(p []byte, atEnd bool) int {
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
		in.line(line)
	}
	in.s.stats.Lines.Add(lines)
	return taken
}

func (in *inlet) line(line []byte) {
	r := lineTooLong
	if len(line) <= in.s.o.MaxLine {
		r = in.dec.line(line)
	}
	if r != accepted {
		in.refuse(r, line)
		return
	}
	in.point(line)
}

// nsPerMs turns the time of a point into the stamp it gets in a bucket that has
// them.
const nsPerMs = 1_000_000

// point hands the decoded point to the store.
func (in *inlet) point(input []byte) {
	if in.session == nil {
		in.s.refusals.Count(in.missing, in.peer, input)
		return
	}
	in.session.Stamped(in.dec.key, in.dec.slot, in.dec.word, uint64(in.dec.ms)*nsPerMs)
}

func (in *inlet) refuse(r reason, input []byte) {
	in.s.refusals.Count(r.String(), in.peer, input)
}

// list takes a pickled list of (path, (time, value)). A frame that is none is
// refused as a whole; an entry that cannot be stored is refused alone.
func (in *inlet) list(us *unpicklers, frame []byte) {
	us.run(frame, func(u *unpickler, top cell, err error) {
		if err == nil && top.kind != kindList && top.kind != kindTuple {
			err = fmt.Errorf("%w: it holds no list", errPickle)
		}
		if err != nil {
			in.refuse(badPickle, []byte(err.Error()))
			return
		}
		for _, c := range u.items(top) {
			path, r := in.entry(u, c)
			if r != accepted {
				in.refuse(r, path)
				continue
			}
			in.point(path)
		}
	})
}

// entry decodes one (path, (time, value)).
func (in *inlet) entry(u *unpickler, c cell) (path []byte, r reason) {
	outer := u.items(c)
	if len(outer) != 2 || outer[0].kind != kindText {
		return nil, malformed
	}
	path = u.bytes(outer[0])
	inner := u.items(outer[1])
	if len(inner) != 2 || len(path) == 0 {
		return path, malformed
	}
	d := &in.dec
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
		f := math.Float64frombits(c.v)
		d.word, ok = point.FromFloat(f), !math.IsNaN(f)
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
