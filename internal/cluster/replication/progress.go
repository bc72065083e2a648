package replication

import (
	"slices"

	"dalmatiner/internal/cluster/ring"
)

// Progress is how far a share is that moves from one member to another.
type Progress struct {
	Share
	From, To      ring.ID
	Windows, Of   int   // that are equal, and of how many, as far as that is known
	Points, Bytes int64 // that were moved; the bytes as chunks are encoded
	Started, Last int64 // Time.Steady of the first question and of the last answer; 0: none yet
	Done          bool
}

// Stats are the counters of a node since it started.
type Stats struct {
	Comparisons    uint64 // passes over a whole partition with one peer that this node made
	Windows        uint64 // windows × copies that these compared
	Chunks         uint64 // chunks × copies that were compared, in windows that differed
	Differences    uint64 // chunks of which the copies differed, in partitions that do not move
	Repaired       uint64 // points that these brought to one of the two nodes
	Moved          uint64 // points that moved with a partition
	HintsKept      uint64
	HintsDelivered uint64
	Pace           float64 // of comparisons: see Background.Pace
	Hints          int     // that are here
	Kept           int     // shares that others own and have, and that are still here
	Passes         []LastPass
	Ring           ring.Version // that this node was told last
}

// LastPass says when a partition was last compared from the first window to the last.
type LastPass struct {
	Partition int
	At        int64 // Time.Steady, with the peer for which that is the longest ago
	Never     bool  // with one of them at least, since this node started
}

// Stats returns the counters. Passes has the partitions that this node compares, ascending.
func (c *Core) Stats() Stats {
	s := c.stats
	s.Hints, s.Ring, s.Kept, s.Pace = c.relays.kept, c.view.Version(), len(c.compare.spare),
		c.compare.pace
	for _, of := range c.compare.pairs {
		if c.compare.isNeedless(of) {
			continue
		}
		at, done := c.compare.whole[of.pair]
		if n := len(s.Passes); n == 0 || s.Passes[n-1].Partition != of.Partition {
			s.Passes = append(s.Passes, LastPass{Partition: of.Partition, At: at})
		}
		last := &s.Passes[len(s.Passes)-1]
		last.At, last.Never = min(last.At, at), last.Never || !done
	}
	return s
}

// Progress returns the shares that move to this node, and those that it has given up and still has,
// under the ring of now.
func (c *Core) Progress() (list []Progress) {
	for _, of := range c.compare.pairs {
		p, begun := c.compare.passes[of.pair]
		done, is := c.compare.moved[of.pair]
		switch {
		case !of.move:
		case is:
			list = append(list, done)
		case begun:
			list = append(list, p.progress)
		default:
			list = append(list, c.compare.initialProgress(of))
		}
	}
	return list
}

// initialProgress returns the progress of a pair of which nothing is known.
func (c *comparisons) initialProgress(of candidate) Progress {
	p := Progress{Share: of.Share, From: of.peer, To: c.config.Self}
	if !c.view.Owns(c.config.Self, of.Partition, of.Copies) {
		p.From, p.To = p.To, p.From
	}
	return p
}

// countWindows counts what the answer to a page of windows says.
func (c *comparisons) countWindows(p *pass, asked []WindowDigest, m CompareReply) {
	equal, behind := 0, p.behind
	for _, w := range asked {
		_, differs := slices.BinarySearch(m.Windows, w.Number)
		switch {
		case w.Number > m.Through:
			behind++
		case !differs:
			equal++
		}
	}
	c.stats.Windows += 2 * uint64(equal+len(m.Windows))
	p.progress.Windows = p.before + equal
	p.progress.Of = p.progress.Windows + len(m.Windows) + max(behind, m.Left)
}

// countChunks counts what the answer to a page of chunks says.
func (c *comparisons) countChunks(p *pass, asked CompareChunks, m Difference) {
	c.stats.Chunks += uint64(len(upTo(asked.Chunks, m.Through)) + m.Chunks)
	if p.move {
		return
	}
	c.stats.Differences += uint64(len(m.Have))
	for _, id := range m.Want {
		if _, both := slices.BinarySearchFunc(m.Have, id, ChunkID.Compare); !both {
			c.stats.Differences++
		}
	}
}

// countMoved counts what was given and taken.
func (c *comparisons) countMoved(p *pass, lists ...[]Chunk) {
	for _, chunks := range lists {
		n := points(chunks)
		p.progress.Points += int64(n)
		for i := range chunks {
			p.progress.Bytes += int64(len(chunks[i].Words) + len(chunks[i].Times))
		}
		if p.move {
			c.stats.Moved += uint64(n)
		} else {
			c.stats.Repaired += uint64(n)
		}
	}
}
