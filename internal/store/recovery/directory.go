package recovery

import (
	"errors"
	"syscall"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/mirror"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/wal"
)

// DirectoryOf returns the id of a data directory: what most of VERSION, the copies of the MANIFEST
// and the log say it is, VERSION where as many say another, or any other file where none of these
// says it. It is zero where no file does: the directory is new. said and ok are of VERSION
// (datadir.ReadVersion).
func DirectoryOf(fs vfs.FS, dir string, said origin.Directory, ok bool) origin.Directory {
	all := manifest.Directories(fs, dir)
	if ok {
		all = append([]origin.Directory{said}, all...)
	}
	if id, ok := wal.ID(fs, fs.PathJoin(dir, datadir.WAL)); ok {
		all = append(all, id)
	}
	if len(all) == 0 {
		return anyOrigin(fs, dir)
	}
	votes := make(map[origin.Directory]int, len(all))
	for _, id := range all {
		votes[id]++
	}
	best := all[0]
	for _, id := range all {
		if votes[id] > votes[best] {
			best = id
		}
	}
	return best
}

// anyOrigin returns the directory of the first file of a segment or of a side that says one.
func anyOrigin(fs vfs.FS, dir string) (id origin.Directory) {
	for _, sub := range append(datadir.FileDirs(), datadir.SegmentDirs[:]...) {
		names, err := fs.List(fs.PathJoin(dir, sub))
		if err != nil {
			continue
		}
		for _, name := range names {
			path := fs.PathJoin(dir, sub, name)
			if n, side := datadir.ParseFile(sub, name); side {
				if of, ok, _ := sideOrigin(fs, path, n.Kind); ok && of.Directory.IsKnown() {
					return of.Directory
				}
			} else if r, err := segment.Open(fs, path); err == nil {
				id = r.Origin().Directory
				if r.Close() == nil && id.IsKnown() {
					return id
				}
			}
		}
	}
	return id
}

// sideOrigin returns what the header of a side file, or of one of its copies, says it is. Each kind
// of file has its line here.
func sideOrigin(fs vfs.FS, path string,
	kind manifest.FileKind) (of origin.File, ok bool, err error) {
	switch kind {
	case manifest.TagBase, manifest.TagChanges:
		of, ok, err = mirror.Origin(fs, path)
	case manifest.EventFile:
		of, ok, err = eventfile.Origin(fs, path)
	}
	if oserror.IsNotExist(err) || errors.Is(err, syscall.EIO) {
		return of, false, nil
	}
	return of, ok, err
}
