//go:build unix

package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// narrowCase is a list as encoders write them or as damage may leave them.
func narrowCase(r *rand.Rand) (*Rows, Groups, Prediction) {
	g := Groups{Size: 1 + r.IntN(6), Width: 1 + uint(r.IntN(17)), Base: 2 +
		r.Uint64N(1<<12)>>r.IntN(12)}
	if g.Size > 1 {
		g.Width = 1 + uint(r.IntN(31))
		if fit := uint(math.Ceil(float64(g.Size) * math.Log2(float64(g.Base)))); r.IntN(4) > 0 &&
			fit <= 31 {
			g.Width = fit
		}
	}
	p := Prediction{Order: r.IntN(2), Base: uint64(int64(r.IntN(1200)-600) >> r.IntN(9))}
	switch r.IntN(20) {
	case 0:
		p.Base = random(r)
	case 1:
		p.Order = 2
	}
	rows := randomRows(r, MaxLane/g.Size*int(g.Width))
	switch fill := r.IntN(4); fill { // all fields as low or as high as can be
	case 0, 1:
		for i := range rows.Body {
			rows.Body[i] = -byte(fill)
		}
		for l := range rows.Tail {
			rows.Tail[l] = -uint64(fill)
		}
	}
	return rows, g, p
}

// checkNarrow folds in one pass and in two, and reports whether the former takes the list.
func checkNarrow(t *testing.T, rows *Rows, g Groups, p Prediction, start [Lanes]uint64) bool {
	t.Helper()
	f := Fold{Value: start}
	f.AllNoInts()
	got, want := f, f
	if !FoldNarrow(&got, rows, &g, p) {
		if got != f {
			t.Fatal("a list was refused and taken in")
		}
		return false
	}
	var res Residuals
	if g.Size == 1 {
		unpackGo(&res, rows, g.Width, MaxLane)
	} else {
		unpackGroupsGo(&res, rows, &g, MaxLane)
	}
	foldIntsGo(&want, &res, p, rows.Lanes, 0, MaxLane)
	sameFold(t, "narrow", false, rows.Lanes, &got, &want)
	return true
}

// FuzzNarrow folds any bytes.
func FuzzNarrow(f *testing.F) {
	f.Add([]byte("fields of any kind, as they come"), uint64(17), int16(-8), uint64(50_000), uint8(25),
		uint8(6), uint8(12))
	f.Add(make([]byte, 600), uint64(0), int16(300), uint64(1<<63), uint8(10), uint8(1), uint8(5))
	f.Fuzz(func(t *testing.T, src []byte, base uint64, step int16, first uint64, width, size,
		count uint8) {
		g := Groups{Size: 1 + int(size)%6, Width: 1 + uint(width)%16, Base: 1 + base%(1<<16-1)}
		if g.Size > 1 {
			g.Width = 1 + uint(width)%31
		}
		bits := MaxLane / g.Size * int(g.Width)
		rows := Rows{Whole: bits / 64, Lanes: 1 + int(count)%Lanes}
		rows.Stride = 8 * rows.Lanes
		rows.Body = atPageEnd(rows.Whole * rows.Stride)
		for l := range rows.Tail {
			rows.Tail[l] = first * uint64(l)
		}
		copy(rows.Body, src)
		for order := range 2 {
			checkNarrow(t, &rows, g, Prediction{Order: order, Base: uint64(int64(step))},
				[Lanes]uint64{first, ^first, first >> 9, first << 3, 0, 1, first / 3, -first >> 1, 77,
					first ^ 77, first >> 2, 1 << 61})
		}
	})
}

func TestFoldNarrowIsReference(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	var taken [2][7]int
	for range 60_000 {
		rows, g, p := narrowCase(r)
		var start [Lanes]uint64
		for l := range start {
			if start[l] = random(r) >> 8; r.IntN(200) == 0 {
				start[l] = random(r)
			}
		}
		if checkNarrow(t, rows, g, p, start) {
			taken[p.Order][g.Size]++
		}
	}
	if !hasNarrow {
		return
	}
	for order, sizes := range [][]int{{1}, {1, 2, 3, 5, 6}} {
		for _, size := range sizes {
			if taken[order][size] < 100 {
				t.Errorf("order %d, groups of %d: %d lists taken", order, size, taken[order][size])
			}
		}
	}
}

func TestFoldNarrowOutsideOfTheLanes(t *testing.T) {
	for name, g := range map[string]Groups{
		"no group": {Size: 0, Width: 4}, "groups of 7": {Size: 7, Width: 4, Base: 2},
		"no width":    {Size: 1},
		"wide groups": {Size: 2, Width: 32, Base: 3}, "base 0": {Size: 2, Width: 4},
		"more than there is": {Size: 1, Width: 10},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was accepted", name)
				}
			}()
			FoldNarrow(new(Fold), &Rows{Lanes: Lanes, Stride: 96}, &g, Prediction{})
		}()
	}
}
