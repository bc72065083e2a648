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

// Mark is that of this catalogue.
func (c *Catalogue) Mark() uint64 { return Mark(c.Generation()) }
