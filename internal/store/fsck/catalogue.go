package fsck

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"

	"dalmatiner/internal/disk/catalogue"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/model/metric"
)

// checkCatalogue reads all names.
func (c *checker) checkCatalogue() {
	take := func(e segment.Series) error {
		if len(e.Key) == 0 {
			return nil // the place of a column whose series is gone
		}
		id, ok := identity(&e)
		if !ok {
			c.damaged(Damage{File: datadir.Catalogue, Part: "series " + metric.Text(e.Key),
				Expected: "hash " + segment.Hash(id).String(), Found: e.Hash.String()})
		}
		c.names = append(c.names, metric.SeriesID(e.Hash).Value())
		c.lives.Raise(metric.SeriesID(e.Hash).Value(), e.Incarnation)
		if e.Incarnation > 0 {
			c.begun[metric.SeriesID(e.Hash).Value()] = e.Since
		}
		return nil
	}
	if c.running != nil {
		err := c.running.Names(take)
		if err != nil {
			c.unreadable(datadir.Catalogue, err)
		}
		c.named = err == nil
	} else {
		c.named = c.checkClosedCatalogue(take)
	}
	c.report.Series = int64(len(c.names))
	c.report.Again = c.lives.Len()
	slices.SortFunc(c.names, compareIDs)
}

func (c *checker) checkClosedCatalogue(take func(segment.Series) error) (whole bool) {
	dir := c.path(datadir.Catalogue)
	mark, found, err := catalogue.Inspect(c.fs, dir, slog.New(slog.DiscardHandler), take)
	if err != nil {
		c.unreadable(datadir.Catalogue, err)
	}
	c.mark = mark
	for _, d := range found {
		file := c.fs.PathJoin(datadir.Catalogue, d.File)
		if d.File == datadir.Catalogue {
			file = datadir.Catalogue
		}
		c.damaged(Damage{File: file, Part: "table", Detail: d.Err.Error()})
	}
	whole = err == nil && len(found) == 0
	if names, err := c.fs.List(dir); err == nil {
		c.report.Files += int64(len(names))
	}
	return whole
}

// checkMark compares the mark of the catalogue, of which no file is damaged, with what
// the start expects. The state is that of its plan.
func (c *checker) checkMark() {
	if c.running != nil || !c.named {
		return
	}
	at := catalogue.AtLeast(c.state.Catalogue, len(c.state.Segments) > 0)
	switch {
	case c.mark == 0 && at > 0:
		c.named = false
		c.damaged(Damage{File: datadir.Catalogue, Part: "directory", Found: "none",
			Expected: "a catalogue",
			Detail:   "it is rebuilt from the segments at the next start"})
	case c.mark < at:
		c.named = false
		c.damaged(Damage{File: datadir.Catalogue, Part: "generation", Expected: fmt.Sprint(at - 1),
			Found:  fmt.Sprint(c.mark - 1),
			Detail: "names of series are lost; it is rebuilt from the segments at the next start"})
	case c.state.Catalogue&catalogue.NamesUnread != 0:
		c.named = false
		c.damaged(Damage{File: datadir.Catalogue, Part: "series", Expected: "all that segments name",
			Detail: "the device did not give some of the names when it was rebuilt; the next start looks " +
				"for them again"})
	}
}

// identity returns the id that a name has, and whether it is the one noted with
// it: in a bucket with timestamps that of the values.
func identity(e *segment.Series) (metric.SeriesID, bool) {
	id, noted := metric.Series(e.Bucket, e.Key), metric.SeriesID(e.Hash)
	return id, noted == id || noted == id.Value()
}

// hasName says whether the catalogue names a series. Values and timestamps have one
// name, so that names are kept under the id of values.
func (c *checker) hasName(id metric.SeriesID) bool {
	_, ok := slices.BinarySearchFunc(c.names, id.Value(), compareIDs)
	return ok
}

// hidden says whether a series was deleted after a segment was written that is
// purged of what was deleted before.
func (c *checker) hidden(bucket uint64, h segment.Hash, purged uint64) bool {
	var now version.Tombstones // of a running store
	if c.running != nil {
		now = c.running.Tombstones(bucket)
	}
	id := metric.SeriesID(h)
	for _, id := range []metric.SeriesID{id, id.Value()} { // in a bucket with timestamps the latter
		if c.deleted[id] || purged < max(c.tombstones[bucket].DeleteSequence(id),
			now.DeleteSequence(id)) {
			return true
		}
	}
	return false
}

// alive says whether a bucket is there to have series.
func (c *checker) alive(bucket uint64) bool {
	if c.running != nil {
		return c.running.HasBucket(bucket)
	}
	return c.buckets[bucket]
}

// checkUnlisted reports the names that the catalogue has lost: those of series
// that have chunks. A series that has expired may still be named somewhere.
func (c *checker) checkUnlisted() {
	for i := 0; i < len(c.unlisted); {
		file, missing, example := c.unlisted[i].file, 0, segment.Hash{}
		for ; i < len(c.unlisted) && c.unlisted[i].file == file; i++ {
			if c.unnamed[metric.SeriesID(c.unlisted[i].hash).Value()] {
				missing++
				example = c.unlisted[i].hash
			}
		}
		if missing > 0 {
			c.damaged(Damage{File: datadir.Catalogue, Part: "series", Expected: "all that " + file +
				" names",
				Found: fmt.Sprintf("%d are missing, hash %s among them", missing, example)})
		}
	}
}

func compareIDs(a, b metric.SeriesID) int { return bytes.Compare(a[:], b[:]) }
