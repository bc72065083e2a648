package eventfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sort"
	"sync"

	"dalmatiner/internal/codec/zstd"
	"dalmatiner/internal/disk/origin"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Reader reads one file. It has the index in memory, and the file open while somebody reads. Its
// methods may be called concurrently.
type Reader struct {
	Meta   Meta
	Blocks []Block // in the order of bucket and time
	Lost   []LostRange
	Bytes  int64
	Events int64 // that can be read, but for damage

	fs   vfs.FS
	path string
	of   origin.File
	sum  uint32 // of the index

	mu    sync.Mutex
	file  vfs.File
	users int
}

// Open reads the index of a file, and verifies everything but the blocks. damage is what was found
// wrong that nothing is lost by: one of two copies, or the header. The error is a *DamageError
// where the file cannot be used, wraps ErrFormat for one of another version, or is that of the file
// system.
func Open(fs vfs.FS, path string, of origin.File) (r *Reader, damage []error, err error) {
	f, err := fs.Open(path, vfs.RandomReadsOption)
	if err != nil {
		return nil, nil, fmt.Errorf("open events %s: %w", path, err)
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("open events %s: %w", path, err)
	}
	r = &Reader{fs: fs, path: path, of: of, Bytes: stat.Size()}
	damage, err = r.load(f)
	if err != nil {
		return nil, nil, err
	}
	for i := range r.Blocks {
		r.Events += r.Blocks[i].Events
	}
	return r, damage, nil
}

func (r *Reader) damageError(part string, offset, length int64,
	cause error, read bool) *DamageError {
	return &DamageError{
		File:   r.path,
		Offset: offset,
		Length: length,
		Part:   part,
		Cause:  cause,
		Read:   read,
	}
}

func (r *Reader) load(f vfs.File) (damage []error, err error) {
	if r.Bytes < headerSize+2*tailSize {
		return nil, r.damageError("file", 0, r.Bytes, errors.New("it is cut short"), false)
	}
	head := make([]byte, headerSize)
	if err := readFull(f, head, 0); err != nil {
		damage = append(damage, r.damageError("header", 0, headerSize, err, true))
	} else if found, err := parseHeader(head); errors.Is(err, ErrFormat) {
		return nil, fmt.Errorf("events %s: %w", r.path, err)
	} else if err != nil {
		damage = append(damage, r.damageError("header", 0, headerSize, err, false))
	} else if err := r.of.Check(found); err != nil {
		return nil, r.damageError("file", 0, r.Bytes, err, false)
	}
	t, damage, err := r.tail(f, damage)
	if err != nil {
		return nil, err
	}
	return r.indexes(f, t, damage)
}

// indexes reads both copies of the index, of which one is enough. The second is read behind a whole
// first one as well: who reads it only when the first is damaged learns too late that both are.
func (r *Reader) indexes(f vfs.File, t tail, damage []error) ([]error, error) {
	var last *DamageError
	found := false
	index := make([]byte, t.length)
	for i := range int64(2) {
		at := t.index + i*t.length
		if bad := r.readIndex(f, t, at, index); bad != nil {
			last = bad
			damage = append(damage, bad)
			continue
		}
		if found {
			continue // it is the same, as its checksum is
		}
		var err error
		if r.Blocks, r.Lost, r.Meta, err = parseIndex(index, headerSize, t.index); err != nil {
			return nil, r.damageError("index", at, t.length, err, false)
		}
		r.sum, found = t.sum, true
	}
	if !found {
		return nil, last
	}
	return damage, nil
}

// readIndex reads and verifies the copy of the index at an offset.
func (r *Reader) readIndex(f vfs.File, t tail, at int64, index []byte) *DamageError {
	if err := readFull(f, index, at); err != nil {
		return r.damageError("index", at, t.length, err, true)
	}
	if got := checksum(r.of, t.index, index); got != t.sum {
		return r.damageError("index", at, t.length,
			fmt.Errorf("CRC-32C is %08x, computed %08x", t.sum, got), false)
	}
	return nil
}

type tail struct {
	index, length int64
	sum           uint32
}

// tail reads the tails, of which one is enough.
func (r *Reader) tail(f vfs.File, damage []error) (t tail, _ []error, err error) {
	var last *DamageError
	found := false
	buf := make([]byte, tailSize)
	for i := range int64(2) {
		at := r.Bytes - (2-i)*tailSize
		if err := readFull(f, buf, at); err != nil {
			last = r.damageError("tail", at, tailSize, err, true)
			damage = append(damage, last)
			continue
		}
		one := tail{
			index:  int64(binary.LittleEndian.Uint64(buf[32:])),
			length: int64(binary.LittleEndian.Uint64(buf[40:])),
			sum:    binary.LittleEndian.Uint32(buf[48:]),
		}
		sound := [8]byte(buf) == tailMagic &&
			binary.LittleEndian.Uint32(buf[tailSize-4:]) == crc32.Checksum(buf[:tailSize-4], castagnoli)
		foreign := r.of.Check(origin.ParseFile(buf[8:]))
		switch {
		case !sound:
			last = r.damageError("tail", at, tailSize, errMalformed, false)
		case foreign != nil:
			last = r.damageError("tail", at, tailSize, foreign, false)
		case one.length < 0 || one.length > maxIndex || one.index < headerSize || one.index > r.Bytes ||
			one.index+2*one.length+2*tailSize != r.Bytes:
			last = r.damageError("tail", at, tailSize, errors.New("it does not fit the length of the file"),
				false)
		default:
			t, found = one, true
			continue
		}
		damage = append(damage, last)
	}
	if !found {
		return t, nil, last
	}
	return t, damage, nil
}

func readFull(f vfs.File, buf []byte, at int64) error {
	n, err := f.ReadAt(buf, at)
	if n == len(buf) {
		return nil
	}
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Number returns the number of the file.
func (r *Reader) Number() uint64 { return r.of.Number }

// BlockRange returns the range [from, past) of the blocks of a bucket that may hold times with
// start <= time < end.
func (r *Reader) BlockRange(bucket uint64, start, end int64) (from, past int) {
	from = sort.Search(len(r.Blocks), func(i int) bool {
		b := &r.Blocks[i]
		return b.Bucket > bucket || b.Bucket == bucket && b.Last >= start
	})
	past = from + sort.Search(len(r.Blocks)-from, func(i int) bool {
		b := &r.Blocks[from+i]
		return b.Bucket > bucket || b.First >= end
	})
	return from, past
}

// Memory returns the bytes of the index in memory.
func (r *Reader) Memory() int64 { return int64(cap(r.Blocks))*64 + int64(cap(r.Lost))*32 }

// Acquire opens the file for reading, unless it is open. Release must follow.
func (r *Reader) Acquire() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		f, err := r.fs.Open(r.path, vfs.RandomReadsOption)
		if err != nil {
			return r.damageError("file", 0, r.Bytes, err, true)
		}
		r.file = f
	}
	r.users++
	return nil
}

// Release undoes Acquire.
func (r *Reader) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users--; r.users == 0 {
		_ = r.file.Close() // nothing was written to it
		r.file = nil
	}
}

// Buffer is the memory of one reader of blocks. The zero value is empty.
type Buffer struct {
	stored, keys, bodies []byte
	list                 []Event
}

// Bytes returns the memory of the buffer.
func (b *Buffer) Bytes() int64 {
	return int64(cap(b.stored)+cap(b.keys)+cap(b.bodies)) + int64(cap(b.list))*48
}

// Keys reads the times and ids of a block. They are in buf until its next use. The file is
// acquired. Damage is a *DamageError.
func (r *Reader) Keys(block int, buf *Buffer) ([]Event, error) {
	b := &r.Blocks[block]
	content, err := r.part("keys", b.offset, b.keys, b.keysSum, buf, &buf.keys)
	if err != nil {
		return nil, err
	}
	list, rest, err := ParseKeys(buf.list, content, int(b.Events))
	if err == nil && (len(rest) != 0 || int64(len(list)) != b.Events || list[0].Time != b.First ||
		list[len(list)-1].Time != b.Last) {
		err = errMalformed
	}
	for i := 1; i < len(list) && err == nil; i++ {
		if Compare(&list[i-1], &list[i]) >= 0 {
			err = errMalformed
		}
	}
	if err != nil {
		return nil, r.damageError("keys", b.offset, int64(b.keys), err, false)
	}
	buf.list = list
	return list, nil
}

// Load reads the events of a block, as Keys does.
func (r *Reader) Load(block int, buf *Buffer) ([]Event, error) {
	list, err := r.Keys(block, buf)
	if err != nil {
		return nil, err
	}
	b := &r.Blocks[block]
	at := b.offset + int64(b.keys)
	content, err := r.part("bodies", at, b.bodies, b.bodiesSum, buf, &buf.bodies)
	if err != nil {
		return nil, err
	}
	if err := ParseBodies(list, content); err != nil {
		return nil, r.damageError("bodies", at, int64(b.bodies), err, false)
	}
	return list, nil
}

// part reads and verifies one part of a block. The content is in buf.
func (r *Reader) part(name string, at int64, length, sum uint32, buf *Buffer,
	plain *[]byte) ([]byte, error) {
	if cap(buf.stored) < int(length) {
		buf.stored = make([]byte, length)
	}
	stored := buf.stored[:length]
	if err := readFull(r.file, stored, at); err != nil {
		return nil, r.damageError(name, at, int64(length), err, true)
	}
	if got := checksum(r.of, at, stored); got != sum {
		return nil, r.damageError(name, at, int64(length),
			fmt.Errorf("CRC-32C is %08x, computed %08x", sum, got), false)
	}
	content, grown, err := zstd.Content(*plain, stored, zstd.MaxLength)
	*plain = grown
	if err != nil {
		return nil, r.damageError(name, at, int64(length), err, false)
	}
	if len(content) > 0 && &content[0] == &stored[1] { // as it is: the next part would overwrite it
		*plain = append((*plain)[:0], content...)
		content = *plain
	}
	return content, nil
}
