package fsck

import (
	"errors"
	"fmt"
	"slices"

	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/origin"
)

// checkEvents verifies a file of events: both copies of its index, every block, and what the
// MANIFEST says of it. What it says was lost before is not damage of the file.
func (c *checker) checkEvents(f *manifest.File) {
	path := eventfile.Path(f.Seq)
	r, damage, err := eventfile.Open(c.fs, c.fs.PathJoin(c.dir, path),
		origin.File{Directory: c.id, Number: f.Seq})
	if err == nil {
		err = r.Acquire()
	}
	if err != nil {
		if !c.dropped(f.Name()) {
			c.eventDamage(path, err)
		}
		return
	}
	defer r.Release()
	c.report.Files++
	for _, d := range damage {
		c.eventDamage(path, fmt.Errorf("%w; nothing is lost, because the other copy has it", d))
	}
	if said := r.File(); said.Bytes != f.Bytes || said.Sum != f.Sum || said.Items != f.Items ||
		!slices.Equal(said.Ranges, f.Ranges) {
		c.damaged(Damage{
			File: path,
			Part: "index",
			Detail: fmt.Sprintf("the MANIFEST says that it has %d bytes and %d events, it has %d and %d",
				f.Bytes, f.Items, said.Bytes, said.Items),
		})
	}
	var buf eventfile.Buffer
	for i := range r.Blocks {
		list, err := r.Load(i, &buf)
		if err != nil {
			if c.fs.Err() != nil {
				return
			}
			c.eventDamage(path, err)
			continue
		}
		c.report.Events += int64(len(list))
	}
}

func (c *checker) eventDamage(path string, err error) {
	var d *eventfile.DamageError
	if !errors.As(err, &d) || d.Read {
		c.unreadable(path, err)
		return
	}
	c.damaged(Damage{
		File:   path,
		Offset: d.Offset,
		Length: d.Length,
		Part:   d.Part,
		Detail: err.Error(),
	})
}
