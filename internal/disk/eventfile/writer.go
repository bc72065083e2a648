package eventfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"dalmatiner/internal/codec/zstd"
	"dalmatiner/internal/disk/origin"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// maxStored is the longest stored block: its content as it is, and the byte of its form.
const maxStored = zstd.MaxLength + 1

var errFinished = errors.New("eventfile: the writer is finished or aborted")

// Writer writes one file. It holds one block of events and the index. A Writer is not for
// concurrent use. After the first error every call returns it, and the caller calls Abort.
type Writer struct {
	fs     vfs.FS
	path   string
	of     origin.File
	file   vfs.File
	out    *bufio.Writer
	offset int64
	enc    *zstd.Encoder
	err    error

	bucket uint64 // of the open block
	list   []Event
	data   []byte // bodies of list
	plain  []byte
	stored []byte

	blocks []Block
	lost   []LostRange
	events int64
}

// Info is what a finished file has.
type Info struct {
	Bytes  int64
	Events int64
	Blocks []Block
	Lost   []LostRange
}

// Create begins a file at path, which is a temporary name: the caller renames it after Finish.
func Create(fs vfs.FS, path string, of origin.File) (*Writer, error) {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("eventfile: create %s: %w", path, err)
	}
	w := &Writer{
		fs:   fs,
		path: path,
		of:   of,
		file: f,
		out:  bufio.NewWriterSize(f, 256<<10),
		enc:  zstd.NewEncoder(),
	}
	return w, w.write(appendHeader(nil, of))
}

// Number returns the number of the file.
func (w *Writer) Number() uint64 { return w.of.Number }

// Add adds an event behind all before it in the order of bucket, time and id. The event is copied.
func (w *Writer) Add(bucket uint64, e *Event) error {
	if w.err != nil {
		return w.err
	}
	if len(w.list) > 0 && w.bucket == bucket && Compare(&w.list[len(w.list)-1], e) >= 0 ||
		len(e.Body) > MaxBody || e.Time < 1 {
		return w.fail(fmt.Errorf("eventfile: an event at %d ns with %d bytes is out of order or of its "+
			"limits", e.Time, len(e.Body)))
	}
	if full := len(w.data)+3*len(w.list)+len(e.Body) > MaxBody; len(w.list) > 0 &&
		(full || w.bucket != bucket) {
		if err := w.endBlock(); err != nil {
			return err
		}
	}
	w.bucket = bucket
	at := len(w.data)
	w.data = append(w.data, e.Body...)
	// The body is a slice of data that may move as that grows: endBlock sets it anew.
	w.list = append(w.list, Event{Time: e.Time, ID: e.ID, Body: w.data[at:]})
	if len(w.data) >= blockBytes || len(w.list) == blockEvents {
		return w.endBlock()
	}
	return nil
}

// AddLost notes events that damage took, which the file would have had.
func (w *Writer) AddLost(l LostRange) { w.lost = append(w.lost, l) }

// Bytes returns about the length of the file so far.
func (w *Writer) Bytes() int64 { return w.offset + int64(len(w.data)) }

// MemoryBytes returns the memory of the writer.
func (w *Writer) MemoryBytes() int64 {
	return int64(cap(w.data)+cap(w.plain)+cap(w.stored)) + int64(cap(w.list))*48 +
		int64(cap(w.blocks))*64
}

func (w *Writer) endBlock() error {
	if len(w.list) == 0 || w.err != nil {
		return w.err
	}
	b := Block{
		Bucket: w.bucket,
		First:  w.list[0].Time,
		Last:   w.list[len(w.list)-1].Time,
		Events: int64(len(w.list)),
		offset: w.offset,
	}
	if n := len(w.blocks); n > 0 &&
		(w.blocks[n-1].Bucket > b.Bucket || w.blocks[n-1].Bucket == b.Bucket &&
			w.blocks[n-1].Last > b.First) {
		return w.fail(fmt.Errorf("eventfile: the events of bucket %016x are out of order", b.Bucket))
	}
	w.plain = AppendKeys(w.plain[:0], w.list)
	w.stored = zstd.AppendBlock(w.stored[:0], w.plain, 0, w.enc)
	b.keys, b.keysSum = uint32(len(w.stored)), checksum(w.of, w.offset, w.stored)
	if err := w.write(w.stored); err != nil {
		return err
	}
	w.plain = w.plain[:0]
	for i := range w.list {
		w.plain = binary.AppendUvarint(w.plain, uint64(len(w.list[i].Body)))
	}
	w.plain = append(w.plain, w.data...)
	w.stored = zstd.AppendBlock(w.stored[:0], w.plain, 0, w.enc)
	b.bodies, b.bodiesSum = uint32(len(w.stored)), checksum(w.of, w.offset, w.stored)
	if err := w.write(w.stored); err != nil {
		return err
	}
	w.blocks = append(w.blocks, b)
	w.events += b.Events
	w.list, w.data = w.list[:0], w.data[:0]
	return nil
}

// Finish writes the index, makes the file durable and closes it. Its name takes a rename and a
// sync of the directory.
func (w *Writer) Finish(m *Meta) (Info, error) {
	if err := w.endBlock(); err != nil {
		return Info{}, err
	}
	index := appendIndex(nil, w.blocks, w.lost, m)
	if len(index) > maxIndex {
		return Info{}, w.fail(fmt.Errorf("eventfile: %s has too many blocks: %d", w.path, len(w.blocks)))
	}
	at := w.offset
	tail := w.of.Append(append([]byte(nil), tailMagic[:]...))
	tail = binary.LittleEndian.AppendUint64(tail, uint64(at))
	tail = binary.LittleEndian.AppendUint64(tail, uint64(len(index)))
	tail = binary.LittleEndian.AppendUint32(tail, checksum(w.of, at, index))
	tail = binary.LittleEndian.AppendUint32(tail, crc32.Checksum(tail, castagnoli))
	for _, part := range [][]byte{index, index, tail, tail} {
		if err := w.write(part); err != nil {
			return Info{}, err
		}
	}
	if err := w.out.Flush(); err != nil {
		return Info{}, w.fail(err)
	}
	if err := w.file.Sync(); err != nil {
		return Info{}, w.fail(err)
	}
	err := w.file.Close()
	w.file = nil
	if err != nil {
		return Info{}, w.fail(err)
	}
	w.err = errFinished
	return Info{Bytes: w.offset, Events: w.events, Blocks: w.blocks, Lost: w.lost}, nil
}

// Abort removes what was written.
func (w *Writer) Abort() error {
	var err error
	if w.file != nil {
		err = w.file.Close()
		w.file = nil
	}
	w.err = errFinished
	return errors.Join(err, w.fs.Remove(w.path))
}

func (w *Writer) write(b []byte) error {
	n, err := w.out.Write(b)
	w.offset += int64(n)
	if err != nil {
		return w.fail(err)
	}
	return nil
}

func (w *Writer) fail(err error) error {
	w.err = fmt.Errorf("eventfile: write %s: %w", w.path, err)
	return w.err
}
