package catalogue

// A mark is what the MANIFEST says of the catalogue that belongs to it: Mark of its
// generation, so that 0 stands for none, and perhaps NamesUnread.
const (
	// NamesUnread is a bit of a mark: when the catalogue was rebuilt, the device did not give
	// all names in segments. The next start looks for them again, and until then merges keep
	// the names that nobody knows.
	NamesUnread = 1 << 63

	// MarkLost is a mark that no catalogue reaches: the next start rebuilds it.
	MarkLost = NamesUnread - 1
)

// Mark is the mark of a catalogue of that generation.
func Mark(generation uint64) uint64 { return generation + 1 }

// Mark is what a commit says of this catalogue: MarkLost once it has failed, and 0 while
// its files do not say yet that there is one.
func (c *Catalogue) Mark() uint64 {
	if c.Failed() != nil {
		return MarkLost
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.NamesUnread() {
		return c.mark() | NamesUnread
	}
	return c.mark()
}

// SetNamesUnread says whether the catalogue was rebuilt without names that the device
// did not give.
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

// Found is the mark of what Open found, 0 where it found no catalogue and made one.
func (c *Catalogue) Found() uint64 { return c.found }

// AtLeast is the mark below which a catalogue has lost something, by the mark in the MANIFEST
// and by whether there are segments. Of a directory without segments whose MANIFEST has no
// mark, a crash may have come before its first catalogue was whole. A segment is written
// behind that, so that beside one a catalogue is missing, whatever a damaged MANIFEST says.
func AtLeast(mark uint64, segments bool) uint64 {
	if mark &^= NamesUnread; mark > 0 || !segments {
		return mark
	}
	return Mark(0)
}
