package tagging

import (
	"encoding/binary"
	"errors"
	"slices"

	"dalmatiner/internal/codec/fields"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/tagstore"
	"dalmatiner/internal/tags"
)

// The kinds of requests: the first byte.
const (
	kindPush    = 1 // changes and deletions
	kindCompare = 2 // whether all is the same, and if not, digests
	kindFetch   = 3 // what differs between two hashes
)

// The bounds of requests and replies. A request is shorter than call.MaxRequest, also with a change
// of the longest behind pushBytes of others.
const (
	maxDefined   = 64 << 10 // bytes of the definitions of buckets in a request
	pushBytes    = 96 << 10 // bytes of changes after which a push has no more
	maxDeletions = 1024     // in a request or a reply
	pageSeries   = 4096     // digests of a fetch
	replySeries  = 1024     // that a reply to a fetch is about, as far as they do not have one hash
	mostDigests  = 16 << 10 // that are taken in a fetch: more series may have one hash
)

// errMalformed is the error of bytes that no node sends.
var errMalformed = errors.New("not a message about tags that this version can read")

// deletedSeries is the deletion of a series.
type deletedSeries struct {
	bucket, incarnation uint64
	id                  metric.SeriesID
}

// push is changes and deletions on their way, with the buckets that they are of.
type push struct {
	defined   []byte
	deletions []deletedSeries
	changes   []byte // as tags.AppendChange has them
}

func (p *push) append(dst []byte) []byte {
	dst = append(dst, kindPush)
	dst = append(binary.AppendUvarint(dst, uint64(len(p.defined))), p.defined...)
	return append(appendDeletions(dst, p.deletions), p.changes...)
}

// parse reads what append appends, behind the kind. The changes are checked when they are read.
func (p *push) parse(b []byte) error {
	r := fields.Reader{Src: b}
	p.defined = r.Bytes(maxDefined)
	p.deletions = parseDeletions(&r)
	if r.Bad {
		return errMalformed
	}
	p.changes = r.Rest()
	return nil
}

func appendDeletions(dst []byte, list []deletedSeries) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for i := range list {
		d := &list[i]
		dst = binary.LittleEndian.AppendUint64(dst, d.bucket)
		dst = binary.LittleEndian.AppendUint64(dst, d.incarnation)
		dst = append(dst, d.id[:]...)
	}
	return dst
}

func parseDeletions(r *fields.Reader) []deletedSeries {
	n := int(r.UpTo(maxDeletions))
	var list []deletedSeries
	for range n {
		d := deletedSeries{bucket: r.U64(), incarnation: r.U64()}
		copy(d.id[:], r.Take(len(d.id)))
		if r.Bad {
			return nil
		}
		list = append(list, d)
	}
	return list
}

// pushReply is the reply to a push: what was refused because its series are deleted, and how many
// changes are of buckets that are not there.
type pushReply struct {
	refused   uint64
	deletions []deletedSeries
}

func (p *pushReply) append(dst []byte) []byte {
	return appendDeletions(binary.AppendUvarint(dst, p.refused), p.deletions)
}

func (p *pushReply) parse(b []byte) error {
	r := fields.Reader{Src: b}
	p.refused = r.Uvarint()
	p.deletions = parseDeletions(&r)
	if !r.IsDone() {
		return errMalformed
	}
	return nil
}

// appendDigests appends the digests of all ranges, the reply to a comparison of what differs.
func appendDigests(dst []byte, d *tags.Digests) []byte {
	for _, sum := range d {
		dst = binary.LittleEndian.AppendUint64(dst, sum)
	}
	return dst
}

func parseDigests(b []byte) (d tags.Digests, err error) {
	if len(b) != 8*len(d) {
		return d, errMalformed
	}
	for i := range d {
		d[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return d, nil
}

// fetch asks for what differs between two hashes, of which the asker has these series.
type fetch struct {
	from, through uint32
	have          []tags.Digest // by id, all there are
}

func (f *fetch) append(dst []byte) []byte {
	dst = append(dst, kindFetch)
	dst = binary.LittleEndian.AppendUint32(dst, f.from)
	dst = binary.LittleEndian.AppendUint32(dst, f.through)
	for i := range f.have {
		dst = binary.LittleEndian.AppendUint64(dst, f.have[i].ID)
		dst = binary.LittleEndian.AppendUint64(dst, f.have[i].Sum)
	}
	return dst
}

// parse reads what append appends, behind the kind.
func (f *fetch) parse(b []byte) error {
	if len(b) < 8 || (len(b)-8)%16 != 0 || (len(b)-8)/16 > mostDigests {
		return errMalformed
	}
	f.from, f.through = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	f.have = f.have[:0]
	for b = b[8:]; len(b) > 0; b = b[16:] {
		d := tags.Digest{ID: binary.LittleEndian.Uint64(b), Sum: binary.LittleEndian.Uint64(b[8:])}
		n := len(f.have)
		if d.Hash() < f.from || d.Hash() > f.through || n > 0 && f.have[n-1].ID >= d.ID {
			return errMalformed
		}
		f.have = append(f.have, d)
	}
	if f.from > f.through {
		return errMalformed
	}
	return nil
}

// The items of the reply to a fetch, one behind the other in its parts: byte, length, bytes.
const (
	itemDefined = 1 // definition of the bucket of changes that follow
	itemChange  = 2
	itemWanted  = 3 // first half of the id of a series of which the asker is to push all
	itemEnd     = 4 // up to which hash the reply has all
)

// maxItem is the most bytes of an item: a part of a row may be a little longer than a change.
const maxItem = tagstore.MaxChange + 32<<10

func appendItem(dst []byte, kind byte, body []byte) []byte {
	dst = binary.AppendUvarint(append(dst, kind), uint64(len(body)))
	return append(dst, body...)
}

// items takes a reply apart, whose parts may cut items anywhere.
type items struct{ rest []byte }

// add takes a part and calls fn for each item that is whole. The body is valid during the call.
func (s *items) add(part []byte, fn func(kind byte, body []byte) error) error {
	s.rest = append(s.rest, part...)
	at := 0
	for at < len(s.rest) {
		r := fields.Reader{Src: s.rest[at:]}
		kind, n := r.U8(), r.Uvarint()
		if r.Bad {
			if len(s.rest)-at > 1+binary.MaxVarintLen64 {
				return errMalformed
			}
			break
		}
		if kind < itemDefined || kind > itemEnd || n > maxItem {
			return errMalformed
		}
		if uint64(len(r.Src)) < n {
			break
		}
		if err := fn(kind, r.Src[:n:n]); err != nil {
			return err
		}
		at = len(s.rest) - len(r.Src) + int(n)
	}
	s.rest = slices.Delete(s.rest, 0, at)
	return nil
}

// isComplete reports whether nothing is left of an item.
func (s *items) isComplete() bool { return len(s.rest) == 0 }
