package recovery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/mirror"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/model/buckets"
)

// SideFile is a file in the directory of a side, or one of its copies.
type SideFile struct {
	Path    string // below the data directory
	Name    manifest.FileName
	Temp    bool // its name is that of an unfinished file
	Foreign bool // its name is none of a side file, or that of another one: Why says so
	Why     string
}

// Said is what a whole side file says of itself.
type Said struct {
	File    manifest.File
	Buckets []buckets.Info // that it has something of
	Sources []uint64       // numbers of the files of its directory that it was made from
}

// merged reports whether a merge wrote the file.
func (s *Said) merged() bool { return s.File.Replaces > 0 || len(s.Sources) > 0 }

// replaces reports whether it holds what another file of its directory does.
func (s *Said) replaces(n manifest.FileName) bool {
	return datadir.FileDir(n) == datadir.FileDir(s.File.Name()) && n != s.File.Name() &&
		(n.Seq <= s.File.Replaces || slices.Contains(s.Sources, n.Seq))
}

// describe returns what a file says of itself, and whether that is enough to take it in. Each kind
// of file has its line here.
func describe(fs vfs.FS, dir string, of origin.Directory,
	n manifest.FileName) (said Said, ok bool, err error) {
	switch n.Kind {
	case manifest.TagBase, manifest.TagChanges:
		said.File, ok, err = mirror.Describe(fs, dir, of, n)
	case manifest.EventFile:
		said.File, said.Buckets, said.Sources, ok, err = eventfile.Describe(fs, dir, of, n)
	}
	return said, ok, err
}

// listSides lists the files of all sides, and asks them what they are where that is needed: in a
// directory with a file that the MANIFEST does not name, or where the MANIFEST has lost edits.
func (in *Input) listSides(fs vfs.FS, dir string, of origin.Directory) error {
	for _, sub := range datadir.FileDirs() {
		names, err := fs.List(fs.PathJoin(dir, sub))
		if err != nil && !oserror.IsNotExist(err) {
			return err
		}
		slices.Sort(names)
		from, strange := len(in.Sides), in.State.Suspect
		for _, name := range names {
			f := SideFile{Path: sub + "/" + name, Temp: strings.HasSuffix(name, datadir.TempSuffix)}
			n, ok := datadir.ParseFile(sub, strings.TrimSuffix(name, datadir.TempSuffix))
			f.Name, f.Foreign = n, !ok
			if f.whole() {
				if err := f.belongs(fs, dir, of); err != nil {
					return err
				}
			}
			in.Highest = max(in.Highest, n.Seq)
			in.Sides = append(in.Sides, f)
			strange = strange || f.whole() && !in.State.HasFile(n)
		}
		if strange {
			if err := in.ask(fs, dir, of, in.Sides[from:]); err != nil {
				return err
			}
		}
	}
	for i := range in.State.Files {
		in.Highest = max(in.Highest, in.State.Files[i].Seq)
	}
	return nil
}

func (f *SideFile) whole() bool { return !f.Temp && !f.Foreign }

// belongs notes why a file is not the one of its name.
func (f *SideFile) belongs(fs vfs.FS, dir string, of origin.Directory) error {
	found, ok, err := sideOrigin(fs, fs.PathJoin(dir, f.Path), f.Name.Kind)
	if err != nil {
		return fmt.Errorf("side file %s: %w; mend the cause and start again, nothing was changed", f.Path,
			err)
	}
	if why := (origin.File{Directory: of, Number: f.Name.Seq}).Check(found); ok && why != nil {
		f.Foreign, f.Why = true, why.Error()
	}
	return nil
}

// ask notes what the files of a directory say of themselves.
func (in *Input) ask(fs vfs.FS, dir string, of origin.Directory, list []SideFile) error {
	for i := range list {
		f := &list[i]
		if !f.whole() || in.said(f.Name) != nil {
			continue
		}
		said, ok, err := describe(fs, dir, of, f.Name)
		if err != nil && !in.State.HasFile(f.Name) {
			return fmt.Errorf("side file %s: %w; mend the cause and start again, nothing was changed",
				f.Path, err)
		}
		if ok {
			in.Said = append(in.Said, said)
		}
	}
	return nil
}

// said returns what a file says of itself, nil where it says nothing.
func (in *Input) said(n manifest.FileName) *Said {
	i := slices.IndexFunc(in.Said, func(s Said) bool { return s.File.Name() == n })
	if i < 0 {
		return nil
	}
	return &in.Said[i]
}
