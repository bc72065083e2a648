package compaction

import (
	"context"
	"errors"

	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
)

// maxHoleSlots is how many slots one look for holes that have ended reads: some tenths
// of a second. What is left over stays a hole until it needs less, or its lifetime passes.
const maxHoleSlots = 16 << 20

// holesOf returns the holes of a bucket, nil where there are none.
func (c *Compactor) holesOf(bucket uint64) *hole.Set { return c.o.Versions.Latest().Holes(bucket) }

// showHoles puts the holes that are committed into a version, together with the change
// of segments that they belong to.
func (c *Compactor) showHoles(v *version.Version) {
	v.ShowHoles(c.o.Buckets.Buckets(), c.o.Manifest.Holes())
}

// noteHidden adds the points that the merge leaves out under holes to the segments whose
// loss made them: when such a file comes back, they are recovered as far as it holds
// points for them.
func (m *merging) noteHidden(e *manifest.Edit) {
	if len(m.hidden) == 0 {
		return
	}
	for _, l := range m.c.o.Manifest.State().Lost {
		if n := m.hidden[l.Seq]; n > 0 {
			l.Points += n
			e.Lost = append(e.Lost, l)
		}
	}
}

// loseHidden counts these points as lost, with what hides them: from now on they are in no
// segment. Whether they were out of date is not known.
func (m *merging) loseHidden() {
	for source, n := range m.hidden {
		cause := LostSegment
		if source == 0 {
			cause = LostBlocks
		}
		m.c.o.Account.Lose(cause, n)
	}
}

// outlivedHoles returns the holes all of whose slots are older than the lifetime of
// their bucket.
func (c *Compactor) outlivedHoles() (ended []hole.Hole) {
	for _, b := range c.o.Buckets.Buckets() {
		lo := c.oldest(&b)
		for _, h := range c.holesOf(b.ID).Holes() {
			if h.Past <= lo {
				ended = append(ended, h)
			}
		}
	}
	return ended
}

// endHoles ends the holes that hide nothing any more. Either the series of a hole are all gone, or
// its living slots are all set, for each of them, in segments at or above the hole. What is in the
// head does not count: it may not be on disk. The caller has mu.
func (c *Compactor) endHoles(ctx context.Context) error {
	if c.o.Series.NamesUnread() || c.o.Failed() != nil {
		return nil // a series may be one that nobody knows
	}
	ended := c.outlivedHoles()
	left := int64(maxHoleSlots)
	for _, b := range c.o.Buckets.Buckets() {
		set := c.holesOf(b.ID)
		if set == nil {
			continue
		}
		open, err := c.openHoles(ctx, &b, set, &left)
		if err != nil {
			return err
		}
		for _, h := range set.Holes() {
			if !open[h] {
				ended = append(ended, h)
			}
		}
	}
	if len(ended) == 0 {
		return nil
	}
	c.o.Gate.Lock()
	defer c.o.Gate.Unlock()
	if c.o.Gate.IsClosed() {
		return version.ErrClosed
	}
	if err := c.o.Commit(manifest.Edit{EndHoles: ended}); err != nil {
		return err
	}
	c.o.Versions.Publish(c.showHoles)
	return nil
}

// openHoles returns the holes of a bucket of which a slot is still unknown, or which were
// not looked through.
func (c *Compactor) openHoles(ctx context.Context, b *buckets.Info, set *hole.Set,
	left *int64) (map[hole.Hole]bool, error) {
	open := make(map[hole.Hole]bool)
	lo := c.oldest(b)
	var errs []error
	c.o.Series.Each(b.ID, func(id metric.SeriesID) bool {
		p := hole.PrefixOf(id)
		for _, h := range set.Holes() {
			if open[h] || p < h.Low || h.High < p {
				continue
			}
			from := max(h.From, lo)
			if h.Past-from > *left {
				open[h] = true
				continue
			}
			*left -= max(h.Past-from, 0)
			unknown, err := c.o.Unknown(ctx, b.ID, id, from, h.Past)
			if err != nil {
				errs = append(errs, err)
				return false
			}
			open[h] = unknown
		}
		return ctx.Err() == nil
	})
	return open, errors.Join(append(errs, ctx.Err())...)
}
