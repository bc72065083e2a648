package wal

import (
	"bytes"
	"encoding/binary"
)

// copies are what is repeated of consecutive records: size and head of each, of one
// without a head its first byte.
//
// A record is two differences: of its size to the size of the last record with a
// head, and of its head to the head of that record. The second one is a byte with two
// lengths, of the equal bytes at the start and of the differing bytes, and then the
// differing bytes. Both heads have one length then.
type copies struct {
	base, past LSN
	last       LSN // behind the last record that is not the log's own
	records    int // that are not the log's own
	list       []byte
	formerRecord
}

// formerRecord is what the next one differs from.
type formerRecord struct {
	size int
	head []byte
}

// The bytes that stand for no difference.
const (
	copyWhole = 0xfd // length and bytes of the head follow
	copyPlain = 0xfe // a record without a head; its first byte follows
	copyOwn   = 0xff // a record of the log itself
	mostSame  = 14   // bytes at the begin; more are repeated
	mostNew   = 15
)

func (c *copies) reset(at LSN) {
	c.base, c.past, c.last, c.records = at, at, 0, 0
	c.list, c.size, c.head = c.list[:0], 0, c.head[:0]
}

func (c *copies) noteOwn(size int) { c.list = append(c.step(size), copyOwn) }

// notePlain notes a record without a head.
func (c *copies) notePlain(size int, first byte) {
	c.list = append(c.step(size), copyPlain, first)
	c.last = c.past
	c.records++
}

// noteHeaded notes a record with a head.
func (c *copies) noteHeaded(size int, head []byte) {
	c.list = c.step(size)
	c.size, c.last = size, c.past
	c.records++
	same := 0
	for same < min(mostSame, len(head)) && len(head) == len(c.head) && head[same] == c.head[same] {
		same++
	}
	differ := len(head)
	for differ > same && len(head) == len(c.head) && head[differ-1] == c.head[differ-1] {
		differ--
	}
	if len(head) != len(c.head) || differ-same > mostNew {
		c.list = append(append(c.list, copyWhole, byte(len(head))), head...)
	} else {
		c.list = append(append(c.list, byte(same<<4|(differ-same))), head[same:differ]...)
	}
	c.head = append(c.head[:0], head...)
}

// step goes on behind the next record.
func (c *copies) step(size int) []byte {
	c.past += LSN(size)
	return binary.AppendVarint(c.list, int64(size-c.size))
}

// knownRecord is what is known of a record otherwise than from itself.
type knownRecord struct {
	lsn  LSN
	size int
	own  bool
	head []byte // nil for a record without one; valid until the next one is read
}

// eachCopy gives fn the records of a list that begins at base, as far as it is
// well-formed.
func eachCopy(list []byte, base LSN, fn func(k knownRecord)) {
	var f formerRecord
	for len(list) > 0 {
		d, n := binary.Varint(list)
		size := int64(f.size) + d
		if n <= 0 || size <= frameSize || size > frameSize+recordLimit || base > maxLSN {
			return
		}
		k := knownRecord{lsn: base, size: int(size)}
		var ok bool
		if list, ok = f.next(list[n:], &k); !ok {
			return
		}
		fn(k)
		base += LSN(size)
	}
}

// next reads what a list says of a record's head.
func (f *formerRecord) next(list []byte, k *knownRecord) (rest []byte, ok bool) {
	if len(list) == 0 {
		return nil, false
	}
	form, list := list[0], list[1:]
	switch form {
	case copyOwn:
		k.own = true
		return list, true
	case copyPlain:
		if len(list) == 0 {
			return nil, false
		}
		return list[1:], true
	case copyWhole:
		if len(list) == 0 {
			return nil, false
		}
		past := 1 + int(list[0])
		if len(list) < past {
			return nil, false
		}
		f.head, list = append(f.head[:0], list[1:past]...), list[past:]
	default:
		same, n := int(form>>4), int(form&15)
		if same+n > len(f.head) || n > len(list) {
			return nil, false
		}
		f.head = bytes.Clone(f.head)
		copy(f.head[same:], list[:n])
		list = list[n:]
	}
	f.size, k.head = k.size, f.head
	return list, true
}
