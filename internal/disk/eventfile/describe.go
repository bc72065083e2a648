package eventfile

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/model/buckets"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Path is the path of a file below the data directory.
func Path(number uint64) string {
	return datadir.FilePaths(manifest.FileName{Kind: manifest.EventFile, Seq: number})[0]
}

// Describe returns what a file says of itself for the MANIFEST, the buckets of its events, and the
// numbers of the files that it was merged from. whole is false for one that is missing or cannot be
// used. The error is that of a device, or wraps ErrFormat.
func Describe(fs vfs.FS, dir string, of origin.Directory, n manifest.FileName) (f manifest.File,
	in []buckets.Info, from []uint64, whole bool, err error) {
	r, _, err := Open(fs, fs.PathJoin(dir, Path(n.Seq)), origin.File{Directory: of, Number: n.Seq})
	var damage *DamageError
	switch {
	case err == nil:
		return r.File(), r.Meta.Buckets, r.Meta.Replaces, true, nil
	case oserror.IsNotExist(err), errors.As(err, &damage) && !damage.Read:
		return f, nil, nil, false, nil
	}
	return f, nil, nil, false, err
}

// Origin returns which file of which directory the file at path says it is; ok is false where it
// does not say. The error wraps ErrFormat, or is that of the file system.
func Origin(fs vfs.FS, path string) (of origin.File, ok bool, err error) {
	f, err := fs.Open(path, vfs.RandomReadsOption)
	if err != nil {
		return of, false, err
	}
	defer f.Close()
	head := make([]byte, headerSize)
	if err := readFull(f, head, 0); errors.Is(err, io.ErrUnexpectedEOF) {
		return of, false, nil
	} else if err != nil {
		return of, false, err
	}
	of, err = parseHeader(head)
	if errors.Is(err, errMalformed) {
		return of, false, nil
	}
	return of, err == nil, err
}

// File returns what the MANIFEST says of the file.
func (r *Reader) File() manifest.File {
	f := manifest.File{
		Kind:   manifest.EventFile,
		Seq:    r.of.Number,
		Bytes:  r.Bytes,
		Sum:    r.sum,
		Items:  r.Events,
		Past:   r.Meta.Position,
		Ranges: rangesOf(r.Blocks, r.Lost),
	}
	for _, l := range r.Lost {
		f.Items += l.Events
	}
	return f
}

// rangesOf returns what a file has of each bucket, with what it has lost.
func rangesOf(blocks []Block, lost []LostRange) []manifest.FileRange {
	all := make(map[uint64]manifest.FileRange)
	add := func(bucket uint64, first, last, n int64) {
		r, ok := all[bucket]
		if !ok {
			r = manifest.FileRange{Bucket: bucket, First: first, Last: last}
		}
		r.First, r.Last, r.Items = min(r.First, first), max(r.Last, last), r.Items+n
		all[bucket] = r
	}
	for i := range blocks {
		b := &blocks[i]
		add(b.Bucket, b.First, b.Last, b.Events)
	}
	for _, l := range lost {
		add(l.Bucket, l.First, l.Last, l.Events)
	}
	out := make([]manifest.FileRange, 0, len(all))
	for _, r := range all {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b manifest.FileRange) int { return cmp.Compare(a.Bucket, b.Bucket) })
	return out
}
