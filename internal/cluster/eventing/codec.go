package eventing

import (
	"encoding/binary"
	"errors"
	"math"

	"dalmatiner/internal/cluster/call"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/codec/fields"
	"dalmatiner/internal/store/events"
)

// The kinds of requests: the first byte.
const (
	kindStore   = iota + 1 // store these events
	kindPage               // events of a range
	kindSums               // what stands for all events that the asker owns
	kindDigests            // digests of a range
	kindCount              // digests of all events of a range, to be counted
	kindFollow             // the buckets that the asker has live tails of
	kindShow               // events for live tails
)

// The bounds of requests and replies.
const (
	chunkBytes  = 512 << 10 // of events in a request, unless one event is longer
	chunkEvents = 4096
	maxDefined  = 64 << 10 // bytes of the definition of a bucket in a request
	maxBuckets  = 1 << 16  // in a reply to kindSums, and in a kindFollow
	maxDigests  = 1 << 21  // in a reply: an hour and a step of a count begin a cell each
	maxGaps     = 1 << 12  // in a page
	pageBytes   = 256 << 10
	maxReply    = 32 << 20 // bytes of a reply
	eventHead   = 8 + 16 + 3
)

// errMalformed is the error of bytes that no node sends.
var errMalformed = errors.New("not a message about events that this version can read")

// storeRequest asks an owner to store events. The reply is a class for each: a byte.
type storeRequest struct {
	version ring.Version
	bucket  uint64
	defined []byte
	list    []events.Event
}

func (m *storeRequest) append(dst []byte) []byte {
	dst = appendVersion(append(dst, kindStore), m.version)
	dst = binary.LittleEndian.AppendUint64(dst, m.bucket)
	dst = append(binary.AppendUvarint(dst, uint64(len(m.defined))), m.defined...)
	return appendEvents(dst, m.list)
}

// parse reads what append appends, behind the kind. The events are parts of b.
func (m *storeRequest) parse(b []byte) error {
	r := fields.Reader{Src: b}
	m.version, m.bucket = readVersion(&r), r.U64()
	m.defined = r.Bytes(maxDefined)
	m.list = readEvents(&r)
	return endOf(&r)
}

// position is an event's place in the order of events.
type position struct {
	time int64
	id   events.ID
}

// pageRequest asks for a page of the events of a range: those behind a position, in the order asked
// for.
type pageRequest struct {
	version    ring.Version // that the page is good for; the zero one: any
	bucket     uint64
	start, end int64
	back       bool
	keys       bool // bodies are not wanted
	behind     position
	limit      int // bytes after which a page ends
}

func (m *pageRequest) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(appendVersion(append(dst, kindPage), m.version), m.bucket)
	dst = binary.AppendVarint(binary.AppendVarint(dst, m.start), m.end)
	flags := byte(0)
	if m.back {
		flags |= 1
	}
	if m.keys {
		flags |= 2
	}
	dst = binary.AppendVarint(append(dst, flags), m.behind.time)
	dst = append(dst, m.behind.id[:]...)
	return binary.AppendUvarint(dst, uint64(m.limit))
}

func (m *pageRequest) parse(b []byte) error {
	r := fields.Reader{Src: b}
	m.version, m.bucket, m.start, m.end = readVersion(&r), r.U64(), r.Varint(), r.Varint()
	flags := r.U8()
	r.Check(flags < 4)
	m.back, m.keys = flags&1 != 0, flags&2 != 0
	m.behind.time = r.Varint()
	copy(m.behind.id[:], r.Take(len(m.behind.id)))
	m.limit = int(r.UpTo(pageBytes))
	return endOf(&r)
}

// page is the reply to paged.
type page struct {
	list []events.Event
	more bool         // there may be events behind the last one
	gaps []events.Gap // in what was read
}

func (m *page) append(dst []byte) []byte {
	more := byte(0)
	if m.more {
		more = 1
	}
	return appendEvents(appendGaps(append(dst, more), m.gaps), m.list)
}

func (m *page) parse(b []byte) error {
	r := fields.Reader{Src: b}
	more := r.U8()
	r.Check(more < 2)
	m.more = more == 1
	m.gaps = readGaps(&r)
	m.list = readEvents(&r)
	return endOf(&r)
}

func appendGaps(dst []byte, list []events.Gap) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for _, g := range list {
		dst = binary.AppendVarint(binary.AppendVarint(dst, g.Start), g.End)
		dst = binary.AppendUvarint(dst, uint64(g.Events))
	}
	return dst
}

func readGaps(r *fields.Reader) (list []events.Gap) {
	for range r.UpTo(maxGaps) {
		g := events.Gap{Start: r.Varint(), End: r.Varint(), Events: int64(r.UpTo(1 << 62))}
		if r.Bad {
			return nil
		}
		list = append(list, g)
	}
	return list
}

// sumsRequest asks what stands for the events of all buckets that the asker owns.
type sumsRequest struct {
	cut int64 // what is older is in the first sum
}

func (m *sumsRequest) append(dst []byte) []byte {
	return binary.AppendVarint(append(dst, kindSums), m.cut)
}

func (m *sumsRequest) parse(b []byte) error {
	r := fields.Reader{Src: b}
	m.cut = r.Varint()
	return endOf(&r)
}

// sums is the reply to summed. Everything that was stored under an older ring is in it.
type sums struct {
	version ring.Version
	of      map[uint64]halves // by bucket
}

// halves are sums before and from the cut on: 0 for no events.
type halves struct{ old, recent uint64 }

func (m *sums) append(dst []byte) []byte {
	dst = binary.AppendUvarint(appendVersion(dst, m.version), uint64(len(m.of)))
	for bucket, s := range m.of {
		dst = binary.LittleEndian.AppendUint64(dst, bucket)
		dst = binary.LittleEndian.AppendUint64(dst, s.old)
		dst = binary.LittleEndian.AppendUint64(dst, s.recent)
	}
	return dst
}

func (m *sums) parse(b []byte) error {
	r := fields.Reader{Src: b}
	m.version, m.of = readVersion(&r), make(map[uint64]halves)
	for range r.UpTo(maxBuckets) {
		bucket := r.U64()
		s := halves{r.U64(), r.U64()}
		if r.Bad {
			break
		}
		m.of[bucket] = s
	}
	return endOf(&r)
}

// digestsRequest asks for the digests of the steps of a range that the asker owns.
type digestsRequest struct {
	bucket           uint64
	start, end, step int64
}

func (m *digestsRequest) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(append(dst, kindDigests), m.bucket)
	dst = binary.AppendVarint(binary.AppendVarint(dst, m.start), m.end)
	return binary.AppendUvarint(dst, uint64(m.step))
}

func (m *digestsRequest) parse(b []byte) error {
	r := fields.Reader{Src: b}
	m.bucket, m.start, m.end = r.U64(), r.Varint(), r.Varint()
	m.step = int64(r.UpTo(events.DigestStep))
	r.Check(m.step > 0 && m.start >= 0 && m.end >= m.start && events.DigestStep%m.step == 0)
	return endOf(&r)
}

// appendDigests appends digests in ascending order of their starts.
func appendDigests(dst []byte, list []events.Digest) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	last := int64(0)
	for _, d := range list {
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(d.Start-last)), d.Events)
		dst = binary.LittleEndian.AppendUint64(dst, d.Sum)
		last = d.Start
	}
	return dst
}

func readDigests(r *fields.Reader) (list []events.Digest) {
	last := int64(0)
	for range r.UpTo(maxDigests) {
		last += int64(r.UpTo(uint64(math.MaxInt64 - last)))
		d := events.Digest{Start: last, Events: r.UpTo(math.MaxInt64), Sum: r.U64()}
		if r.Bad {
			return nil
		}
		list = append(list, d)
	}
	return list
}

func parseDigests(b []byte) ([]events.Digest, error) {
	r := fields.Reader{Src: b}
	list := readDigests(&r)
	return list, endOf(&r)
}

// countRequest asks for the digests of all events of a range, in the cells of a count.
type countRequest struct {
	version    ring.Version
	bucket     uint64
	start, end int64
	step       int64
}

func (m *countRequest) cells() events.Cells {
	return events.Cells{First: m.start, Step: m.step, Hours: true}
}

func (m *countRequest) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(appendVersion(append(dst, kindCount), m.version), m.bucket)
	return binary.AppendUvarint(binary.AppendVarint(binary.AppendVarint(dst, m.start), m.end),
		uint64(m.step))
}

func (m *countRequest) parse(b []byte) error {
	r := fields.Reader{Src: b}
	m.version, m.bucket, m.start, m.end = readVersion(&r), r.U64(), r.Varint(), r.Varint()
	m.step = int64(r.UpTo(math.MaxInt64))
	r.Check(m.step > 0 && m.end >= m.start)
	return endOf(&r)
}

// cellList is the reply to counted.
type cellList struct {
	list []events.Digest
	gaps []events.Gap
}

func (m *cellList) append(dst []byte) []byte {
	return appendGaps(appendDigests(dst, m.list), m.gaps)
}

func (m *cellList) parse(b []byte) error {
	r := fields.Reader{Src: b}
	m.list, m.gaps = readDigests(&r), readGaps(&r)
	return endOf(&r)
}

// followRequest tells of the buckets that the sender has live tails of.
type followRequest struct{ buckets []uint64 }

func (m *followRequest) append(dst []byte) []byte {
	dst = binary.AppendUvarint(append(dst, kindFollow), uint64(len(m.buckets)))
	for _, b := range m.buckets {
		dst = binary.LittleEndian.AppendUint64(dst, b)
	}
	return dst
}

func (m *followRequest) parse(b []byte) error {
	r := fields.Reader{Src: b}
	for range r.UpTo(maxBuckets) {
		bucket := r.U64()
		if r.Bad {
			break
		}
		m.buckets = append(m.buckets, bucket)
	}
	return endOf(&r)
}

// tailBatch is events for the live tails of a bucket, or how many others there was no room for.
type tailBatch struct {
	// a number of this start, and of the message: one that comes again was not answered
	boot, number   uint64
	bucket, missed uint64
	list           []events.Event
}

func (m *tailBatch) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(append(dst, kindShow), m.boot)
	dst = binary.LittleEndian.AppendUint64(binary.AppendUvarint(dst, m.number), m.bucket)
	return appendEvents(binary.AppendUvarint(dst, m.missed), m.list)
}

func (m *tailBatch) parse(b []byte) error {
	r := fields.Reader{Src: b}
	m.boot, m.number, m.bucket, m.missed = r.U64(), r.Uvarint(), r.U64(), r.Uvarint()
	m.list = readEvents(&r)
	return endOf(&r)
}

func appendEvents(dst []byte, list []events.Event) []byte {
	for i := range list {
		e := &list[i]
		dst = append(binary.LittleEndian.AppendUint64(dst, uint64(e.Time)), e.ID[:]...)
		dst = append(binary.AppendUvarint(dst, uint64(len(e.Body))), e.Body...)
	}
	return dst
}

// readEvents reads events up to the end. Their bodies are parts of what is read.
func readEvents(r *fields.Reader) (list []events.Event) {
	for len(r.Src) > 0 {
		e := events.Event{Time: int64(r.U64())}
		copy(e.ID[:], r.Take(len(e.ID)))
		e.Body = r.Bytes(events.MaxBody)
		r.Check(e.Time > 0)
		if r.Bad {
			return nil
		}
		list = append(list, e)
	}
	return list
}

func appendVersion(dst []byte, v ring.Version) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, v.Number), v.Sum)
}

func readVersion(r *fields.Reader) ring.Version {
	return ring.Version{Number: r.U64(), Sum: r.U64()}
}

func endOf(r *fields.Reader) error {
	if !r.IsDone() {
		return errMalformed
	}
	return nil
}

// give replies with bytes of any length.
func give(b []byte, reply func([]byte) error) error {
	for len(b) > 0 {
		n := min(len(b), call.MaxPart)
		if err := reply(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
