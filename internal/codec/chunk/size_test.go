package chunk

import (
	"math"
	"testing"

	"dalmatiner/internal/codec/point"
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
		dense := len(e.AppendDense(nil, 0, words))
		h, _ := ParseHeader(src)
		got := float64(8*len(src)) / Slots
		t.Logf("%-16s %4d set, %4d bytes, %6.3f bits per slot (form %#02x), dense %4d bytes", c.name,
			h.Count, len(src), got, src[0], dense)
		if limit := float64(len(src)) * densest(c.name); float64(dense) > limit {
			t.Errorf("%s: dense %d bytes, the limit is %.0f", c.name, dense, limit)
		}
		if got > c.limit {
			t.Errorf("%s: %.3f bits per slot, the limit is %v", c.name, got, c.limit)
		}
	}
}

// densest is the share of a chunk that a dense one may take.
func densest(kind string) float64 {
	switch kind {
	case "normal-walk", "normal", "latency":
		return .95
	case "requests", "idle-requests", "swings", "idle-swings":
		return .92
	case "bursts", "idle-bursts":
		return .85
	case "every-fifth":
		return .86
	case "idle-gauge", "kilobytes", "batches":
		return .7
	}
	return 1
}

// Every case stands for a decision of the encoder that random data reaches too
// rarely to rely on.
func TestForm(t *testing.T) {
	ints := func(v ...int64) (words []uint64) {
		for _, x := range v {
			words = append(words, point.FromInt(x))
		}
		return words
	}
	floats := func(v ...float64) (words []uint64) {
		for _, x := range v {
			words = append(words, point.FromFloat(x))
		}
		return words
	}
	var e Encoder
	for _, c := range []struct {
		name  string
		words []uint64
		class byte
		size  int
	}{
		{"one integer", ints(5), classInts, 6},
		{"extreme integers", ints(point.MinInt, point.MaxInt, 0, -1), classInts, 80},
		{"one decimal", floats(.5), classDecimals, 8},
		{"integral floats", floats(1, 2, 3), classDecimals, 12},
		{"more decimals later", floats(1, .5, .25, .125, 7), classDecimals, 28},
		{"nine decimals", floats(1e-9, 1), classDecimals, 32},
		{"ten decimals", floats(1e-10, 1), classBits, 48},
		{"a float among decimals", floats(1, .5, 2, .25, 3, .75, 4, 1e-10, 5, 6), classSplit, 60},
		{"too large once scaled", floats(1<<50, .5), classBits, 36},
		{"negative zero", floats(math.Copysign(0, -1)), classBits, 15},
		{"only NaN", floats(math.NaN(), math.NaN()), classBits, 16},
		{"integers and floats", append(ints(1), floats(1.5)...), classSplit, 40},
	} {
		src := check(t, &e, 17, c.words)
		if got := src[0] & 3; got != c.class {
			t.Errorf("%s: class %d, want %d", c.name, got, c.class)
		}
		if len(src) > c.size {
			t.Errorf("%s: %d bytes, the limit is %d", c.name, len(src), c.size)
		}
	}
}
