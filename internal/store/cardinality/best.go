package cardinality

import (
	"bytes"
	"cmp"
	"slices"
)

// best keeps the elements with most series.
type best struct {
	limit   int
	byNew   bool
	memory  Memory
	list    []ranked
	bound   *ranked // with it and behind it nothing is kept
	held    int64   // bytes of the list
	charged int64
	err     error // of memory
}

// ranked is an element with what gives it its place.
type ranked struct {
	Element
	first, second []byte // the order of those with equal counts
}

const (
	// elementBytes is what an element takes beside its texts.
	elementBytes = 256

	// bestStep is how much is borrowed at a time.
	bestStep = 64 << 10
)

func (b *best) compare(x, y *ranked) int {
	bySeries, byNew := cmp.Compare(y.Series, x.Series), cmp.Compare(y.New, x.New)
	if b.byNew {
		bySeries, byNew = byNew, bySeries
	}
	return cmp.Or(bySeries, byNew, bytes.Compare(x.first, y.first), bytes.Compare(x.second, y.second))
}

// add adds an element, which is made only if it may be among the best. Of those with equal counts
// the lower first is better, then the lower second; both are valid during the call.
func (b *best) add(series, recent int, first, second []byte, element func() Element) {
	r := ranked{Element{Series: series, New: recent}, first, second}
	if b.err != nil || b.bound != nil && b.compare(b.bound, &r) <= 0 {
		return
	}
	r.Element = element()
	r.Series, r.New = series, recent
	r.first, r.second = bytes.Clone(first), bytes.Clone(second)
	b.list = append(b.list, r)
	if b.held += r.bytes(); b.held > b.charged {
		more := max(b.held-b.charged, bestStep)
		if b.err = b.memory.Grow(more); b.err != nil {
			return
		}
		b.charged += more
	}
	if len(b.list) == 2*b.limit {
		b.cut()
	}
}

func (r *ranked) bytes() int64 {
	return int64(elementBytes + len(r.Text) + len(r.Name) + len(r.Bucket) + len(r.first) +
		len(r.second))
}

// cut keeps the best.
func (b *best) cut() {
	slices.SortFunc(b.list, func(x, y ranked) int { return b.compare(&x, &y) })
	if len(b.list) <= b.limit {
		return
	}
	clear(b.list[b.limit:])
	b.list = b.list[:b.limit]
	bound := b.list[b.limit-1]
	b.bound, b.held = &bound, 0
	for i := range b.list {
		b.held += b.list[i].bytes()
	}
}

// elements returns the best, the one with most series first.
func (b *best) elements() []Element {
	b.cut()
	list := make([]Element, len(b.list))
	for i := range b.list {
		list[i] = b.list[i].Element
	}
	return list
}
