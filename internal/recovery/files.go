package recovery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/buckets"
	"dalmatiner/internal/datadir"
	"dalmatiner/internal/eventfile"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/mirror"
)

// SideFile is a file in the directory of a side, or one of its copies.
type SideFile struct {
	Path    string // below the data directory
	Name    manifest.FileName
	Temp    bool // its name is that of an unfinished file
	Foreign bool // its name is none of a side file
}

// SideVerdict is the fate of a file of a side, and the reason. Expected is what a crash leaves.
type SideVerdict struct {
	File     *SideFile
	Fate     Fate
	Why      string
	Expected bool
}

// describe returns what a file says of itself and of buckets, and whether that is enough to take it
// in. Each kind of file has its line here.
func describe(fs vfs.FS, dir string, n manifest.FileName) (f manifest.File, of []buckets.Info, ok bool, err error) {
	switch n.Kind {
	case manifest.TagBase, manifest.TagChanges:
		f, ok, err = mirror.Describe(fs, dir, n)
		return f, nil, ok, err
	case manifest.EventFile:
		return eventfile.Describe(fs, dir, n)
	default:
		return f, nil, false, nil
	}
}

// listSides lists the files of all sides, and what those say that the MANIFEST does not name.
func (in *Input) listSides(fs vfs.FS, dir string) error {
	for _, sub := range datadir.FileDirs() {
		names, err := fs.List(fs.PathJoin(dir, sub))
		if err != nil && !oserror.IsNotExist(err) {
			return err
		}
		slices.Sort(names)
		for _, name := range names {
			f := SideFile{Path: sub + "/" + name, Temp: strings.HasSuffix(name, datadir.TempSuffix)}
			n, ok := datadir.ParseFile(sub, strings.TrimSuffix(name, datadir.TempSuffix))
			f.Name, f.Foreign = n, !ok
			in.Highest = max(in.Highest, n.Seq)
			in.Sides = append(in.Sides, f)
		}
	}
	for i := range in.Sides {
		f := &in.Sides[i]
		named := in.State.HasFile(f.Name)
		if f.Temp || f.Foreign || named && !in.State.Suspect || slices.ContainsFunc(in.Strays, func(s manifest.File) bool { return s.Name() == f.Name }) {
			continue
		}
		said, of, ok, err := describe(fs, dir, f.Name)
		if err != nil && !named {
			return fmt.Errorf("side file %s: %w; mend the cause and start again, nothing was changed", f.Path, err)
		}
		if ok && len(of) > 0 {
			in.Told = append(in.Told, Told{File: said, Buckets: of})
		}
		if ok && !named {
			in.Strays = append(in.Strays, said)
		}
	}
	for i := range in.State.Files {
		in.Highest = max(in.Highest, in.State.Files[i].Seq)
	}
	return nil
}

// sides decides about the side files. Those that the MANIFEST names count. Others are what a
// crash left, and the log has all that is in them; where the MANIFEST may have lost edits, or the
// log does not reach back to where the state begins, they are taken in. Of a side the file
// that replaces the most says which ones do not count.
func (p *planner) sides() {
	there := func(n manifest.FileName) bool {
		return slices.ContainsFunc(p.in.Sides, func(f SideFile) bool { return f.Name == n && !f.Temp && !f.Foreign })
	}
	adopt := p.in.State.Suspect || !p.logReachesBack()
	replaced := map[string]uint64{}
	count := func(f *manifest.File) {
		dir := datadir.FileDir(f.Name())
		replaced[dir] = max(replaced[dir], f.Replaces)
	}
	for i := range p.in.State.Files {
		if f := &p.in.State.Files[i]; there(f.Name()) {
			count(f)
		}
	}
	for i := range p.in.Strays {
		if adopt {
			count(&p.in.Strays[i])
		}
	}
	dead := func(n manifest.FileName) bool { return n.Seq <= replaced[datadir.FileDir(n)] }
	e := &p.plan.Edit.Files
	for i := range p.in.State.Files {
		switch f := &p.in.State.Files[i]; {
		case dead(f.Name()):
			e.Remove = append(e.Remove, f.Name())
		case !there(f.Name()):
			e.Remove = append(e.Remove, f.Name())
			p.plan.LostFiles = append(p.plan.LostFiles, *f)
		}
	}
	for i := range p.in.Strays {
		if f := &p.in.Strays[i]; adopt && !dead(f.Name()) {
			e.Add = append(e.Add, *f)
		}
	}
	p.judgeSides(dead)
	p.told = slices.DeleteFunc(slices.Clone(p.in.Told), func(t Told) bool {
		return dead(t.File.Name()) || !adopt && !p.in.State.HasFile(t.File.Name())
	})
}

// judgeSides gives every file of a side its verdict. Something is removed only on the word of a
// MANIFEST that is whole and names all that counts.
func (p *planner) judgeSides(dead func(manifest.FileName) bool) {
	e := &p.plan.Edit.Files
	gone := Remove
	if p.in.State.Suspect || len(e.Add) > 0 {
		gone = Aside
	}
	for i := range p.in.Sides {
		f := &p.in.Sides[i]
		v := SideVerdict{File: f, Expected: true}
		named := p.in.State.HasFile(f.Name)
		switch {
		case f.Foreign:
			v.Fate, v.Why, v.Expected = Aside, "it is no file of a store", false
		case f.Temp:
			v.Fate, v.Why = gone, "it was never finished"
		case dead(f.Name):
			v.Fate, v.Why = gone, "what replaced it is here"
		case named:
			v.Fate = Keep
		case slices.ContainsFunc(e.Add, func(a manifest.File) bool { return a.Name() == f.Name }):
			v.Fate, v.Why = Adopt, "the MANIFEST does not name it, and nothing that is here replaces it"
		case gone == Aside:
			v.Fate, v.Why, v.Expected = Aside, "the MANIFEST does not name it, and it is not whole", false
		default:
			v.Fate, v.Why = Remove, "it was not committed, and the log has all that is in it"
		}
		p.plan.Sides = append(p.plan.Sides, v)
	}
}

// sideLines says what the plan does with side files.
func (p *Plan) sideLines() (lines []Line) {
	for i := range p.LostFiles {
		f := &p.LostFiles[i]
		lines = append(lines, Line{File: datadir.FilePaths(f.Name())[0], Text: fmt.Sprintf("the file is missing in all copies; %d items are lost", f.Items), Damage: true, Side: true})
	}
	lines = append(lines, p.told...)
	for i := range p.Sides {
		if v := &p.Sides[i]; v.Fate != Keep {
			lines = append(lines, Line{File: v.File.Path, Text: v.Fate.String() + ": " + v.Why, Damage: !v.Expected, Side: true})
		}
	}
	return lines
}
