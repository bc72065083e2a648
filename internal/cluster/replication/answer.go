package replication

import (
	"bytes"
	"encoding/binary"
	"sort"

	"github.com/zeebo/xxh3"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

// takesPart reports whether this node takes part in a comparison.
func (c *Core) takesPart(s Step) bool {
	return s.Version == c.view.Version() && c.ready() &&
		c.view.Owns(c.config.Self, s.Partition, s.Copies)
}

// answer sends an answer. A node that does not own the share may drop its copy of what is equal,
// and some of the equal data may have come here a moment ago. So its answer waits until everything
// is on disk that this node has now. A disk takes longer than all the rest of a question, so an
// owner, which keeps its copy, does not wait.
func (c *Core) answer(to ring.ID, of Share, m Message) {
	if c.view.Owns(to, of.Partition, of.Copies) {
		c.send(to, m)
		return
	}
	c.answerSynced(to, m)
}

// answerSynced sends an answer once all is on disk that this node has now.
func (c *Core) answerSynced(to ring.ID, m Message) {
	c.background.whenStored(func() { c.send(to, m) })
}

// answerWindows says which windows differ, once it knows.
func (c *Core) answerWindows(from ring.ID, m Compare) {
	if c.takesPart(m.Step) {
		c.background.whenPrepared(question{pair: pair{m.share(), from}}, func() {
			c.compareWindows(from, m)
		})
	}
}

func (c *Core) compareWindows(from ring.ID, m Compare) {
	if !c.takesPart(m.Step) {
		return
	}
	a := CompareReply{
		Step:      m.Step,
		Deletions: m.Deletions != c.digestDeletions(m.Partition),
		Through:   m.Through,
	}
	held := c.store.Windows(m.share())
	mine := held[findWindow(held, m.From):]
	theirs := m.Windows
	for len(mine) > 0 && mine[0].Number <= m.Through || len(theirs) > 0 {
		var number uint64
		equal := false
		switch {
		case len(theirs) == 0 || len(mine) > 0 && mine[0].Number < theirs[0].Number:
			number, mine = mine[0].Number, mine[1:]
		case len(mine) == 0 || mine[0].Number > theirs[0].Number:
			number, theirs = theirs[0].Number, theirs[1:]
		default:
			number, equal = mine[0].Number, mine[0].Digest == theirs[0].Digest
			mine, theirs = mine[1:], theirs[1:]
		}
		if equal {
			continue
		}
		if len(a.Windows) == c.config.Limits.Windows {
			a.Through = number - 1
			break
		}
		a.Windows = append(a.Windows, number)
	}
	if a.Through != lastWindow {
		a.Left = len(held) - findWindow(held, a.Through+1)
	}
	c.answer(from, m.share(), a)
}

// findWindow returns the place of the first window in a list from a number on.
func findWindow(list []WindowDigest, from uint64) int {
	return sort.Search(len(list), func(i int) bool { return list[i].Number >= from })
}

// shareDeletions takes deletions and gives those that are known here.
func (c *Core) shareDeletions(from ring.ID, m ShareDeletions) {
	if !c.takesPart(m.Step) || c.NoteDeletions(m.Deletions) != nil {
		return
	}
	list, through := c.deletions(m.Partition, m.After, m.Through)
	c.answerSynced(from, ShareDeletionsReply{Step: m.Step, Through: through, Deletions: list})
}

// digestDeletions returns a digest of the deletions of a partition.
func (c *Core) digestDeletions(partition int) (sum uint64) {
	for _, d := range c.store.Deletions(partition) {
		b := binary.BigEndian.AppendUint64(d.Series[:], d.Incarnation)
		sum += xxh3.Hash(b)
	}
	return sum
}

// answerChunks says which chunks differ.
func (c *Core) answerChunks(from ring.ID, m CompareChunks) {
	if !c.takesPart(m.Step) {
		return
	}
	a := Difference{Step: m.Step, Through: m.Through}
	mine, more := c.store.Chunks(m.share(), m.Window, m.After, c.config.Limits.Chunks)
	if more {
		a.Through = earlierID(m.Through, mine[len(mine)-1].ID.Series)
	}
	mine, theirs := upTo(mine, a.Through), upTo(m.Chunks, a.Through)
	a.Chunks = len(mine)
	for len(mine) > 0 || len(theirs) > 0 {
		switch order := first(mine, theirs); {
		case order < 0:
			a.Have = append(a.Have, mine[0].ID)
			mine = mine[1:]
		case order > 0:
			a.Want = append(a.Want, theirs[0].ID)
			theirs = theirs[1:]
		default:
			if mine[0].Digest != theirs[0].Digest {
				a.Have = append(a.Have, mine[0].ID)
				a.Want = append(a.Want, mine[0].ID)
			}
			mine, theirs = mine[1:], theirs[1:]
		}
	}
	c.answer(from, m.share(), a)
}

func earlierID(a, b metric.SeriesID) metric.SeriesID {
	if bytes.Compare(a[:], b[:]) < 0 {
		return a
	}
	return b
}

// upTo returns the chunks of a list up to a series.
func upTo(list []ChunkDigest, through metric.SeriesID) []ChunkDigest {
	return list[:sort.Search(len(list), func(i int) bool {
		return bytes.Compare(list[i].ID.Series[:], through[:]) > 0
	})]
}

// first says which list has the lower chunk in front.
func first(a, b []ChunkDigest) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return a[0].ID.Compare(b[0].ID)
}

// answerFill takes chunks, and gives those that were asked for.
func (c *Core) answerFill(from ring.ID, m Fill) {
	if !c.takesPart(m.Step) {
		return
	}
	if _, err := c.merge(Change{
		Partition: m.Partition,
		Copies:    m.Copies,
		Chunks:    m.Chunks,
	}); c.endsComparison(err, from, m.share()) {
		return
	}
	a := FillReply{Step: m.Step}
	a.Chunks, a.Given = chunksOf(c.store, m.Want, c.config.Limits.Points)
	if len(m.Chunks) > 0 {
		c.answerSynced(from, a)
		return
	}
	c.answer(from, m.share(), a)
}
