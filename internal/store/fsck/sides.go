package fsck

import (
	"errors"
	"fmt"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/mirror"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/write/logrecord"
)

// checkSides verifies the committed side files, and names those that are lost.
func (c *checker) checkSides() {
	for _, f := range c.lost {
		if c.state.HasFile(f.FileName) {
			continue // it is back
		}
		c.damaged(Damage{
			File:   datadir.FilePaths(f.FileName)[0],
			Part:   "items",
			Detail: fmt.Sprintf("%d items are lost since it was missing or damaged", f.Items),
		})
	}
	for i := range c.state.Files {
		f := &c.state.Files[i]
		c.begin(datadir.FilePaths(f.Name())[0])
		if c.fs.Err() != nil {
			return
		}
		c.checkSide(f)
	}
}

// checkSide verifies one file. Each kind has its line here.
func (c *checker) checkSide(f *manifest.File) {
	switch f.Kind {
	case manifest.TagBase, manifest.TagChanges:
		c.checkMirror(f)
	case manifest.EventFile:
		c.checkEvents(f)
	}
}

// dropped says whether a running store has dropped a side file since the check read the MANIFEST.
func (c *checker) dropped(n manifest.FileName) bool {
	if c.running == nil {
		return false
	}
	state, _, err := manifest.Inspect(c.fs, c.dir, c.id)
	return err == nil && !state.HasFile(n)
}

// checkTags verifies an item of a file of tags: a block of rows, or a record as the log had it.
func checkTags(b *tags.Block, item []byte) error {
	if !tags.IsBlock(item) {
		_, err := logrecord.Parse(item)
		return err
	}
	if err := b.Parse(item); err != nil {
		return err
	}
	return b.Check()
}

// checkMirror verifies a file of tags in both copies.
func (c *checker) checkMirror(f *manifest.File) {
	path := datadir.FilePaths(f.Name())[0]
	var b tags.Block
	items := int64(0)
	report, err := mirror.Read(c.fs, c.dir, c.id, f, func(item []byte) error {
		if err := checkTags(&b, item); err != nil {
			c.damaged(Damage{File: path, Part: "items", Detail: fmt.Sprintf("item %d: %v", items, err)})
		}
		items++
		return nil
	})
	if !report.IsWhole() && c.dropped(f.Name()) {
		return
	}
	if err != nil && !errors.Is(err, c.fs.Err()) {
		c.unreadable(path, err)
		return
	}
	c.report.Files += mirror.Copies
	c.report.TagEntries += report.Entries
	c.report.TagsDamaged = c.report.TagsDamaged || !report.IsWhole()
	for _, p := range report.Bad {
		c.damaged(Damage{
			File:   p.File,
			Offset: p.Offset,
			Length: p.Bytes,
			Part:   "copy",
			Detail: p.Reason + c.otherCopy(&report),
		})
	}
	if report.Lost {
		c.damaged(Damage{
			File:   path,
			Part:   "items",
			Detail: report.LostText(f.Kind) + " are in neither copy" + c.inMemory(),
		})
	}
}

// otherCopy says what the other copy is good for.
func (c *checker) otherCopy(r *mirror.Report) string {
	switch {
	case r.Lost:
		return ""
	case c.running != nil:
		return "; nothing is lost, because the other copy has it"
	}
	return "; nothing is lost, because the other copy has it; the next start writes this one again"
}

// inMemory says what becomes of what neither copy has.
func (c *checker) inMemory() string {
	if c.running != nil {
		return "; the node has in memory what it could read at its start"
	}
	return ""
}
