package window

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/segment"
)

// Source is a segment to merge.
type Source struct {
	Seq         uint64
	Generation  uint64
	Window      bool // wins over another source of its generation
	Reader      *segment.Reader
	Marks       hole.Marks // what in it may lie over something older
	Timestamped bool       // the bucket has timestamps
	// Unread makes what the device cannot read damage: it is left out, and not an
	// error.
	Unread bool

	// Hidden says what the source holds of a series to be deleted; nil stands
	// for nothing. It is asked once a series.
	Hidden func(h segment.Hash) bool
	// Dropped is called with every chunk that is left out because of it.
	Dropped func(data []byte)
}

// Merger merges. It holds scratch memory and is not for concurrent use.
type Merger struct {
	// Holes are those that are known of the bucket to be merged.
	Holes *hole.Set
	// Lost is what the last merge lost.
	Lost MergeLosses

	cursors  []*cursor // of all sources, oldest first
	spans    []hole.Span
	enc      chunk.Encoder
	words    [chunk.Slots]uint64 // of the merged chunk
	layer    [chunk.Slots]uint64 // of one source
	data     []byte
	digester chunk.Digester
	// chunk is the one under way: a local one would escape.
	chunk Chunk
}

// Emit takes one merged chunk.
type Emit func(c *Chunk) error

// Chunk is a merged chunk. It is valid during the call that takes it.
type Chunk struct {
	Hash   segment.Hash
	Number int64
	Header chunk.Header
	Points int // values and stale markers
	Digest uint64
	Data   []byte
}

// item is one chunk of a source.
type item struct {
	hash   segment.Hash
	number int64
	data   []byte
}

func (a *item) compare(b *item) int {
	return cmp.Or(bytes.Compare(a.hash[:], b.hash[:]), cmp.Compare(a.number, b.number))
}

// cursor walks the chunks of one source.
type cursor struct {
	seq  uint64
	next func() (item, bool)
	stop func()
	item item
	ok   bool
	err  error // after the last item

	unread bool // as in its Source

	src         Source
	bucket      uint64
	first, past int64
	parts       []hole.Mark // that are lost, and are marked

	reader *segment.Reader
	bad    []error // chunks that do not decode, the first maxBad of them
}

// maxBad bounds the names of chunks that do not decode, a source.
const maxBad = 16

// noteUndecodable notes that the cursor's chunk does not decode.
func (c *cursor) noteUndecodable(cause error) {
	if len(c.bad) < maxBad {
		c.bad = append(c.bad, c.reader.UndecodableError(c.item.hash, c.item.number, cause))
	}
}

var errStopped = errors.New("stopped")

func newCursor(src Source, bucket uint64, first, past int64) *cursor {
	c := &cursor{
		seq:    src.Seq,
		unread: src.Unread,
		reader: src.Reader,
		src:    src,
		bucket: bucket,
		first:  first,
		past:   past,
	}
	c.next, c.stop = iter.Pull(func(yield func(item) bool) {
		var last segment.Hash
		asked, hidden := false, false
		c.err = src.Reader.Scan(bucket, first, past,
			func(_ uint64, h segment.Hash, number int64, data []byte) error {
				if src.Hidden != nil && (!asked || h != last) {
					last, asked, hidden = h, true, src.Hidden(h)
				}
				if hidden {
					if data != nil {
						src.Dropped(data)
					}
					return nil
				}
				if !yield(item{h, number, data}) {
					return errStopped
				}
				return nil
			}, c.losePart)
	})
	c.item, c.ok = c.next()
	return c
}

// Merge hands the chunks of the bucket numbered [first, past) to emit, by series and number: of a
// slot that several sources hold, the one of the highest generation wins, of those with a value if
// any has one. A chunk that only a window holds is copied byte for byte; others are encoded anew,
// so that the bytes depend on the words only, not on when they were flushed. damaged are the
// sources in which blocks were damaged or chunks did not decode, with the damage; what they held
// there is missing.
func (m *Merger) Merge(ctx context.Context, bucket uint64, first, past int64, sources []Source,
	emit Emit) (damaged map[uint64]error, err error) {
	sources = slices.Clone(sources)
	slices.SortFunc(sources, func(a, b Source) int { return a.position().Compare(b.position()) })
	cursors := make([]*cursor, len(sources))
	m.cursors, m.Lost = cursors, MergeLosses{}
	for i, src := range sources {
		cursors[i] = newCursor(src, bucket, first, past)
		defer cursors[i].stop()
	}
	var same []*cursor // that hold the lowest chunk, oldest first
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if same = lowest(same[:0], cursors); len(same) == 0 {
			m.loseParts()
			return damages(cursors)
		}
		if err := m.emitChunk(same, emit); err != nil {
			return nil, err
		}
		for _, c := range same {
			c.item, c.ok = c.next()
		}
	}
}

// lowest appends the cursors that stand at the lowest chunk.
func lowest(dst []*cursor, cursors []*cursor) []*cursor {
	for _, c := range cursors {
		if !c.ok {
			continue
		}
		if len(dst) > 0 {
			switch d := c.item.compare(&dst[0].item); {
			case d > 0:
				continue
			case d < 0:
				dst = dst[:0]
			}
		}
		dst = append(dst, c)
	}
	return dst
}

// emitChunk emits the chunk that all of the cursors hold. What does not decode is
// noted and left out, and so is what it, or something else that is lost, hides. One
// that is copied is decoded for its digest.
func (m *Merger) emitChunk(same []*cursor, emit Emit) error {
	it := &same[0].item
	c := &m.chunk
	c.Hash, c.Number, c.Data = it.hash, it.number, it.data
	laid := true
	switch {
	case m.isDamaged(same):
		c.Data = m.layOver(same)
	case len(same) > 1 || !same[0].src.Window:
		c.Data = m.lay(same)
	default:
		var err error
		if c.Digest, err = m.digester.Chunk(it.data); err == nil {
			c.Header, err = chunk.ParseHeader(it.data)
		}
		if err == nil {
			c.Points, err = chunk.Count(it.data)
		}
		if laid = err != nil; laid {
			c.Data = m.layOver(same) // which names it
		}
	}
	if len(c.Data) == 0 {
		return nil
	}
	if laid {
		var err error
		if c.Header, err = chunk.ParseHeader(c.Data); err != nil {
			return err // of what was encoded a moment ago
		}
		c.Points, c.Digest = m.enc.Count(), chunk.DigestWords(m.words[:], 0)
	}
	return emit(c)
}

// lay lays the cursors' chunks over each other and encodes the result. It
// returns nothing when none of them decodes. One that decodes in part must not
// be in it.
func (m *Merger) lay(same []*cursor) []byte {
	for i, c := range same {
		into := &m.layer
		if i == 0 {
			into = &m.words
		}
		clear(into[:])
		if chunk.DecodeRange(into[:], c.item.data, 0) != nil {
			return m.layOver(same) // which names it
		}
		if i > 0 {
			lay(&m.words, &m.layer)
		}
	}
	m.data = m.enc.AppendDense(m.data[:0], 0, m.words[:])
	return m.data
}

// lay lays the set slots of a newer layer over words.
func lay(words, layer *[chunk.Slots]uint64) {
	for i, w := range layer {
		words[i] = point.Overwrite(w, words[i])
	}
}

// damages sorts out how the sources ended.
func damages(cursors []*cursor) (map[uint64]error, error) {
	var damaged map[uint64]error
	for _, c := range cursors {
		// What the device cannot read now it may read the next time: nothing is
		// left out for that, unless the caller has waited enough.
		if c.err != nil && (!segment.IsDamage(c.err) || segment.ReadFailed(c.err) && !c.unread) {
			return nil, c.err
		}
		err := errors.Join(append(c.bad, c.err)...)
		if err == nil {
			continue
		}
		if damaged == nil {
			damaged = make(map[uint64]error)
		}
		damaged[c.seq] = err
	}
	return damaged, nil
}
