package mirror

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/host/durable"
)

// Mend writes the copies anew of which a Read of the file has reported places, and keeps what
// there is of them in lost+found. Nothing was lost: each block is in one of the copies. It returns
// the paths of the copies that were written.
func Mend(fs vfs.FS, dir string, of origin.Directory, f *manifest.File,
	found *Report) (mended []string, err error) {
	for i, path := range datadir.FilePaths(f.Name()) {
		if !found.bad(path) {
			continue
		}
		if err := writeCopy(fs, dir, of, f, i, path); err != nil {
			return mended, errors.Join(err, removeIfThere(fs, fs.PathJoin(dir, path)+datadir.TempSuffix))
		}
	}
	// All are written before one is replaced: each may have what the other lacks.
	for _, path := range datadir.FilePaths(f.Name()) {
		if !found.bad(path) {
			continue
		}
		if err := SetAside(fs, dir, path); err != nil {
			return mended, err
		}
		to := fs.PathJoin(dir, path)
		if err := fs.Rename(to+datadir.TempSuffix, to); err != nil {
			return mended, err
		}
		mended = append(mended, path)
		if err := durable.SyncDir(fs, fs.PathJoin(dir, datadir.FileDir(f.Name()))); err != nil {
			return mended, err
		}
	}
	return mended, nil
}

// writeCopy writes one copy from what both have, under its unfinished name.
func writeCopy(fs vfs.FS, dir string, of origin.Directory, f *manifest.File, number int,
	path string) error {
	out, err := fs.Create(fs.PathJoin(dir, path)+datadir.TempSuffix, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	header := appendHeader(nil, of, f, number)
	copySum := binary.LittleEndian.Uint32(header[headerSize-4:])
	err = write(out, header)
	end := frame{end: true}
	if err == nil {
		var report Report
		report, err = walk(fs, dir, of, f, func(_ *reader, h *frame, stored []byte) error {
			end.number, end.first = h.number+1, h.first+uint64(h.entries)
			return write(out, appendFrame(nil, copySum, h, stored))
		})
		if err == nil && report.Lost {
			err = fmt.Errorf("%s: both copies lack a part of it", path)
		}
	}
	if err == nil {
		err = write(out, appendFrame(nil, copySum, &end, nil))
	}
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// SetAside gives a file below the data directory a second name in lost+found, the first
// free one; nothing happens where it is missing. The file keeps its name.
func SetAside(fs vfs.FS, dir, path string) error {
	from := fs.PathJoin(dir, path)
	if _, err := fs.Stat(from); oserror.IsNotExist(err) {
		return nil
	}
	lost := fs.PathJoin(dir, datadir.LostFound)
	for i := 1; ; i++ {
		to := fs.PathJoin(lost, fmt.Sprintf("%s.%d", fs.PathBase(path), i))
		if _, err := fs.Stat(to); err == nil {
			continue
		} else if !oserror.IsNotExist(err) {
			return err
		}
		err := fs.Link(from, to)
		if err != nil && !durable.IsFull(err) {
			err = vfs.Copy(fs, from, to) // a file system without links
		}
		if err != nil {
			return fmt.Errorf("keeping %s in %s: %w", path, datadir.LostFound, err)
		}
		return durable.SyncDir(fs, lost)
	}
}

func removeIfThere(fs vfs.FS, path string) error {
	if err := fs.Remove(path); err != nil && !oserror.IsNotExist(err) {
		return err
	}
	return nil
}
