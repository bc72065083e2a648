//go:build unix

package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Words and values at the borders of every field that a loop cuts out.
var special = []uint64{
	0, 1, 1<<55 - 1, 1 << 55, 1<<56 - 1, 1 << 56, 1<<56 | 1, 1<<56 | 1<<55, 1<<57 - 1, 1 << 62,
	1<<63 - 1,
	1 << 63, 1<<63 | 1, 1<<64 - 1, 1<<52 - 1, 1 << 52, 1<<53 + 1, ^uint64(1<<53 + 1), 1<<32 - 1,
	1 << 32, ^uint64(1 << 32),
	wordOf(math.Float64bits(math.Copysign(0, -1))), wordOf(math.Float64bits(math.Inf(1))),
	wordOf(math.Float64bits(math.NaN())),
	1<<58 - 1, 1 << 58, 1<<59 - 1, 1 << 59, 1<<59 + 1,
}

func random(r *rand.Rand) uint64 {
	switch r.IntN(5) {
	case 0:
		return special[r.IntN(len(special))]
	case 1:
		return r.Uint64() >> r.IntN(64)
	case 2:
		return -(r.Uint64() >> r.IntN(64))
	case 3:
		return 1<<56 | r.Uint64()>>8
	}
	return r.Uint64()
}

func randomWords(r *rand.Rand, n int) []uint64 {
	words := make([]uint64, n)
	for i := range words {
		words[i] = random(r)
	}
	return words
}

// randomRows are the rows of lanes of the given bits; the body ends with the
// last byte that may be read.
func randomRows(r *rand.Rand, bits int) *Rows {
	rows := &Rows{Lanes: 1 + r.IntN(Lanes), Whole: bits / 64}
	rows.Stride = 8 * (rows.Lanes + r.IntN(9))
	if rows.Whole > 0 {
		rows.Body = atPageEnd((rows.Whole-1)*rows.Stride + 8*rows.Lanes)
	}
	for i := range rows.Body {
		rows.Body[i] = byte(r.Uint32())
	}
	for l := range rows.Tail {
		rows.Tail[l] = random(r)
	}
	return rows
}

// sameLanes compares the first n values of the lanes that are wanted.
func sameLanes(t *testing.T, what string, got, want *Residuals, lanes, n int) {
	t.Helper()
	for i := range n {
		for l := range lanes {
			if got[Lanes*i+l] != want[Lanes*i+l] {
				t.Fatalf("%s: field %d of lane %d is %#x, want %#x", what, i, l, got[Lanes*i+l],
					want[Lanes*i+l])
			}
		}
	}
}

func TestUnpackIsReference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for width := uint(1); width <= 64; width++ {
		for n := 0; n <= MaxLane; n++ {
			rows := randomRows(r, n*int(width))
			var got, want Residuals
			Unpack(&got, rows, width, n)
			unpackGo(&want, rows, width, n)
			sameLanes(t, "unpack", &got, &want, rows.Lanes, n)
		}
	}
}

func TestUnpackGroupsIsReference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		g := Groups{Size: 2 + r.IntN(5), Base: 1 + r.Uint64N(1<<16-1)>>r.IntN(16)}
		g.Width = 1 + uint(r.IntN(31)) // fields that no encoder wrote, too
		n := r.IntN(MaxLane + 1)
		if g.Base == 0 {
			g.Base = 17
		}
		rows := randomRows(r, (n+g.Size-1)/g.Size*int(g.Width))
		var got, want Residuals
		UnpackGroups(&got, rows, &g, n)
		unpackGroupsGo(&want, rows, &g, n)
		sameLanes(t, "groups", &got, &want, rows.Lanes, n)
	}
}

// A field is divided by the base, not by something near it.
func TestDigits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for range 20_000 {
		g := Groups{Size: 2, Width: 1 + uint(r.IntN(31)), Base: 1 + r.Uint64N(1<<16-1)}
		x := r.Uint64() >> (64 - g.Width)
		rows := &Rows{Lanes: 1, Tail: [Lanes]uint64{x}}
		var got Residuals
		UnpackGroups(&got, rows, &g, 2)
		if got[0] != x%g.Base || got[Lanes] != x/g.Base {
			t.Fatalf("%d to the base %d: digits %d %d", x, g.Base, got[0], got[Lanes])
		}
	}
}

func TestAddIsReference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	for n := range MaxLane + 1 {
		for range 20 {
			var res Residuals
			copy(res[:], randomWords(r, len(res)))
			start, step := [Lanes]uint64(randomWords(r, Lanes)), [Lanes]uint64(randomWords(r, Lanes))
			base := random(r)
			lanes := 1 + r.IntN(Lanes)
			var got, want [3]Values
			Add(&got[0], &res, base, lanes, n)
			addGo(&want[0], &res, base, lanes, n)
			Add1(&got[1], &res, base, &start, lanes, n)
			add1Go(&want[1], &res, base, &start, lanes, n)
			Add2(&got[2], &res, base, &start, &step, lanes, n)
			add2Go(&want[2], &res, base, &start, &step, lanes, n)
			for order := range got {
				for l := range lanes {
					if !slices.Equal(got[order][l][:n], want[order][l][:n]) {
						t.Fatalf("sums of order %d of %d values: lane %d is\n%x, want\n%x", order, n, l,
							got[order][l][:n], want[order][l][:n])
					}
				}
			}
		}
	}
}

// sources are words of every length that end with a page.
func sources(r *rand.Rand) func(yield func([]uint64) bool) {
	return func(yield func([]uint64) bool) {
		for n := range 70 {
			for range 20 {
				src := wordsAtPageEnd(n)
				copy(src, randomWords(r, n))
				if !yield(src) {
					return
				}
			}
		}
	}
}

func requireEqual(t *testing.T, what string, got, want, src []uint64) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s of %x is\n%x, want\n%x", what, src, got, want)
	}
}

func TestWordsAreReference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	for src := range sources(r) {
		got, want := wordsAtPageEnd(len(src)), make([]uint64, len(src))
		Ints(got, src)
		intsGo(want, src)
		requireEqual(t, "ints", got, want, src)
		shift := uint(r.IntN(64))
		Bits(got, src, shift)
		bitsGo(want, src, shift)
		requireEqual(t, "bits", got, want, src)
		q := Quotient{math.Pow10(r.IntN(10)), Whole - r.Uint64N(2)}
		Decimals(got, src, q)
		decimalsGo(want, src, q)
		requireEqual(t, "decimals", got, want, src)
	}
}

func TestMeasureIsReference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	for src := range sources(r) {
		if len(src) == 0 {
			continue
		}
		if r.IntN(2) == 0 { // only integers
			for i, w := range src {
				src[i] = 1<<56 | w>>8
			}
		}
		got := Measure(src)
		want := Extent{Kinds: Kinds{withMark(src[0]), withMark(src[0])}, Least: intOf(src[0]),
			Most: intOf(src[0])}
		measureGo(&want, src)
		if !got.Ints() {
			got.Least, got.Most, got.Sum = want.Least, want.Most, want.Sum
		}
		if got != want {
			t.Fatalf("%x: %+v, want %+v", src, got, want)
		}
	}
}

func TestOutsideOfTheBytes(t *testing.T) {
	var res Residuals
	for name, call := range map[string]func(){
		"body too short": func() {
			Unpack(&res, &Rows{Body: make([]byte, 31), Stride: 32, Whole: 1, Lanes: 4}, 8, 8)
		},
		"too many fields": func() {
			Unpack(&res, &Rows{Body: make([]byte, 32), Stride: 32, Whole: 1, Lanes: 4}, 64, 3)
		},
		"a long lane":    func() { Unpack(&res, &Rows{Lanes: 1}, 1, MaxLane+1) },
		"thirteen lanes": func() { Unpack(&res, &Rows{Lanes: 13}, 1, 1) },
		"a wide group": func() {
			UnpackGroups(&res, &Rows{Lanes: 1}, &Groups{Size: 2, Width: 32, Base: 3}, 2)
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was accepted", name)
				}
			}()
			call()
		}()
	}
}

// Fill writes all words and none before or behind them.
func TestFill(t *testing.T) {
	for n := range 130 {
		dst := wordsAtPageEnd(n + 1)
		clear(dst)
		Fill(dst[1:], 1<<63|7)
		if dst[0] != 0 {
			t.Fatalf("%d words: the one before them was written", n)
		}
		for i, w := range dst[1:] {
			if w != 1<<63|7 {
				t.Fatalf("%d words: number %d is %#x", n, i, w)
			}
		}
		dst = dst[:n]
		clear(dst[:cap(dst)])
		Fill(dst, 5)
		if behind := dst[:n+1][n]; behind != 0 {
			t.Fatalf("%d words: the one behind them is %#x", n, behind)
		}
	}
}
