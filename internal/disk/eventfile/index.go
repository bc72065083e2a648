package eventfile

import (
	"encoding/binary"
	"math"

	"dalmatiner/internal/codec/fields"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
)

// Block is what the index says of a block: events of one bucket, in the order of time and id.
type Block struct {
	Bucket      uint64
	First, Last int64 // times of its first and its last event
	Events      int64
	offset      int64 // of the keys; the bodies stand behind them
	keys        uint32
	bodies      uint32 // lengths as stored
	keysSum     uint32
	bodiesSum   uint32
}

// Bytes returns the length of the block in the file.
func (b *Block) Bytes() int64 { return int64(b.keys) + int64(b.bodies) }

// Meta is what a file says of itself beside its events, so that the state of a store can be built
// from its files alone.
type Meta struct {
	Buckets []buckets.Info // of the events
	// of the log: every event below it is in a file; a merge has the highest of what it replaces
	Position uint64
	Account  []byte // the account of that position
	// numbers of the files whose events a merge has taken over, and of those they replaced, ascending
	Replaces []uint64
}

// appendIndex appends the index: blocks by their buckets, what is lost, and the meta data.
func appendIndex(dst []byte, blocks []Block, lost []LostRange, m *Meta) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(blocks)))
	before := int64(0)
	for i := range blocks {
		b := &blocks[i]
		if i == 0 || b.Bucket != blocks[i-1].Bucket {
			dst = binary.LittleEndian.AppendUint64(append(dst, 1), b.Bucket)
			before = 0
		} else {
			dst = append(dst, 0)
		}
		dst = binary.AppendUvarint(dst, uint64(b.First-before))
		dst = binary.AppendUvarint(dst, uint64(b.Last-b.First))
		before = b.Last
		dst = binary.AppendUvarint(dst, uint64(b.Events))
		dst = binary.AppendUvarint(dst, uint64(b.keys))
		dst = binary.AppendUvarint(dst, uint64(b.bodies))
		dst = binary.LittleEndian.AppendUint32(dst, b.keysSum)
		dst = binary.LittleEndian.AppendUint32(dst, b.bodiesSum)
	}
	dst = binary.AppendUvarint(dst, uint64(len(lost)))
	for _, l := range lost {
		dst = binary.LittleEndian.AppendUint64(dst, l.Bucket)
		dst = binary.AppendUvarint(dst, uint64(l.First))
		dst = binary.AppendUvarint(dst, uint64(l.Last-l.First))
		dst = binary.AppendUvarint(dst, uint64(l.Events))
	}
	dst = binary.AppendUvarint(dst, uint64(len(m.Buckets)))
	for i := range m.Buckets {
		dst = appendBucket(dst, &m.Buckets[i])
	}
	dst = binary.AppendUvarint(dst, m.Position)
	dst = append(binary.AppendUvarint(dst, uint64(len(m.Account))), m.Account...)
	dst = binary.AppendUvarint(dst, uint64(len(m.Replaces)))
	last := uint64(0)
	for _, n := range m.Replaces {
		dst = binary.AppendUvarint(dst, n-last)
		last = n
	}
	return dst
}

func appendBucket(dst []byte, b *buckets.Info) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, b.ID)
	dst = append(append(dst, byte(len(b.Name))), b.Name...)
	for _, v := range []int64{b.Resolution, b.PPF, b.TTL, b.Grace} {
		dst = binary.AppendUvarint(dst, uint64(v))
	}
	if b.HPTS {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// leastBlock is the least that a block takes in the index.
const leastBlock = 14

// parseIndex reads what appendIndex wrote. The blocks begin at offset and end at past.
func parseIndex(src []byte, offset, past int64) (blocks []Block, lost []LostRange,
	m Meta, err error) {
	r := fields.Reader{Src: src}
	blocks = make([]Block, r.UpTo(uint64(len(src)/leastBlock)))
	before := int64(0)
	for i := range blocks {
		b := &blocks[i]
		switch begins := r.U8(); {
		case begins == 1:
			b.Bucket, before = r.U64(), 0
			r.Check(i == 0 || b.Bucket > blocks[i-1].Bucket)
		case i > 0 && begins == 0:
			b.Bucket = blocks[i-1].Bucket
		default:
			r.Check(false)
		}
		b.First = before + int64(r.UpTo(uint64(math.MaxInt64-before)))
		b.Last = b.First + int64(r.UpTo(uint64(math.MaxInt64-b.First)))
		before = b.Last
		b.Events = int64(r.UpTo(blockEvents))
		b.offset = offset
		b.keys, b.bodies = uint32(r.UpTo(maxStored)), uint32(r.UpTo(maxStored))
		b.keysSum, b.bodiesSum = u32(&r), u32(&r)
		offset += b.Bytes()
		if b.First < 1 || b.Events < 1 || r.Bad {
			return nil, nil, m, errMalformed
		}
	}
	if offset != past {
		return nil, nil, m, errMalformed
	}
	lost = make([]LostRange, r.UpTo(uint64(len(r.Src)/11)))
	for i := range lost {
		l := &lost[i]
		l.Bucket, l.First = r.U64(), int64(r.UpTo(math.MaxInt64))
		l.Last = l.First + int64(r.UpTo(uint64(math.MaxInt64-l.First)))
		l.Events = int64(r.UpTo(math.MaxInt64))
	}
	m, err = readMeta(&r)
	return blocks, lost, m, err
}

func readMeta(r *fields.Reader) (m Meta, err error) {
	m.Buckets = make([]buckets.Info, r.UpTo(uint64(len(r.Src)/14)))
	for i := range m.Buckets {
		readBucket(r, &m.Buckets[i])
	}
	m.Position = r.Uvarint()
	if account := r.Bytes(len(r.Src)); len(account) > 0 {
		m.Account = append([]byte(nil), account...)
	}
	m.Replaces = make([]uint64, r.UpTo(uint64(len(r.Src))))
	last := uint64(0)
	for i := range m.Replaces {
		last += r.UpTo(math.MaxUint64 - last)
		m.Replaces[i] = last
	}
	if !r.IsDone() {
		return Meta{}, errMalformed
	}
	return m, nil
}

func readBucket(r *fields.Reader, b *buckets.Info) {
	b.ID = r.U64()
	b.Name = string(r.Bytes(metric.MaxBucket))
	for _, v := range []*int64{&b.Resolution, &b.PPF, &b.TTL, &b.Grace} {
		*v = int64(r.UpTo(math.MaxInt64))
	}
	hpts := r.U8()
	b.HPTS = hpts == 1
	r.Check(hpts <= 1 && b.Validate() == nil)
}

func u32(r *fields.Reader) uint32 {
	if b := r.Take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}
