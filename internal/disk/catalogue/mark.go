package catalogue

// A mark is what the MANIFEST notes of its catalogue, so that a start finds out whether the
// catalogue has lost a Flush. It is Mark of the generation, or 0 while there is no
// catalogue. The bit NamesUnread may be set in it.
const (
	// NamesUnread says that the device did not give all names in segments when the
	// catalogue was rebuilt. The next start looks for them again. Until then merges keep
	// the names that nobody knows.
	NamesUnread = 1 << 63

	// MarkLost is a mark that no catalogue reaches, so that the next start rebuilds it.
	MarkLost = NamesUnread - 1
)

// Mark returns the mark of a catalogue of that generation, without NamesUnread.
func Mark(generation uint64) uint64 { return generation + 1 }

// Mark returns what the MANIFEST is to note of this catalogue: the mark of its generation,
// with NamesUnread where that holds. It is MarkLost once the catalogue has failed, and 0
// while its files do not say yet that there is one.
func (c *Catalogue) Mark() uint64 {
	if c.Failure() != nil {
		return MarkLost
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.NamesUnread() {
		return c.mark() | NamesUnread
	}
	return c.mark()
}

// SetNamesUnread notes whether the catalogue was rebuilt without names that the device did
// not give.
func (c *Catalogue) SetNamesUnread(unread bool) { c.namesUnread.Store(unread) }

// NamesUnread reports whether there may be series that the catalogue does not know,
// because the device did not give their names when it was rebuilt.
func (c *Catalogue) NamesUnread() bool { return c.namesUnread.Load() }

// mark is that of the generation; c.mu is held, or nobody else has c.
func (c *Catalogue) mark() uint64 {
	if c.generation == 0 && !c.noted {
		return 0
	}
	return Mark(c.generation)
}

// FoundMark returns the mark of the catalogue that Open found, without NamesUnread. It is 0 if
// Open found none and made one.
func (c *Catalogue) FoundMark() uint64 { return c.found }

// AtLeast returns the least mark of a catalogue that has lost nothing. mark is the one in
// the MANIFEST, and segments says whether there are segments.
//
// Without a mark and without segments that is 0: a crash may have come before the first
// catalogue was whole. A segment is written only behind that. So beside a segment there must
// be a catalogue, whatever a damaged MANIFEST says.
func AtLeast(mark uint64, segments bool) uint64 {
	if mark &^= NamesUnread; mark > 0 || !segments {
		return mark
	}
	return Mark(0)
}
