package taglist

import (
	"maps"
	"slices"
)

// First are the first texts of a list by their bytes, each once, of those that a page asks for.
// While it is made it holds at most twice the limits.
type First struct {
	page  Page
	limit int // texts
	most  int // bytes
	known map[string]bool
	bytes int
	bound string // with cut: it and what is behind it is left out
	cut   bool
}

// NewFirst returns an empty list for as many texts as the page has, or else limit, and most bytes.
func NewFirst(p Page, limit, most int) *First {
	return &First{page: p, limit: p.Of(limit), most: most, known: make(map[string]bool)}
}

// Add takes a text, which is not kept.
func (f *First) Add(text []byte) {
	if f.page.After != nil && string(text) <= *f.page.After || f.cut && string(text) >= f.bound ||
		f.known[string(text)] {
		return
	}
	f.known[string(text)] = true
	if f.bytes += len(text); len(f.known) > 2*f.limit || f.bytes > 2*f.most {
		f.Sorted()
	}
}

// Held returns how many slots for texts there are, and the bytes of those that are held.
func (f *First) Held() (slots, bytes int) { return 2 * len(f.known), f.bytes }

// Sorted returns the texts in their order, and whether there are others behind them. What is left
// out once is never taken again.
func (f *First) Sorted() (texts []string, more bool) {
	texts = slices.Sorted(maps.Keys(f.known))
	kept, size := 0, 0
	for kept < len(texts) && kept < f.limit && size+len(texts[kept]) <= f.most {
		size += len(texts[kept])
		kept++
	}
	if kept < len(texts) {
		f.bound, f.cut = texts[kept], true
		for _, text := range texts[kept:] {
			delete(f.known, text)
		}
		f.bytes = size
	}
	return texts[:kept:kept], f.cut
}
