package recovery

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/window"
)

const logSuffix = ".wal"

// ErrNoLog says what it means that a directory with a MANIFEST has no log.
var ErrNoLog = errors.New("all of it is missing: what no flush has written is lost, and how " +
	"much that is, is not known")

// parseName returns the number in the name of a file.
func parseName(name, suffix string) (n uint64, ok bool) {
	text, found := strings.CutSuffix(name, suffix)
	n, err := strconv.ParseUint(text, 16, 63)
	return n, found && err == nil && len(text) == 16
}

// Readers are the files that Look has opened, by number. They are the caller's to
// close.
type Readers map[uint64]*segment.Reader

// Close closes all.
func (r Readers) Close() error {
	var errs []error
	for _, reader := range r {
		errs = append(errs, reader.Close())
	}
	return errors.Join(errs...)
}

// Look lists and opens the files of segments in the directory dir, which has the id of. Its error
// is one that says nothing about the files, such as a limit of open ones or a newer format.
func Look(fs vfs.FS, dir string, of origin.Directory, state *manifest.State,
	open func(path string) (*segment.Reader, error)) (in Input, readers Readers, err error) {
	in.State, readers = state, Readers{}
	if err := in.list(fs, dir); err != nil {
		return in, readers, err
	}
	if err := in.listSides(fs, dir, of); err != nil {
		return in, readers, err
	}
	strange := state.Suspect
	for i := range in.Files {
		f := &in.Files[i]
		at := slices.IndexFunc(state.Segments, func(m manifest.Segment) bool { return m.Seq == f.Seq })
		if f.Temp || f.Foreign {
			continue
		}
		if at >= 0 {
			f.Meta = state.Segments[at]
		}
		r, err := open(fs.PathJoin(dir, f.Path))
		switch {
		case segment.ReadFailed(err):
			f.Unread, f.Damage = true, err.Error()
		case segment.IsDamage(err) || oserror.IsNotExist(err):
			f.Damage = err.Error()
		case err != nil:
			return in, readers,
				fmt.Errorf("segment %s: %w; mend the cause and start again, nothing was changed", f.Path, err)
		default:
			if !f.belongs(of, r, at >= 0) {
				_ = r.Close() // it was only read
				r = nil
				break
			}
			readers[f.Seq] = r
		}
		strange = strange || at < 0 || r == nil
	}
	if !strange && len(readers) == len(state.Segments) {
		return in, readers, nil // what files say of themselves is not needed
	}
	for i := range in.Files {
		if f := &in.Files[i]; f.opens() {
			if err := f.read(readers[f.Seq], state); err != nil {
				return in, readers, err
			}
		}
	}
	return in, readers, nil
}

// belongs reports whether a file is the one of its name, and the one that was committed under it,
// and notes why not.
func (f *File) belongs(of origin.Directory, r *segment.Reader, named bool) bool {
	info := r.Info()
	why := origin.File{Directory: of, Number: f.Seq}.Check(r.Origin())
	if why == nil && named {
		why = origin.CheckContent(f.Meta.Bytes, f.Meta.Sum, info.Size, info.Sum)
	}
	if why != nil {
		f.Foreign, f.Damage = true, why.Error()
	}
	return why == nil
}

// list lists what there is.
func (in *Input) list(fs vfs.FS, dir string) error {
	seen := map[uint64]bool{}
	for kind, sub := range datadir.SegmentDirs {
		names, err := fs.List(fs.PathJoin(dir, sub))
		if err != nil && !oserror.IsNotExist(err) {
			return err
		}
		slices.Sort(names)
		for _, name := range names {
			f := File{
				Path: sub + "/" + name,
				Kind: manifest.Kind(kind),
				Temp: strings.HasSuffix(name, datadir.TempSuffix),
			}
			seq, ok := parseName(strings.TrimSuffix(name, datadir.TempSuffix), datadir.SegmentSuffix)
			f.Seq, f.Foreign = seq, !ok
			if ok && !f.Temp {
				f.Foreign = seen[seq] || slices.ContainsFunc(in.State.Segments, func(m manifest.Segment) bool {
					return m.Seq == seq && m.Kind != f.Kind
				})
				seen[seq] = true
			}
			in.Highest = max(in.Highest, seq)
			in.Files = append(in.Files, f)
		}
	}
	names, err := fs.List(fs.PathJoin(dir, datadir.LostFound))
	if err != nil && !oserror.IsNotExist(err) {
		return err
	}
	for _, name := range names {
		if number, _, _ := strings.Cut(name, "."); len(number) == 16 {
			seq, _ := parseName(number, "") // 0 where it is none
			in.Highest = max(in.Highest, seq)
		}
	}
	for i := range in.State.Segments {
		in.Highest = max(in.Highest, in.State.Segments[i].Seq)
	}
	names, err = fs.List(fs.PathJoin(dir, datadir.WAL))
	if err != nil && !oserror.IsNotExist(err) {
		return err
	}
	for _, name := range names {
		if lsn, ok := parseName(name, logSuffix); ok && (in.LogFrom == 0 || lsn < in.LogFrom) {
			in.LogFrom = lsn
		}
	}
	return nil
}

// read takes what a file that opens says of itself.
func (f *File) read(r *segment.Reader, state *manifest.State) error {
	src, err := r.State()
	if err != nil && !segment.IsDamage(err) {
		return err
	}
	if e, bad := manifest.DecodeEdit(src); err == nil && bad == nil && len(src) > 0 {
		f.Edit = &e
	}
	if state.HasSegment(f.Seq) {
		return nil
	}
	info := r.Info()
	if f.Edit != nil {
		for _, m := range f.Edit.AddSegments {
			if m.Seq == f.Seq {
				f.Meta = m
				f.Meta.Bytes, f.Meta.Sum, f.Meta.Points = info.Size, info.Sum, info.Points
				return nil
			}
		}
		f.Edit = nil // another file's
	}
	return f.describe(r)
}

// describe tells from the footer and the index what a state block would say.
func (f *File) describe(r *segment.Reader) error {
	info := r.Info()
	f.Meta = manifest.Segment{
		Seq: f.Seq, Kind: f.Kind, Bytes: info.Size, Sum: info.Sum, Points: info.Points,
		Generation: uint64(info.Generation), Marks: hole.Marks{All: true},
	}
	buckets, err := r.Buckets()
	if err != nil && !segment.IsDamage(err) {
		return err
	}
	var ranges window.Ranges
	for i := range buckets {
		id := buckets[i].ID
		if err := r.Entries(id, func(number int64, _ int) {
			ranges.Add(id, number)
		}); err != nil && !segment.IsDamage(err) {
			return err
		}
	}
	f.Meta.Ranges = ranges.List()
	if f.Kind == manifest.Window && len(f.Meta.Ranges) > 0 {
		f.Meta.Ranges = []manifest.Range{{
			Bucket: f.Meta.Ranges[0].Bucket,
			First:  info.WindowFirst,
			Past:   info.WindowFirst + int64(info.WindowChunks),
		}}
	}
	return nil
}
