package fsck

import (
	"fmt"

	"github.com/cockroachdb/errors/oserror"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/store/recovery"
)

func (c *checker) checkVersion() {
	text, said, ok, err := datadir.ReadVersion(c.fs, c.dir)
	if err == nil {
		c.id = recovery.DirectoryOf(c.fs, c.dir, said, ok)
	}
	want := datadir.VersionText(c.id)
	switch {
	case err != nil:
		c.unreadable(datadir.Version, err)
		return
	case text == "":
		c.damaged(Damage{
			File:     datadir.Version,
			Part:     "file",
			Expected: fmt.Sprintf("%q", want),
			Found:    "no file",
		})
		return
	}
	c.report.Files++
	if text != want {
		c.damaged(Damage{File: datadir.Version, Length: int64(len(text)), Part: "file",
			Expected: fmt.Sprintf("%q", want), Found: fmt.Sprintf("%.40q", text)})
	}
}

// noteOlder notes the segments all of whose names the catalogue holds from now
// on: it takes them before the MANIFEST does. Damage is for checkManifest.
func (c *checker) noteOlder() {
	c.older = make(map[uint64]bool)
	if state, _, err := manifest.Inspect(c.fs, c.dir, c.id); err == nil && state != nil {
		for i := range state.Segments {
			c.older[state.Segments[i].Seq] = true
		}
	}
}

func (c *checker) checkManifest() {
	state, report, err := manifest.Inspect(c.fs, c.dir, c.id)
	c.state = state
	switch {
	case oserror.IsNotExist(err):
		c.damaged(Damage{
			File:     manifest.FirstName,
			Part:     "file",
			Expected: "a MANIFEST",
			Found:    "no file",
		})
	case err != nil:
		c.unreadable(manifest.FirstName, err)
	default:
		c.report.Files++
		c.listed = true
	}
	if state == nil {
		c.state = &manifest.State{Suspect: true}
	}
	for _, p := range report.Damaged {
		c.damaged(Damage{File: p.File, Offset: p.Offset, Length: p.Bytes, Part: "edit", Detail: p.Reason})
	}
	for _, what := range report.Lost {
		c.damaged(Damage{File: manifest.FirstName, Part: "edits", Detail: "lost in both copies: " + what})
	}
	for _, p := range report.Torn {
		// Beside a running store this is a commit under way.
		if c.running == nil {
			c.expected(Damage{
				File:   p.File,
				Offset: p.Offset,
				Length: p.Bytes,
				Part:   "torn end",
				Detail: p.Reason,
			})
		}
	}
	c.lost = c.state.LostFiles
	if c.running == nil {
		c.planStart()
	}
	c.buckets = make(map[uint64]bool, len(c.state.Buckets))
	for _, b := range c.state.Buckets {
		c.buckets[b.ID] = true
		c.tombstones[b.ID] = version.FromManifest(b.ID, c.state.Tombstones)
		c.report.Deletions += int64(len(c.tombstones[b.ID]))
	}
	c.report.Remembered = version.CountDeleted(c.state.Remembered)
	c.checkHoles()
}

// checkHoles names what is unknown since something was lost.
func (c *checker) checkHoles() {
	for _, h := range c.state.Holes {
		d := Damage{File: manifest.FirstName, Part: "hole",
			Detail: fmt.Sprintf("slots %d to %d of bucket %d are unknown for the series from %016x to "+
				"%016x where no newer source has them: %s",
				h.From, h.Past-1, h.Bucket, h.Low, h.High, h.Cause)}
		if h.Source != 0 {
			d.Detail += fmt.Sprintf(", segment %d", h.Source)
		}
		c.damaged(d)
	}
}

// planStart makes the plan of a start and reports what it says. What is verified
// then is what that start would serve.
func (c *checker) planStart() {
	in, readers, err := recovery.Look(c.fs, c.dir, c.id, c.state,
		func(path string) (*segment.Reader, error) {
			return segment.Open(c.fs, path)
		})
	if err != nil {
		c.unreadable(c.dir, err)
	}
	if err := readers.Close(); err != nil {
		c.unreadable(c.dir, err)
	}
	in.Now = c.opts.Now().UnixMilli()
	plan := recovery.Decide(in)
	for _, l := range plan.Lines() {
		d := Damage{File: l.File, Part: "file", Detail: l.Text}
		if l.Damage {
			c.damaged(d)
		} else {
			c.expected(d)
		}
	}
	c.state = plan.State
}
