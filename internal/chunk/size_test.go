package chunk

import (
	"testing"

	"dalmatiner/internal/point"
)

func TestSize(t *testing.T) {
	var e Encoder
	for _, c := range kinds() {
		words := c.make(Slots)
		n := 0
		for _, w := range words {
			if w != point.Unset {
				n++
			}
		}
		src := check(t, &e, 0, words)
		h, _ := ParseHeader(src)
		got := float64(8*len(src)) / Slots
		t.Logf("%-16s %4d set, %4d bytes, %6.3f bits per slot (form %#02x)", c.name, h.Count, len(src), got, src[0])
		if got > c.limit {
			t.Errorf("%s: %.3f bits per slot, the limit is %v", c.name, got, c.limit)
		}
	}
}
