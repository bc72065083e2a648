//go:build unix

package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// benchBoth runs a loop as the package chooses and in Go.
func benchBoth(b *testing.B, name string, points int, fast, reference func()) {
	for _, c := range []struct {
		by  string
		run func()
	}{{"kernel", fast}, {"go", reference}} {
		b.Run(fmt.Sprintf("%s/%s", name, c.by), func(b *testing.B) {
			for b.Loop() {
				c.run()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(points), "ns/point")
		})
	}
}

// BenchmarkLanes is what twelve lanes of sixty values take.
func BenchmarkLanes(b *testing.B) {
	const points = Lanes * MaxLane
	r := rand.New(rand.NewPCG(1, 7))
	var res Residuals
	var v Values
	var start [Lanes]uint64
	for _, width := range []uint{5, 10, 55} {
		rows := randomRows(r, MaxLane*int(width))
		rows.Lanes, rows.Stride = Lanes, 8*12
		rows.Body = make([]byte, (rows.Whole+1)*rows.Stride)
		benchBoth(b, fmt.Sprintf("unpack-%d", width), points,
			func() { Unpack(&res, rows, width, MaxLane) }, func() { unpackGo(&res, rows, width, MaxLane) })
	}
	g := &Groups{Size: 6, Width: 25, Base: 17}
	rows := &Rows{Stride: 8 * Lanes, Whole: 3, Lanes: Lanes, Body: make([]byte, 3*8*Lanes)}
	benchBoth(b, "groups", points, func() {
		UnpackGroups(&res, rows, g, MaxLane)
	}, func() { unpackGroupsGo(&res, rows, g, MaxLane) })
	benchBoth(b, "add2", points,
		func() {
			Add2(&v, &res, 3, &start, &start, Lanes, MaxLane)
		}, func() { add2Go(&v, &res, 3, &start, &start, Lanes, MaxLane) })
}

// BenchmarkWords is what sixty words take.
func BenchmarkWords(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 8))
	src, dst := make([]uint64, MaxLane), make([]uint64, MaxLane)
	for i := range src {
		src[i] = 1<<56 | r.Uint64N(1000)
	}
	benchBoth(b, "ints", len(src), func() { Ints(dst, src) }, func() { intsGo(dst, src) })
	benchBoth(b, "decimals", len(src), func() {
		Decimals(dst, src, Quotient{100, Whole})
	}, func() { decimalsGo(dst, src, Quotient{100, Whole}) })
	var e Extent
	benchBoth(b, "measure", len(src), func() { e = Measure(src) }, func() { measureGo(&e, src) })
	v := make([]int64, len(src))
	Integers(v, src)
	var s Spread
	benchBoth(b, "spread", len(src), func() { s = SpreadOf(v) }, func() { spreadGo(&s, v) })
	for i, w := range src {
		src[i] = wordOf(math.Float64bits(float64(w%1000) / 100))
	}
	benchBoth(b, "scaled", len(src), func() { ScaledIntegers(v, src, Quotient{100, Whole}) }, func() {
		for _, w := range src {
			if _, ok := (Quotient{100, Whole}).Int(w); !ok {
				b.Fatal("no decimal")
			}
		}
	})
}

// BenchmarkFolds is what twelve lanes of sixty values take that are only added up.
func BenchmarkFolds(b *testing.B) {
	const points = Lanes * MaxLane
	var res Residuals
	var f Fold
	for i := range res {
		res[i] = uint64(i * 7919 % 1000)
	}
	for order := range 3 {
		p := Prediction{Order: order, Base: 3}
		benchBoth(b, fmt.Sprintf("ints-%d", order), points,
			func() {
				FoldInts(&f, &res, p, Lanes, 0, MaxLane)
			}, func() { foldIntsGo(&f, &res, p, Lanes, 0, MaxLane) })
	}
	benchBoth(b, "decimals", points,
		func() {
			FoldDecimals(&f, &res, Prediction{}, Quotient{100, Whole}, Lanes, 0, MaxLane)
		}, func() { foldDecimalsGo(&f, &res, Prediction{}, Quotient{100, Whole}, Lanes, 0, MaxLane) })
	benchBoth(b, "bits", points,
		func() {
			FoldBits(&f, &res, Prediction{}, 1, Lanes, 0, MaxLane)
		}, func() { foldBitsGo(&f, &res, Prediction{}, 1, Lanes, 0, MaxLane) })

	narrow := func(name string, g Groups, p Prediction, unpack func(rows *Rows)) {
		whole := MaxLane / g.Size * int(g.Width) / 64
		rows := &Rows{Stride: 8 * Lanes, Whole: whole, Lanes: Lanes, Body: make([]byte, whole*8*Lanes)}
		benchBoth(b, name, points, func() { FoldNarrow(&f, rows, &g, p) }, func() {
			unpack(rows)
			f.AllNoInts()
			foldIntsGo(&f, &res, p, Lanes, 0, MaxLane)
		})
	}
	narrow("narrow-10", Groups{Size: 1, Width: 10}, Prediction{}, func(rows *Rows) {
		unpackGo(&res, rows, 10, MaxLane)
	})
	g := Groups{Size: 6, Width: 25, Base: 17}
	narrow("narrow-groups", g, Prediction{Order: 1}, func(rows *Rows) {
		unpackGroupsGo(&res, rows, &g, MaxLane)
	})
}

func BenchmarkNumbers(b *testing.B) {
	src, dst := make([]uint64, 720), make([]float64, 720)
	for i := range src {
		src[i] = floatMarker | uint64(i)<<40
	}
	b.SetBytes(int64(8 * len(src)))
	for b.Loop() {
		Numbers(dst, src)
	}
}
