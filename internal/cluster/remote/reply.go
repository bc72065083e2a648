package remote

import (
	"encoding/binary"
	"errors"
	"math"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/fields"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/query/source"
)

// answer is what a node says of a series.
type answer struct {
	node        ring.ID
	incarnation uint64
	exists      bool
	hints       bool // it is of a node that is no owner: hints are all it speaks of
	newer       bool // it has hints for others, which its aggregates and digests leave out
	digests     [2]uint64
	first, past int64 // where it may have points
	headers     []chunk.Header
	words       []uint64
	times       []uint64
	cost        source.Cost
}

// The records of a reply. An answer begins with its head, and ends with its end.
const (
	recordHead    = 1
	recordUnknown = 2
	recordHeaders = 3
	recordWords   = 4
	recordTimes   = 5
	recordEnd     = 6
	recordKey     = 7 // of a listing
)

const (
	partSize   = 64 << 10 // bytes of a part, without the record that goes beyond it
	runHeaders = 128      // in a record
	maxWhy     = 255      // bytes of what was lost
)

const (
	headExists = 1 << iota
	headNewer
	headDigests
	headExtent
)

// writer writes a reply.
type writer struct {
	reply   func(part []byte) error
	buf     []byte
	encoder chunk.Encoder
	coded   []byte
}

// record ends a record.
func (w *writer) record() error {
	if len(w.buf) < partSize {
		return nil
	}
	return w.flush()
}

func (w *writer) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	err := w.reply(w.buf)
	w.buf = w.buf[:0]
	return err
}

func (w *writer) uvarint(n uint64) { w.buf = binary.AppendUvarint(w.buf, n) }
func (w *writer) u64(n uint64)     { w.buf = binary.LittleEndian.AppendUint64(w.buf, n) }
func (w *writer) bytes(b []byte) {
	w.uvarint(uint64(len(b)))
	w.buf = append(w.buf, b...)
}

// key writes a key of a listing.
func (w *writer) key(key []byte) error {
	w.buf = append(w.buf, recordKey)
	w.bytes(key)
	return w.record()
}

func (w *writer) answer(a *answer) error {
	flags := byte(0)
	for i, set := range []bool{a.exists, a.newer, a.digests != [2]uint64{}, a.past > a.first} {
		if set {
			flags |= 1 << i
		}
	}
	w.buf = append(w.buf, recordHead, flags)
	w.uvarint(a.incarnation)
	if flags&headDigests != 0 {
		w.u64(a.digests[0])
		w.u64(a.digests[1])
	}
	if flags&headExtent != 0 {
		w.uvarint(uint64(a.first))
		w.uvarint(uint64(a.past))
	}
	for _, n := range []int64{a.cost.Headers, a.cost.Rollups, a.cost.Decoded, a.cost.Bytes,
		a.cost.MoreUnknown} {
		w.uvarint(uint64(n))
	}
	err := w.record()
	for _, u := range a.cost.Unknown {
		if err != nil {
			return err
		}
		w.buf = append(w.buf, recordUnknown)
		w.uvarint(uint64(u.From))
		w.uvarint(uint64(u.Past - u.From))
		w.bytes([]byte(u.Why[:min(len(u.Why), maxWhy)]))
		err = w.record()
	}
	if err == nil {
		err = w.headers(a.headers)
	}
	if err == nil {
		err = w.words(recordWords, a.words)
	}
	if err == nil {
		err = w.words(recordTimes, a.times)
	}
	if err != nil {
		return err
	}
	w.buf = append(w.buf, recordEnd)
	return w.record()
}

// headers writes aggregates that are not empty, each with how many empty ones lie before it.
func (w *writer) headers(list []chunk.Header) error {
	empty, run := 0, 0
	for i := range list {
		h := &list[i]
		if h.Count == 0 {
			empty++
			continue
		}
		w.buf = append(w.buf, recordHeaders)
		w.uvarint(uint64(empty))
		w.buf = appendHeader(w.buf, h)
		empty = 0
		if run++; run%runHeaders == 0 {
			if err := w.record(); err != nil {
				return err
			}
		}
	}
	return w.record()
}

func (w *writer) words(record byte, words []uint64) error {
	for at := 0; at < len(words); at += chunk.Slots {
		w.coded = w.encoder.Append(w.coded[:0], 0, words[at:min(at+chunk.Slots, len(words))])
		if len(w.coded) == 0 {
			continue
		}
		w.buf = append(w.buf, record)
		w.uvarint(uint64(at))
		w.bytes(w.coded)
		if err := w.record(); err != nil {
			return err
		}
	}
	return nil
}

// The flags of aggregates: which of their words are those before, and whether the values rise.
const (
	sameLast = 1 << iota
	sameMin
	sameMax
	rises
)

func appendHeader(dst []byte, h *chunk.Header) []byte {
	flags := byte(0)
	for i, same := range []bool{h.Last == h.First, h.Min == h.First, h.Max == h.Last, h.Rises} {
		if same {
			flags |= 1 << i
		}
	}
	dst = append(dst, flags)
	dst = binary.AppendUvarint(dst, uint64(h.Count))
	dst = binary.AppendUvarint(dst, uint64(h.FirstOff))
	dst = binary.AppendUvarint(dst, uint64(h.LastOff-h.FirstOff))
	dst = binary.LittleEndian.AppendUint64(dst, h.First)
	for i, word := range []uint64{h.Last, h.Min, h.Max} {
		if flags>>i&1 == 0 {
			dst = binary.LittleEndian.AppendUint64(dst, word)
		}
	}
	return appendSum(dst, h.Sum)
}

// appendSum appends the integer part as a varint where it fits into 63 bits, and the bits of the
// float.
func appendSum(dst []byte, s chunk.Sum) []byte {
	flags := byte(0)
	if s.Hi == int64(s.Lo)>>63 {
		flags |= 1
	}
	if math.Float64bits(s.Float) == 0 {
		flags |= 2
	}
	dst = append(dst, flags)
	if flags&1 != 0 {
		dst = binary.AppendVarint(dst, int64(s.Lo))
	} else {
		dst = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, s.Lo), uint64(s.Hi))
	}
	if flags&2 == 0 {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(s.Float))
	}
	return dst
}

// header reads what appendHeader appends, of a step of so many slots.
func header(r *fields.Reader, step int64) (h chunk.Header) {
	flags := r.U8()
	r.Check(flags < rises<<1)
	h.Count = int(r.UpTo(uint64(step)))
	h.FirstOff = int(r.UpTo(uint64(step)))
	h.LastOff = h.FirstOff + int(r.UpTo(uint64(step)))
	h.First = r.U64()
	h.Last, h.Min, h.Max = h.First, h.First, h.First
	if flags&sameLast == 0 {
		h.Last = r.U64()
	}
	if flags&sameMin == 0 {
		h.Min = r.U64()
	}
	h.Max = h.Last
	if flags&sameMax == 0 {
		h.Max = r.U64()
	}
	h.Sum = sum(r)
	h.Rises = flags&rises != 0
	r.Check(h.Count > 0 && int64(h.LastOff) < step && h.Count <= h.LastOff-h.FirstOff+1)
	return h
}

func sum(r *fields.Reader) (s chunk.Sum) {
	flags := r.U8()
	if flags&1 != 0 {
		v := r.Varint()
		s.Lo, s.Hi = uint64(v), v>>63
	} else {
		s.Lo, s.Hi = r.U64(), int64(r.U64())
	}
	if flags&2 == 0 {
		s.Float = math.Float64frombits(r.U64())
	}
	return s
}

// errReply is the error of bytes that do not answer the request.
var errReply = errors.New("a reply that does not answer the request")

// decoder reads the parts of a reply.
type decoder struct {
	q      *request
	answer func(i int, a *answer) error // takes the answers, which it may keep
	key    func(key []byte) error       // takes the keys of a listing

	i    int // answers that are complete
	open *answer
	next int // step
}

// part reads a part: whole records.
func (d *decoder) part(b []byte) error {
	r := fields.Reader{Src: b}
	for len(r.Src) > 0 {
		if err := d.record(&r); err != nil {
			return err
		}
		if r.Bad {
			return errReply
		}
	}
	if r.Bad {
		return errReply
	}
	return nil
}

func (d *decoder) record(r *fields.Reader) error {
	record := r.U8()
	if d.key != nil {
		if key := r.Bytes(math.MaxUint16); record == recordKey && !r.Bad {
			return d.key(key)
		}
		return errReply
	}
	if (record == recordHead) != (d.open == nil) || d.i == len(d.q.keys) {
		return errReply
	}
	a := d.open
	switch record {
	case recordHead:
		d.head(r)
	case recordUnknown:
		d.readUnknown(r)
	case recordHeaders:
		d.next += int(r.UpTo(uint64(d.q.count)))
		if a.headers == nil || d.next >= len(a.headers) {
			return errReply
		}
		a.headers[d.next] = header(r, d.q.step)
		d.next++
	case recordWords:
		return words(r, a.words)
	case recordTimes:
		return words(r, a.times)
	case recordEnd:
		d.open = nil
		d.i++
		if !r.Bad {
			return d.answer(d.i-1, a)
		}
	default:
		return errReply
	}
	return nil
}

func (d *decoder) head(r *fields.Reader) {
	flags := r.U8()
	a := &answer{exists: flags&headExists != 0, newer: flags&headNewer != 0, incarnation: r.Uvarint()}
	if flags&headDigests != 0 {
		a.digests = [2]uint64{r.U64(), r.U64()}
	}
	if flags&headExtent != 0 {
		a.first, a.past = int64(r.UpTo(buckets.MaxSlot)), int64(r.UpTo(buckets.MaxSlot+1))
	}
	for _, n := range []*int64{&a.cost.Headers, &a.cost.Rollups, &a.cost.Decoded, &a.cost.Bytes,
		&a.cost.MoreUnknown} {
		*n = int64(r.UpTo(math.MaxInt64))
	}
	switch q := d.q; {
	case q.kind == askAggregates && q.whole[d.i]:
		a.headers = make([]chunk.Header, q.count)
	case q.kind == askSlots:
		a.words = make([]uint64, q.count)
		if q.times {
			a.times = make([]uint64, q.count)
		}
	}
	d.open, d.next = a, 0
}

// readUnknown reads a range of unknown slots, behind those that came before.
func (d *decoder) readUnknown(r *fields.Reader) {
	a := d.open
	u := source.Unknown{From: int64(r.UpTo(buckets.MaxSlot))}
	u.Past = u.From + int64(r.UpTo(buckets.MaxSlot))
	why := r.Bytes(maxWhy)
	n := len(a.cost.Unknown)
	r.Check(u.From < u.Past && n < source.MaxSlots && (n == 0 || a.cost.Unknown[n-1].Past <= u.From))
	if r.Bad {
		return
	}
	if n > 0 && a.cost.Unknown[n-1].Why == string(why) {
		u.Why = a.cost.Unknown[n-1].Why
	} else {
		u.Why = string(why)
	}
	a.cost.Unknown = append(a.cost.Unknown, u)
}

// words reads the words of up to a chunk.
func words(r *fields.Reader, dst []uint64) error {
	at := r.UpTo(source.MaxSlots)
	coded := r.Bytes(math.MaxUint16)
	if r.Bad || at >= uint64(len(dst)) {
		return errReply
	}
	dst = dst[at:]
	if chunk.DecodeRange(dst[:min(len(dst), chunk.Slots)], coded, 0) != nil {
		return errReply
	}
	return nil
}

// end reports whether the reply was complete.
func (d *decoder) end() error {
	if d.key == nil && (d.open != nil || d.i < len(d.q.keys)) {
		return errReply
	}
	return nil
}
