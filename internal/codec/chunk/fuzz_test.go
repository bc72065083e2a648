package chunk

import (
	"testing"

	"dalmatiner/internal/codec/point"
)

func FuzzDecode(f *testing.F) {
	var e Encoder
	for _, c := range kinds() {
		for _, n := range []int{5, 60, 720} {
			for _, src := range encodeBoth(&e, 0, c.make(n)) {
				f.Add(src)
			}
			for _, src := range encodeBoth(&e, 0, append(c.make(n-1), point.Stale)) {
				f.Add(src)
			}
		}
	}
	for _, src := range append(multiParts(Lane), multiParts(2*Lane)...) {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) { decodeAll(t, src) })
}

// FuzzRoundTrip makes words from 8 bytes each; what is no legal word is unset.
func FuzzRoundTrip(f *testing.F) {
	for _, c := range kinds() {
		var raw []byte
		for _, w := range append(c.make(70), point.Stale) {
			raw = point.Append(raw, w)
		}
		f.Add(uint16(33), raw)
	}
	f.Fuzz(func(t *testing.T, off uint16, raw []byte) {
		var words []uint64
		from := int(off) % Slots
		for len(raw) >= point.Size && from+len(words) < Slots {
			w, _ := point.NormalizeMarked(point.Get(raw))
			words = append(words, w)
			raw = raw[point.Size:]
		}
		check(t, new(Encoder), from, words)
	})
}
