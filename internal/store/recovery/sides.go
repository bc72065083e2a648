package recovery

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
)

// SideVerdict is the fate of a file of a side, and the reason. Expected is what a crash leaves.
type SideVerdict struct {
	File     *SideFile
	Fate     Fate
	Why      string
	Expected bool
}

// sides decides about the side files. Those that the MANIFEST names count. Others are what a
// crash left, or what was committed behind an old MANIFEST. They are taken in where something
// may be in them alone: where the MANIFEST has lost edits, where the log does not reach back to
// where the state begins, and in a directory where a file that counts is missing.
func (p *planner) sides() {
	e := &p.plan.Edit.Files
	taken := p.takenIn()
	dead := func(n manifest.FileName) bool { return p.replaced(n, taken) }
	for i := range p.in.State.Files {
		switch f := &p.in.State.Files[i]; {
		case dead(f.Name()):
			e.Remove = append(e.Remove, f.Name())
		case !p.there(f.Name()):
			e.Remove = append(e.Remove, f.Name())
			e.Lost = append(e.Lost, manifest.LostFile{FileName: f.Name(), Items: f.Items, Ranges: f.Ranges})
		}
	}
	for i := range p.in.Said {
		if f := &p.in.Said[i].File; taken(f.Name()) && !dead(f.Name()) {
			e.Add = append(e.Add, *f)
			if f.Kind != manifest.EventFile && p.in.State.LostFile(f.Name()) != nil {
				e.Found = append(e.Found, f.Name()) // of events the flush says so that has the account
			}
		}
	}
	for i := range p.in.State.LostFiles {
		if f := &p.in.State.LostFiles[i]; p.expired(f.Ranges) {
			e.Found = append(e.Found, f.FileName)
		}
	}
	p.judgeSides(dead)
	p.told = slices.DeleteFunc(slices.Clone(p.in.Said), func(s Said) bool {
		n := s.File.Name()
		return dead(n) || !taken(n) && !p.in.State.HasFile(n)
	})
}

// there reports whether a copy of a side file is there.
func (p *planner) there(n manifest.FileName) bool {
	return slices.ContainsFunc(p.in.Sides, func(f SideFile) bool { return f.Name == n && f.whole() })
}

// takenIn returns what tells the files that are taken in although the MANIFEST does not name them.
// Some of them may be replaced by others.
func (p *planner) takenIn() func(manifest.FileName) bool {
	all := p.in.State.Suspect || !p.logReachesBack()
	short := map[string]bool{} // directories in which a file that counts is missing
	for i := range p.in.State.Files {
		if n := p.in.State.Files[i].Name(); !p.there(n) {
			short[datadir.FileDir(n)] = true
		}
	}
	return func(n manifest.FileName) bool {
		back := p.in.State.LostFile(n) != nil
		return !p.in.State.HasFile(n) && p.in.said(n) != nil && (all || back || short[datadir.FileDir(n)])
	}
}

// replaced reports whether a file that counts holds what this one does.
func (p *planner) replaced(n manifest.FileName, taken func(manifest.FileName) bool) bool {
	for i := range p.in.State.Files {
		f := &p.in.State.Files[i]
		if s := (Said{File: *f}); s.replaces(n) && p.there(f.Name()) {
			return true
		}
	}
	return slices.ContainsFunc(p.in.Said, func(s Said) bool {
		of := s.File.Name()
		return s.replaces(n) && (taken(of) || p.in.State.HasFile(of))
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
		said := p.in.said(f.Name)
		switch {
		case f.Foreign:
			v.Fate, v.Why, v.Expected = Aside, cmp.Or(f.Why, "it is no file of a store"), false
		case f.Temp:
			v.Fate, v.Why = gone, "it was never finished"
		case dead(f.Name):
			v.Fate, v.Why = gone, "what replaced it is here"
		case p.in.State.HasFile(f.Name):
			v.Fate = Keep
		case slices.ContainsFunc(e.Add, func(a manifest.File) bool { return a.Name() == f.Name }):
			v.Fate, v.Why = Adopt, "the MANIFEST does not name it, and nothing that is here replaces it"
		case said == nil:
			v.Fate, v.Why, v.Expected = Aside, "the MANIFEST does not name it, and it is not whole", false
		default:
			v.Fate, v.Why = p.notNeeded(said)
		}
		p.plan.Sides = append(p.plan.Sides, v)
	}
}

// notNeeded returns the fate of a whole file that does not count, though nothing replaces it. What
// a crash leaves is removed. Of others it is known that all they have is here as well, and not how
// they came: they are kept.
func (p *planner) notNeeded(s *Said) (Fate, string) {
	switch {
	case s.merged() && p.sourcesNamed(s):
		return Remove, "a merge that was not committed wrote it, and all that it was made from is here"
	case !s.merged() && s.File.Past > p.in.State.AccountLSN && p.newerFlushes() == 1:
		return Remove, "it was not committed, and the log has all that is in it"
	case p.expired(s.File.Ranges):
		return Remove, "all that it has expired, or is of a deleted bucket"
	}
	return Aside, "the MANIFEST does not name it, and all that it has is elsewhere as well"
}

// sourcesNamed reports whether the MANIFEST names all that a merge was made from: all that there is
// up to a position.
func (p *planner) sourcesNamed(s *Said) bool {
	last := uint64(0)
	for i := range p.in.State.Files {
		if f := &p.in.State.Files[i]; s.replaces(f.Name()) {
			last = max(last, f.Past)
		}
	}
	return s.File.Past <= last
}

// newerFlushes returns how many flushes that the MANIFEST does not know left a file. A crash leaves
// those of one: more show that the MANIFEST is old.
func (p *planner) newerFlushes() int {
	seen := map[uint64]bool{}
	for i := range p.in.Files {
		if f := &p.in.Files[i]; p.isNewer(f) {
			seen[f.Seq] = true
		}
	}
	for i := range p.in.Said {
		if s := &p.in.Said[i]; !s.merged() && !p.in.State.HasFile(s.File.Name()) &&
			s.File.Past > p.in.State.AccountLSN {
			seen[s.File.Seq] = true
		}
	}
	return len(seen)
}

// expired reports whether nothing of these ranges is ever read again.
func (p *planner) expired(ranges []manifest.FileRange) bool {
	for _, r := range ranges {
		b, deleted := p.bucket(r.Bucket)
		if deleted {
			continue
		}
		if b == nil || b.TTL <= 0 || r.Last/int64(time.Millisecond) >= p.in.Now-b.TTL*b.Resolution {
			return false
		}
	}
	return len(ranges) > 0
}

// sideLines says what the plan does with side files.
func (p *Plan) sideLines() (lines []Line) {
	for i := range p.Edit.Files.Lost {
		f := &p.Edit.Files.Lost[i]
		lines = append(lines, Line{
			File:   datadir.FilePaths(f.FileName)[0],
			Text:   fmt.Sprintf("the file is missing in all copies; %d items are lost", f.Items),
			Damage: true,
			Side:   true,
		})
	}
	lines = append(lines, p.told...)
	for i := range p.Sides {
		if v := &p.Sides[i]; v.Fate != Keep {
			lines = append(lines, Line{
				File:   v.File.Path,
				Text:   v.Fate.String() + ": " + v.Why,
				Damage: !v.Expected,
				Side:   true,
			})
		}
	}
	return lines
}
