//go:build unix

package kernel

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// layOne is what Lay does with one cell, by its definition.
func layOne(cell *uint64, w uint64, unset, same, other *int) {
	switch {
	case w == 0:
		*unset++
	case *cell == w:
		*same++
	case *cell != 0:
		*other++
	}
	if w > stale || w == stale && *cell == 0 {
		*cell = w
	}
}

func sameLay(t *testing.T, cells, words []uint64) {
	t.Helper()
	want := slices.Clone(cells)
	var unset, same, other int
	for i, w := range words {
		layOne(&want[i], w, &unset, &same, &other)
	}
	was := slices.Clone(cells)
	if a, b, c := Lay(cells, words); a != unset || b != same || c != other ||
		!slices.Equal(cells, want) {
		t.Fatalf("%x over %x: %x, %d unset, %d the same, %d others; want %x, %d, %d, %d", words, was,
			cells, a, b, c, want, unset, same, other)
	}
}

func TestLayIsReference(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	for n := range 70 {
		for range 20 {
			words, cells := wordsAtPageEnd(n), wordsAtPageEnd(n)
			kinds := 1 + r.IntN(6) // of what a cell and its word can be to each other
			for i := range words {
				words[i], cells[i] = random(r), 0
				switch r.IntN(kinds) {
				case 1:
					cells[i] = words[i]
				case 2:
					cells[i] = random(r)
				case 3:
					words[i], cells[i] = 0, random(r)*uint64(r.IntN(2))
				case 4:
					words[i], cells[i] = stale, random(r)*uint64(r.IntN(2))
				case 5:
					cells[i] = stale
				}
			}
			sameLay(t, cells, words)
		}
	}
	cells := []uint64{1, 2, 3, 4, 5, 6}
	if Lay(cells, make([]uint64, 5)); cells[5] != 6 {
		t.Error("a cell without a word was written")
	}
}

// sameCells compares the bits of words and their zigzags with what each gives by
// itself.
func sameCells(t *testing.T, words []uint64) {
	t.Helper()
	var tags, all uint64
	for _, w := range words {
		tags |= w ^ intTag
		all |= w ^ uint64(int64(w<<8)>>63)
	}
	if a, b := IntBits(words); a != tags || b != all {
		t.Fatalf("%x: %#x and %#x, want %#x and %#x", words, a, b, tags, all)
	}
	for _, size := range []int{1, 2, 4} {
		var want []byte
		for _, w := range words {
			var one [8]byte
			v := int64(w<<8) >> 8
			binary.LittleEndian.PutUint64(one[:], uint64(v<<1^v>>63))
			want = append(want, one[:size]...)
		}
		got := fence()[1]
		got = got[len(got)-len(want):]
		if Zigzags(got, words, size); !bytes.Equal(got, want) {
			t.Fatalf("%x in %d bytes: %x, want %x", words, size, got, want)
		}
	}
}

func TestCellsAreReference(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 10))
	for src := range sources(r) {
		sameCells(t, src)
		for i := range src { // integers that fit
			src[i] = intTag | uint64(r.Int64()>>(8+r.IntN(56)))&intPayload
		}
		sameCells(t, src)
	}
}

func FuzzCells(f *testing.F) {
	f.Add([]byte("words over other words, and some of them zero"), uint8(3))
	f.Add(make([]byte, 200), uint8(0))
	f.Fuzz(func(t *testing.T, src []byte, split uint8) {
		src = src[:min(len(src), 1024)]
		n := len(src) / 16
		words, cells := wordsAtPageEnd(n), wordsAtPageEnd(n)
		for i := range n {
			words[i] = binary.LittleEndian.Uint64(src[8*i:])
			cells[i] = binary.LittleEndian.Uint64(src[8*(n+i):])
			if split>>(i%8)&1 == 1 {
				cells[i] = words[i]
			}
		}
		before := slices.Clone(words)
		sameLay(t, cells, words)
		sameCells(t, before)
	})
}

func BenchmarkCells(b *testing.B) {
	r := rand.New(rand.NewPCG(2, 11))
	words, cells := make([]uint64, 256), make([]uint64, 256)
	for i := range words {
		words[i] = intTag | r.Uint64N(1000)
	}
	dst := make([]byte, 2*len(words))
	perWord := func(name string, run func()) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				run()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(words)), "ns/point")
		})
	}
	perWord("lay", func() { Lay(cells, words) })
	perWord("bits", func() { IntBits(words) })
	perWord("zigzags", func() { Zigzags(dst, words, 2) })
}
