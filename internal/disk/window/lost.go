package window

import (
	"slices"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/model/metric"
)

// MergeLosses is what damage took from a merge: it must never make older data look current.
type MergeLosses struct {
	// Holes are those that the merge found, at the positions of their sources: what
	// lies below them is not in the output, and is to be hidden wherever else it is.
	Holes []hole.Hole
	// Covered are the sources with points that holes kept out of the output.
	Covered map[uint64]bool
	// Hidden counts these points, by the number of the lost file that made the hole; 0
	// stands for damage in a file that is here, and for the log.
	Hidden map[uint64]uint64
}

// position is the position of a source.
func (s *Source) position() hole.Position {
	return hole.Position{Generation: s.Generation, Window: s.Window}
}

// losePart notes a part of a source of which it is not known what it held.
func (c *cursor) losePart(parts []hole.Mark) {
	for _, part := range parts {
		part.First, part.Past = max(part.First, c.first), min(part.Past, c.past)
		c.parts = append(c.parts, c.src.Marks.Clip(part)...)
	}
}

// misses reports whether a chunk may have been in a part that is lost, and was marked.
func (c *cursor) misses(p hole.Prefix, number int64) bool {
	return slices.ContainsFunc(c.parts, func(m hole.Mark) bool {
		return m.Low <= p && p <= m.High && m.First <= number && number < m.Past
	})
}

// isDamaged reports whether damage hides anything of the chunk that the cursors stand
// at, and looks up the holes that are known of it.
func (m *Merger) isDamaged(same []*cursor) bool {
	it := &same[0].item
	p, start := hole.PrefixOf(it.hash), it.number*chunk.Slots
	m.spans = m.Holes.Spans(m.spans[:0], p, start, start+chunk.Slots)
	return len(m.spans) > 0 || slices.ContainsFunc(same, func(c *cursor) bool {
		return c.item.data == nil
	}) ||
		slices.ContainsFunc(m.cursors, func(c *cursor) bool {
			return len(c.parts) > 0 && c.misses(p, it.number)
		})
}

// layOver lays the cursors' chunks over each other where damage hides something: what
// lies below a hole is left out, and newer points stay. It returns nothing when
// nothing is left.
func (m *Merger) layOver(same []*cursor) []byte {
	it := same[0].item
	p := hole.PrefixOf(it.hash)
	clear(m.words[:])
	var below []*cursor // whose points have been laid
	for _, c := range m.cursors {
		for len(m.spans) > 0 && m.spans[0].At.Compare(c.src.position()) <= 0 {
			m.hide(below, it, &m.spans[0])
			m.spans = m.spans[1:]
		}
		here := slices.Contains(same, c)
		if lost := c.misses(p, it.number); lost || here && !m.decode(c) {
			m.lose(c, it, below, lost || c.src.Marks.Has(c.bucket, p, it.number), !lost)
			continue
		}
		if here {
			lay(&m.words, &m.layer)
			below = append(below, c)
		}
	}
	for i := range m.spans {
		m.hide(below, it, &m.spans[i])
	}
	set := 0
	for i, w := range &m.words {
		if w == point.Unknown {
			m.words[i] = point.Unset
		} else if w != point.Unset {
			set++
		}
	}
	if set == 0 {
		return nil
	}
	m.data = m.enc.AppendDense(m.data[:0], 0, m.words[:])
	return m.data
}

// decode decodes a cursor's chunk, and reports whether it is there and does.
func (m *Merger) decode(c *cursor) bool {
	clear(m.layer[:])
	if c.item.data == nil {
		return false
	}
	if err := chunk.DecodeRange(m.layer[:], c.item.data, 0); err != nil {
		c.noteUndecodable(err)
		return false
	}
	return true
}

// hide takes the slots of a hole out of what has been laid.
func (m *Merger) hide(below []*cursor, it item, s *hole.Span) {
	start, hidden := it.number*chunk.Slots, uint64(0)
	for i := s.From - start; i < s.Past-start; i++ {
		if m.words[i] != point.Unset && m.words[i] != point.Unknown {
			hidden++
		}
		m.words[i] = point.Unknown
	}
	if hidden == 0 {
		return
	}
	if m.Lost.Covered == nil {
		m.Lost.Covered, m.Lost.Hidden = make(map[uint64]bool), make(map[uint64]uint64)
	}
	for _, c := range below {
		m.Lost.Covered[c.seq] = true
	}
	source := uint64(0)
	if s.Cause == hole.File {
		source = s.Source
	}
	if !m.timestamps(it) { // which are counted with their values
		m.Lost.Hidden[source] += hidden
	}
}

// timestamps reports whether a chunk is one of timestamps.
func (m *Merger) timestamps(it item) bool {
	return len(m.cursors) > 0 && m.cursors[0].src.Timestamped && metric.SeriesID(it.hash).IsTimestamp()
}

// lose hides what lies below a chunk of a source that is lost, if it was marked. A
// single one is a hole; those of parts of the source are noted when the merge ends.
func (m *Merger) lose(c *cursor, it item, below []*cursor, marked, single bool) {
	switch {
	case !marked:
	case m.timestamps(it):
		m.loseTimestamps(c, it)
	default:
		start := it.number * chunk.Slots
		m.hide(below, it, &hole.Span{From: start, Past: start + chunk.Slots, Cause: hole.Block})
		if single {
			p := hole.PrefixOf(it.hash)
			part := hole.Mark{Bucket: c.bucket, First: it.number, Past: it.number + 1, Low: p, High: p}
			m.Lost.Holes = append(m.Lost.Holes, part.LossHole(chunk.Slots, c.src.position(), hole.Block,
				c.seq))
		}
	}
}

// loseTimestamps leaves out older timestamps where a source has values whose timestamps are
// lost: such a value has none, and no other one's.
func (m *Merger) loseTimestamps(c *cursor, it item) {
	clear(m.layer[:])
	gone := false
	values := segment.Hash(metric.SeriesID(it.hash).Value())
	err := c.reader.SeriesChunks(c.bucket, values, it.number, it.number+1,
		func(_ int64, data []byte) error {
			gone = chunk.DecodeRange(m.layer[:], data, 0) != nil
			return nil
		}, func(_, _ int64) { gone = true })
	gone = gone || err != nil
	for i := range m.words {
		if gone || m.layer[i] > point.Stale {
			m.words[i] = point.Unset
		}
	}
}

// loseParts adds the holes of the parts of sources that are lost.
func (m *Merger) loseParts() {
	for _, c := range m.cursors {
		for i := range c.parts {
			m.Lost.Holes = append(m.Lost.Holes, c.parts[i].LossHole(chunk.Slots, c.src.position(),
				hole.Index, c.seq))
		}
	}
	m.Lost.Holes = hole.Join(m.Lost.Holes)
}
