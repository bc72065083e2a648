package recovery

import (
	"slices"
	"strings"
	"testing"

	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/model/buckets"
)

func eventsFile(seq uint64, of ...buckets.Info) Said {
	f := manifest.File{Kind: manifest.EventFile, Seq: seq, Past: 100}
	for _, b := range of {
		f.Ranges = append(f.Ranges, manifest.FileRange{Bucket: b.ID, First: 1, Last: 9, Items: 3})
	}
	return Said{File: f, Buckets: of}
}

// What files of events tell of buckets fills what a MANIFEST has lost, and changes nothing that is
// known.
func TestBucketsThatOnlyFilesOfEventsTell(t *testing.T) {
	one := buckets.Info{ID: 1, Name: "a", Resolution: 1000, PPF: 60, TTL: 5}
	longer := one
	longer.TTL = 50
	other := buckets.Info{ID: 2, Name: "a", Resolution: 2000, PPF: 60}
	for name, c := range map[string]struct {
		told  []Said
		state manifest.State
		want  []buckets.Info
		line  string // of the plan
	}{
		"the newest is right": {told: []Said{eventsFile(4, longer), eventsFile(3, one)},
			state: manifest.State{Suspect: true}, want: []buckets.Info{longer}, line: "comes back"},
		"the MANIFEST knows it": {told: []Said{eventsFile(3, one)},
			state: manifest.State{Suspect: true, Buckets: []buckets.Info{longer}},
			want:  []buckets.Info{longer}},
		"it was deleted": {told: []Said{eventsFile(3, one)},
			state: manifest.State{
				Suspect: true, DeletedBuckets: []buckets.Deletion{{ID: 1, Clock: 1, Name: "a"}}}},
		"another has the name": {told: []Said{eventsFile(3, one)},
			state: manifest.State{Suspect: true, Buckets: []buckets.Info{other}},
			want:  []buckets.Info{other}, line: "3 events are left out"},
		"a newer one has the name": {told: []Said{eventsFile(3, one), eventsFile(4, other)},
			state: manifest.State{Suspect: true}, want: []buckets.Info{other},
			line: "3 events are left out"},
		"the file was never needed": {told: []Said{eventsFile(3, one)}},
	} {
		in := Input{State: &c.state, Said: c.told, LogFrom: 1}
		for _, f := range c.told {
			in.Sides = append(in.Sides, SideFile{Path: "events/x", Name: f.File.Name()})
		}
		p := Decide(in)
		if !slices.Equal(p.State.Buckets, c.want) {
			t.Errorf("%s: buckets %+v, want %+v", name, p.State.Buckets, c.want)
		}
		said := func(l Line) bool { return l.Damage && strings.Contains(l.Text, c.line) }
		if c.line != "" && !slices.ContainsFunc(p.Lines(), said) {
			t.Errorf("%s: no line says %q: %+v", name, c.line, p.Lines())
		}
	}
}
