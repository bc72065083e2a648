package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"dalmatiner/internal/codec/zstd"
	"dalmatiner/internal/disk/dedup"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/identity"

	"github.com/cockroachdb/pebble/v2/vfs"
)

var errFinished = errors.New("segment: the writer is finished or aborted")

// Writer writes one segment. Data blocks go to the file as they fill. Until Seal or Finish, 16
// bytes of every chunk and 32 of every run of chunks of one series stay in memory. A Writer
// must not be used by two goroutines at once.
//
// After the first error every further call returns that error, and the caller gives the file
// up with Abort.
type Writer struct {
	fs   vfs.FS
	path string
	file vfs.File
	err  error

	buf   []byte // finished blocks not yet written, then the open block
	start int    // of the open block in buf
	off   int64  // of buf in the file

	offsets    []int64 // of the finished blocks in the file
	entries    []entry
	runs       []run
	sorted     bool // every run belongs behind all before it
	rollups    [rollups]rollupWriter
	lastKey    []byte // of the index, known when it is written
	series     section
	buckets    section
	timestamps Timestamps
	foot       footer
	sealed     bool
	fences     []byte // of a sealed writer
	state      []byte
	compress   *compressor // nil: nothing is compressed
}

// entry is the place of one chunk.
type entry struct {
	chunk  int64
	block  uint32
	off    uint16 // in the block
	length uint16
}

// run is a series of entries of one bucket and hash with ascending chunk
// numbers, in the order they were added.
type run struct {
	bucket      uint64
	hash        Hash
	first, past uint32 // in entries
}

// Create begins a segment in a new file at path. That is a temporary name: the caller renames
// the file after Finish. The caller calls Finish or Abort in the end.
func Create(fs vfs.FS, path string) (*Writer, error) {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("segment: create %s: %w", path, err)
	}
	return &Writer{fs: fs, path: path, file: f, sorted: true,
		buf: make([]byte, 0, writeSize+2*blockSize), timestamps: make(Timestamps)}, nil
}

// Describe notes in the footer what the owner of the segments must know to use the file
// without other records: its generation, and the window of chunks that it covers, [first,
// first+chunks). first and chunks are 0 for a segment that covers no window.
func (w *Writer) Describe(generation, first int64, chunks uint32) {
	i := &w.foot.info
	i.Generation, i.WindowFirst, i.WindowChunks = generation, first, chunks
}

// Belongs notes in the footer which file of which directory it is.
func (w *Writer) Belongs(to origin.File) { w.foot.origin = to }

// Compress makes the segment smaller, which takes time: equal chunks are stored once, and blocks
// compressed where that pays. It is for segments that stay, and comes before the first Add.
func (w *Writer) Compress() {
	w.compress = &compressor{equal: dedup.New(), enc: zstd.NewEncoder()}
}

// encoder compresses the blocks behind the chunks, unless it is nil.
func (w *Writer) encoder() *zstd.Encoder {
	if w.compress == nil {
		return nil
	}
	return w.compress.enc
}

// Add adds one chunk of a series: its number, how many set slots it has, and 1 to 65,535
// encoded bytes, which are copied.
// Chunks may come in any order, each (bucket, hash, chunk) at most once. If they come in the
// order of bucket, hash and chunk, readers that go in this order read the file sequentially.
func (w *Writer) Add(bucket uint64, h Hash, chunk int64, points int, data []byte) error {
	if w.err != nil {
		return w.err
	}
	if len(data) == 0 || len(data) > maxChunk {
		return w.fail(fmt.Errorf("segment: chunk %d of series %s has %d bytes, the limits are 1 and %d",
			chunk, h, len(data), maxChunk))
	}
	if len(w.entries) == math.MaxUint32 {
		return w.fail(fmt.Errorf("segment: %s is full: it has %d chunks, start another", w.path,
			len(w.entries)))
	}
	e, err := entry{chunk: chunk}, error(nil)
	if w.compress == nil {
		err = w.addPlain(&e, data)
	} else {
		e, err = w.addCompressed(dedup.Series{Bucket: bucket, Hash: h}, chunk, data)
	}
	if err != nil {
		return err
	}
	w.index(bucket, h, e)
	info := &w.foot.info
	if info.Chunks == 0 {
		info.MinChunk, info.MaxChunk = chunk, chunk
	}
	info.MinChunk, info.MaxChunk = min(info.MinChunk, chunk), max(info.MaxChunk, chunk)
	info.Chunks++
	if !w.timestamps.Is(bucket, h) {
		info.Points += int64(points)
	}
	info.DataBytes += int64(len(data))
	return nil
}

// index notes the place of a chunk.
func (w *Writer) index(bucket uint64, h Hash, e entry) {
	n := uint32(len(w.entries))
	w.entries = append(w.entries, e)
	if len(w.runs) > 0 {
		r := &w.runs[len(w.runs)-1]
		if r.bucket == bucket && r.hash == h && w.entries[n-1].chunk < e.chunk {
			r.past++
			return
		}
		w.sorted = w.sorted &&
			(r.bucket < bucket || r.bucket == bucket && bytes.Compare(r.hash[:], h[:]) < 0)
	}
	w.runs = append(w.runs, run{bucket: bucket, hash: h, first: n, past: n + 1})
}

// Reserve makes room in memory for so many chunks more, of so many series whose chunks come
// one after the other, and for so many bytes of identities (SeriesSize). More or less may
// come.
func (w *Writer) Reserve(chunks, series, names int64) {
	w.entries = slices.Grow(w.entries, int(chunks))
	w.runs = slices.Grow(w.runs, int(series))
	w.series.buf = slices.Grow(w.series.buf, int(names))
}

// AddBucket adds the properties of a bucket. A bucket with timestamps is added before its
// chunks. A name longer than MaxName is an error that the next call returns.
func (w *Writer) AddBucket(b buckets.Info) {
	if err := checkName("bucket name", b.Name); err != nil {
		w.fail(err)
		return
	}
	w.buckets.buf = appendBucket(w.buckets.add(), &b)
	if b.HPTS {
		w.timestamps[b.ID] = true
	}
}

// AddSeries adds the identity of a series. The key is copied. A key longer than MaxName is an
// error that the next call returns.
func (w *Writer) AddSeries(s Series) {
	if err := checkName("series key", s.Key); err != nil {
		w.fail(err)
		return
	}
	w.series.buf = appendSeries(w.series.add(), &s)
}

// Finish writes what is left to write, fsyncs the file and closes it. The segment exists for
// others once the caller has renamed it and synced its directory. After an error the caller
// calls Abort.
func (w *Writer) Finish() (Info, error) {
	if w.err != nil {
		return Info{}, w.err
	}
	if err := w.finish(); err != nil {
		return Info{}, w.fail(err)
	}
	err := w.file.Close()
	w.file = nil
	if err != nil {
		return Info{}, w.fail(fmt.Errorf("segment: close %s: %w", w.path, err))
	}
	w.err = errFinished
	return w.foot.info, nil
}

// SetState hands over the state block: up to 64 MiB that mean nothing to this package, and
// that Reader.State returns. They are not copied, so the caller leaves them alone until
// Finish. More bytes are an error that the next call returns.
func (w *Writer) SetState(state []byte) {
	if len(state) > maxState {
		w.fail(fmt.Errorf("segment: a state of %d bytes, the limit is %d", len(state), maxState))
		return
	}
	w.state = state
}

// Seal writes everything but the directory, the state block and the footer, and frees the
// memory of the index. A caller that writes several segments seals all before it knows their
// state blocks. Nothing but the state can be added behind it. Finish calls it if need be. The
// Info has no Size.
func (w *Writer) Seal() (Info, error) {
	if w.err == nil && !w.sealed {
		if err := w.seal(); err != nil {
			return Info{}, w.fail(err)
		}
	}
	return w.foot.info, w.err
}

func (w *Writer) seal() error {
	if err := w.endData(); err != nil {
		return err
	}
	if err := w.settle(); err != nil {
		return err
	}
	fences, err := w.writeLeaves()
	if err != nil {
		return err
	}
	if fences, err = w.writeRollups(fences); err != nil {
		return err
	}
	w.foot.info.Identities, w.foot.info.Buckets = w.series.count, w.buckets.count
	if err := w.writeSection(&w.series, kindSeries); err != nil {
		return err
	}
	if err := w.writeSection(&w.buckets, kindBucket); err != nil {
		return err
	}
	if err := w.write(); err != nil {
		return err
	}
	if w.compress != nil {
		w.compress.release()
	}
	w.sealed, w.fences = true, fences
	w.buf, w.compress, w.entries, w.runs, w.rollups, w.series, w.buckets = nil, nil, nil, nil,
		[rollups]rollupWriter{}, section{}, section{}
	return nil
}

func (w *Writer) finish() error {
	if _, err := w.Seal(); err != nil {
		return err
	}
	w.foot.dirOff = w.off
	w.buf = appendDirectory(w.buf, w.offsets, w.foot.dirOff, w.fences)
	w.foot.dirCRC = blockCRC(w.buf, w.foot.dirOff)
	w.buf = appendState(w.buf, w.state, w.off)
	w.foot.info.Size = w.off + int64(len(w.buf)) + footerSize
	w.buf = appendFooter(w.buf, &w.foot)
	w.foot.info.Sum = binary.LittleEndian.Uint32(w.buf[len(w.buf)-crcSize:])
	if err := w.write(); err != nil {
		return err
	}
	if err := w.file.Sync(); err != nil {
		return fmt.Errorf("segment: sync %s: %w", w.path, err)
	}
	return nil
}

// Abort gives the segment up: it closes the file and removes it. After a successful Finish it
// does nothing.
func (w *Writer) Abort() error {
	if w.err == errFinished {
		return nil
	}
	w.err = errFinished
	var err error
	if w.compress != nil {
		err = w.compress.close()
		w.compress.release()
		w.compress = nil
	}
	if w.file != nil {
		err = errors.Join(err, w.file.Close())
	}
	return errors.Join(err, w.fs.Remove(w.path))
}

// writeSection writes the blocks of a section.
func (w *Writer) writeSection(s *section, k kind) error {
	s.finish()
	at := 0
	var names identity.Packer
	var packed []byte
	for _, end := range s.ends {
		content, plain := s.buf[at:end], 0
		if k == kindSeries {
			packed, plain = packNames(&names, packed[:0], content)
			content = packed
		}
		w.buf = zstd.AppendBlock(w.buf, content, plain, w.encoder())
		at = end
		if err := w.endBlock(k); err != nil {
			return err
		}
	}
	return nil
}

// endBlock seals the open block and writes once enough is finished.
func (w *Writer) endBlock(k kind) error {
	if len(w.offsets) == math.MaxUint32 {
		return w.fail(fmt.Errorf("segment: %s is full: it has %d blocks, start another", w.path,
			len(w.offsets)))
	}
	at := w.off + int64(w.start)
	crc := blockCRC(w.buf[w.start:], at)
	w.buf = append(w.buf, byte(crc), byte(crc>>8), byte(crc>>16), byte(crc>>24))
	w.foot.blockSum = crc32.Update(w.foot.blockSum, castagnoli, w.buf[len(w.buf)-crcSize:])
	w.offsets = append(w.offsets, at)
	w.foot.blocks[k]++
	w.start = len(w.buf)
	if w.start >= writeSize {
		return w.write()
	}
	return nil
}

// write hands all finished bytes to the file.
func (w *Writer) write() error {
	if _, err := w.file.Write(w.buf); err != nil {
		return w.fail(fmt.Errorf("segment: write %d bytes at offset %d of %s: %w", len(w.buf), w.off,
			w.path, err))
	}
	w.off += int64(len(w.buf))
	w.buf, w.start = w.buf[:0], 0
	return nil
}

// fail keeps the first error.
func (w *Writer) fail(err error) error {
	if w.err == nil {
		w.err = err
	}
	return w.err
}
