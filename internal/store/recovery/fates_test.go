package recovery

import (
	"fmt"
	"slices"
	"testing"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
)

// oneStray is a whole MANIFEST after some flushes, and files of flushes behind the last one that it
// knows.
func oneStray(behind int) (in Input, strays []uint64) {
	w := newWorld(1)
	w.flush(false)
	w.flush(false)
	known := w.state.Clone()
	for range behind {
		strays = append(strays, w.next)
		w.flush(false)
	}
	return w.input(known, replayFrom(known)), strays
}

// One flush behind a whole MANIFEST is what a crash leaves, and the log has it. Where anything says
// that the MANIFEST is old the flush counts: its points may be nowhere else.
func TestAFlushThatTheManifestDoesNotName(t *testing.T) {
	for name, c := range map[string]struct {
		behind int
		change func(in *Input, stray uint64)
		counts bool
	}{
		"what a crash leaves":            {1, func(*Input, uint64) {}, false},
		"the log begins before the need": {1, func(in *Input, _ uint64) { in.LogFrom-- }, false},
		"the MANIFEST lost edits": {1, func(in *Input, _ uint64) {
			in.State.Suspect = true
		}, true},
		"the log begins behind the need": {1, func(in *Input, _ uint64) { in.LogFrom++ }, true},
		"there is no log":                {1, func(in *Input, _ uint64) { in.LogFrom = 0 }, true},
		"it was counted as lost": {1, func(in *Input, stray uint64) {
			in.State.Lost = []manifest.LostSegment{{Seq: stray}}
		}, true},
		"two are behind": {2, func(*Input, uint64) {}, true},
	} {
		in, strays := oneStray(c.behind)
		c.change(&in, strays[0])
		p := Decide(in)
		for _, seq := range strays {
			counts := slices.ContainsFunc(p.State.Segments, func(m manifest.Segment) bool {
				return m.Seq == seq
			})
			if counts != c.counts {
				t.Errorf("%s: flush %d counts: %t, want %t", name, seq, counts, c.counts)
			}
		}
	}
}

// tagFile is a file of a side, as it says of itself or as the MANIFEST names it.
func tagFile(kind manifest.FileKind, seq, replaces uint64) manifest.File {
	return manifest.File{Kind: kind, Seq: seq, From: 1, Past: 100 + seq, Replaces: replaces, Items: 1}
}

// sides are the files that a start finds.
func sides(list ...manifest.File) (out []SideFile) {
	for _, f := range list {
		out = append(out, SideFile{Path: datadir.FilePaths(f.Name())[0], Name: f.Name()})
	}
	return out
}

// A base replaces all files up to a number, that one included, and none behind it.
func TestWhichFilesABaseReplaces(t *testing.T) {
	last, behind := tagFile(manifest.TagChanges, 5, 0), tagFile(manifest.TagChanges, 6, 0)
	base := tagFile(manifest.TagBase, 7, 5)
	in := Input{State: &manifest.State{Files: []manifest.File{base, last, behind}},
		Sides: sides(last, behind, base), LogFrom: 1}
	p := Decide(in)
	if want := []manifest.FileName{last.Name()}; !slices.Equal(p.Edit.Files.Remove, want) {
		t.Errorf("the names %+v leave the MANIFEST, want %+v", p.Edit.Files.Remove, want)
	}
	for i, want := range []bool{false, true, true} {
		if keeps := p.Sides[i].Fate == Keep; keeps != want {
			t.Errorf("%s is kept: %t, want %t", p.Sides[i].File.Path, keeps, want)
		}
	}
	// A base that is missing replaces nothing.
	in.Sides = sides(last, behind)
	if p := Decide(in); slices.Contains(p.Edit.Files.Remove, last.Name()) ||
		len(p.Edit.Files.Lost) != 1 {
		t.Errorf("without the base: %+v leave the MANIFEST, lost are %+v", p.Edit.Files.Remove,
			p.Edit.Files.Lost)
	}
}

// No file goes on the word of a MANIFEST that has lost edits or does not name all that counts.
func TestNoFileGoesOnTheWordOfAnOldManifest(t *testing.T) {
	base, dead, stray := tagFile(manifest.TagBase, 7, 5), tagFile(manifest.TagChanges, 5, 0),
		tagFile(manifest.TagChanges, 8, 0)
	torn := tagFile(manifest.TagChanges, 9, 0) // says nothing of itself: it goes to lost+found
	for name, c := range map[string]struct {
		suspect bool
		logFrom uint64
		strays  []manifest.File
		removes bool
	}{
		"a whole one":                         {false, 1, nil, true},
		"it lost edits, and no file counts":   {true, 1, nil, false},
		"it is whole, and another one counts": {false, 50, []manifest.File{stray}, false},
		"both":                                {true, 50, []manifest.File{stray}, false},
	} {
		state := &manifest.State{Suspect: c.suspect, Files: []manifest.File{base}}
		in := Input{State: state, Sides: sides(append(c.strays, base, dead, torn)...), LogFrom: c.logFrom}
		for _, f := range c.strays {
			in.Said = append(in.Said, Said{File: f})
		}
		in.Sides = append(in.Sides, SideFile{Path: "tags/unfinished.tmp", Temp: true})
		removed := 0
		for _, v := range Decide(in).Sides {
			if v.Fate == Remove {
				removed++
			}
		}
		if want := 2; c.removes && removed != want || !c.removes && removed != 0 {
			t.Errorf("%s: %d files are removed: %s", name, removed, fmt.Sprint(Decide(in).Sides))
		}
	}
}
