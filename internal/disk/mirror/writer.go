package mirror

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/zstd"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/host/durable"
)

// Writer writes both copies of a file. It is not for concurrent use.
type Writer struct {
	fs    vfs.FS
	dir   string
	file  manifest.File
	files []vfs.File
	sums  []uint32 // of the headers
	enc   *zstd.Encoder

	content []byte // of the block under construction
	head    frame
	stored  []byte
	out     []byte
}

// Create begins a file below the data directory dir, which has the id of, whose copies do not count
// before Finish. Of f it takes all but the sizes.
func Create(fs vfs.FS, dir string, of origin.Directory, f manifest.File) (*Writer, error) {
	w := &Writer{fs: fs, dir: dir, file: f, enc: encoderFor(f.Kind)}
	w.file.Bytes, w.file.Items = 0, 0
	for i, path := range w.paths() {
		out, err := fs.Create(path+datadir.TempSuffix, vfs.WriteCategoryUnspecified)
		if err != nil {
			return nil, errors.Join(err, w.Abort())
		}
		header := appendHeader(nil, of, &w.file, i)
		w.files = append(w.files, out)
		w.sums = append(w.sums, binary.LittleEndian.Uint32(header[headerSize-4:]))
		if err := write(out, header); err != nil {
			return nil, errors.Join(err, w.Abort())
		}
	}
	w.file.Bytes = headerSize
	return w, nil
}

// encoderFor returns a quick encoder for files that a merge writes again.
func encoderFor(kind manifest.FileKind) *zstd.Encoder {
	if kind == manifest.TagChanges {
		return zstd.NewQuickEncoder()
	}
	return zstd.NewEncoder()
}

func (w *Writer) paths() []string {
	paths := datadir.FilePaths(w.file.Name())
	for i := range paths {
		paths[i] = w.fs.PathJoin(w.dir, paths[i])
	}
	return paths
}

func write(f vfs.File, data []byte) error {
	n, err := f.Write(slices.Clone(data)) // a vfs.File may change what it is given
	if err == nil && n < len(data) {
		err = io.ErrShortWrite
	}
	return err
}

// Add adds an item of at most MaxItem bytes, which stays the caller's. entries is how many losses
// it would be.
func (w *Writer) Add(item []byte, entries int) error {
	if len(item) > MaxItem {
		return fmt.Errorf("an item of %d bytes: the limit is %d", len(item), MaxItem)
	}
	if len(w.content) > 0 && len(w.content)+len(item) > blockSize {
		if err := w.endBlock(); err != nil {
			return err
		}
	}
	w.content = append(binary.AppendUvarint(w.content, uint64(len(item))), item...)
	w.head.items++
	w.head.entries += uint32(entries)
	w.file.Items += int64(entries)
	return nil
}

func (w *Writer) endBlock() error {
	w.stored = zstd.AppendBlock(w.stored[:0], w.content, 0, w.enc)
	w.head.stored = uint32(len(w.stored))
	if err := w.frame(); err != nil {
		return err
	}
	w.content = w.content[:0]
	w.head = frame{number: w.head.number + 1, first: uint64(w.file.Items)}
	return nil
}

// frame writes the block, or the end, to the copies.
func (w *Writer) frame() error {
	for i, f := range w.files {
		w.out = appendFrame(w.out[:0], w.sums[i], &w.head, w.stored)
		if err := write(f, w.out); err != nil {
			return err
		}
	}
	w.file.Bytes += int64(len(w.out))
	return nil
}

func appendFrame(dst []byte, copySum uint32, h *frame, stored []byte) []byte {
	at := len(dst)
	dst = h.append(dst)
	dst = binary.LittleEndian.AppendUint32(dst, sum(copySum, dst[at:], stored))
	return append(dst, stored...)
}

// Finish ends the file and gives the copies their names. They are on disk when it returns, and
// strays until a commit names them. After an error nothing of the file may be used: the
// kernel may hold for written what it could not write.
func (w *Writer) Finish() (manifest.File, error) {
	if len(w.content) > 0 {
		if err := w.endBlock(); err != nil {
			return manifest.File{}, errors.Join(err, w.Abort())
		}
	}
	w.head.end, w.stored = true, nil
	err := w.frame()
	for _, f := range w.files {
		if err == nil {
			err = f.Sync()
		}
	}
	if err != nil {
		return manifest.File{}, errors.Join(err, w.Abort())
	}
	err = w.close()
	for _, path := range w.paths() {
		if err == nil {
			err = w.fs.Rename(path+datadir.TempSuffix, path)
		}
	}
	if err == nil {
		err = durable.SyncDir(w.fs, w.fs.PathJoin(w.dir, datadir.FileDir(w.file.Name())))
	}
	if err != nil {
		return manifest.File{}, errors.Join(err, Remove(w.fs, w.dir, w.file.Name()))
	}
	return w.file, nil
}

func (w *Writer) close() error {
	var errs []error
	for _, f := range w.files {
		errs = append(errs, f.Close())
	}
	w.files = nil
	return errors.Join(errs...)
}

// Abort gives the file up and removes what there is of it.
func (w *Writer) Abort() error {
	_ = w.close() // nothing of it is needed
	return Remove(w.fs, w.dir, w.file.Name())
}

// Remove removes the copies of a file, with their names or unfinished, as far as they are
// there.
func Remove(fs vfs.FS, dir string, n manifest.FileName) (err error) {
	for _, path := range datadir.FilePaths(n) {
		for _, suffix := range []string{"", datadir.TempSuffix} {
			if rmErr := fs.Remove(fs.PathJoin(dir, path) + suffix); rmErr != nil &&
				!oserror.IsNotExist(rmErr) {
				err = errors.Join(err, rmErr)
			}
		}
	}
	return err
}
