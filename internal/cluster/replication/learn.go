package replication

import (
	"bytes"
	"slices"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

// learnProgress is how far the deletions of a peer are known.
type learnProgress struct {
	after metric.SeriesID
	sent  int64 // when the next page was asked for
	done  bool
}

// ready reports whether this node knows the deletions of all peers it reaches: only then
// it takes, compares and serves points.
func (c *Core) ready() bool { return c.asked == nil }

// askDeletions asks every peer that can be reached, until all its pages are here. Where none can,
// the node serves what it has: both sides of a partition go on.
func (c *Core) askDeletions() {
	if c.ready() {
		return
	}
	open := false
	for _, m := range c.view.Members() {
		if m.ID == c.config.Self || !c.up[m.ID] {
			continue
		}
		l := c.asked[m.ID]
		if l == nil {
			l = &learnProgress{sent: c.now.Steady - c.config.Resend}
			c.asked[m.ID] = l
		}
		if l.done {
			continue
		}
		open = true
		if c.now.Steady >= l.sent+c.config.Resend {
			c.askDeletionsOf(m.ID, l)
		}
	}
	if !open {
		c.asked = nil
	}
}

func (c *Core) askDeletionsOf(id ring.ID, l *learnProgress) {
	l.sent = c.now.Steady
	c.send(id, Learn{After: l.after})
}

// tellDeletions answers with a page.
func (c *Core) tellDeletions(from ring.ID, m Learn) {
	list, through := c.deletions(-1, m.After, LastSeries())
	c.send(from, LearnReply{After: m.After, Through: through, Deletions: list})
}

// learnDeletions takes a page, and asks for the next one.
func (c *Core) learnDeletions(from ring.ID, m LearnReply) {
	l := c.asked[from]
	if c.NoteDeletions(m.Deletions) != nil || l == nil || l.done || m.After != l.after {
		return
	}
	l.after, l.done = m.Through, m.Through == LastSeries()
	if !l.done {
		c.askDeletionsOf(from, l)
	}
}

// deletions returns a page of what is known here of a partition, or of all, behind a series; and up
// to which one it is complete.
func (c *Core) deletions(partition int, after, through metric.SeriesID) ([]Deletion,
	metric.SeriesID) {
	list := c.store.Deletions(partition)
	behind := func(s metric.SeriesID) int {
		i, found := slices.BinarySearchFunc(list, s, func(d Deletion, s metric.SeriesID) int {
			return bytes.Compare(d.Series[:], s[:])
		})
		if found {
			i++
		}
		return i
	}
	list = list[behind(after):max(behind(after), behind(through))]
	if len(list) <= c.config.Limits.Deletions {
		return list, through
	}
	list = list[:c.config.Limits.Deletions]
	return list, list[len(list)-1].Series
}
