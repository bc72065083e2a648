package chunk

import (
	"fmt"
	"math/bits"

	"dalmatiner/internal/codec/intlist"
	"dalmatiner/internal/codec/point"
)

// staleForm is the form byte of a chunk of stale markers. A mask of their slots follows, and
// with valuesFlag, which stands for values among them, the chunk of these.
const (
	staleForm  = multiPartForm | 1
	valuesFlag = 2
)

// MaxStale is the most bytes of a chunk that has stale markers and no value.
const MaxStale = 1 + 1 + (Slots+7)/8

// HasStale reports whether the chunk src holds stale markers.
func HasStale(src []byte) bool { return len(src) > 0 && src[0]&^valuesFlag == staleForm }

// HasValues reports whether the chunk src holds anything but stale markers. An empty one does
// not.
func HasValues(src []byte) bool { return len(src) > 0 && src[0] != staleForm }

// cutStale takes a chunk with stale markers apart: which slots have one, and the chunk of the
// values, which is empty where there is none.
func cutStale(src []byte) (marked intlist.Mask, values []byte, err error) {
	r := newReader(src[1:])
	marked, err = r.Mask(Slots)
	switch {
	case err != nil:
	case marked.Rank(Slots) == 0:
		err = fmt.Errorf("%w: a chunk with stale markers has none", ErrCorrupt)
	case (len(r.Src) > 0) != (src[0]&valuesFlag != 0):
		err = fmt.Errorf("%w: %d bytes behind stale markers of form %#02x", ErrCorrupt, len(r.Src),
			src[0])
	case len(r.Src) > 0 && r.Src[0]&multiPartForm != 0:
		err = fmt.Errorf("%w: form byte %#02x behind stale markers", ErrCorrupt, r.Src[0])
	}
	return marked, r.Src, err
}

// appendStale encodes words with stale markers among them.
func (e *Encoder) appendStale(dst []byte, off int, words []uint64) []byte {
	var marked intlist.Mask
	values := e.unmarked[:len(words)]
	for i, w := range words {
		if w == point.Stale {
			marked.Set(off + i)
			w = point.Unset
		}
		values[i] = w
	}
	form := len(dst)
	p := intlist.PlanMask(&marked, Slots, &e.scratch)
	dst = p.AppendTo(append(dst, staleForm), Slots)
	if dst = e.append(dst, off, values); e.count > 0 {
		dst[form] |= valuesFlag
	}
	e.count += marked.Rank(Slots)
	return dst
}

// decodeStale is DecodeRange for a chunk with stale markers, which never overwrite a value.
func decodeStale(dst []uint64, src []byte, from int) error {
	marked, values, err := cutStale(src)
	if err == nil && len(values) > 0 {
		err = DecodeRange(dst, values, from)
	}
	if err != nil {
		return err
	}
	for i := 0; i < len(dst); i += 64 {
		part := dst[i:min(i+64, len(dst))]
		for set := marked.Window(from+i, len(part)); set != 0; set &= set - 1 {
			w := &part[bits.TrailingZeros64(set)]
			*w = point.Overwrite(point.Stale, *w)
		}
	}
	return nil
}

// parseStale is ParseHeader for a chunk with stale markers.
func parseStale(src []byte) (Header, error) {
	_, values, err := cutStale(src)
	if err != nil || len(values) == 0 {
		return Header{}, err
	}
	return ParseHeader(values)
}

// countStale is Count for a chunk with stale markers.
func countStale(src []byte) (int, error) {
	marked, values, err := cutStale(src)
	if err != nil || len(values) == 0 {
		return marked.Rank(Slots), err
	}
	n, err := Count(values)
	return marked.Rank(Slots) + n, err
}
