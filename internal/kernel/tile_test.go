//go:build unix

package kernel

import (
	"math/rand/v2"
	"testing"
)

func TestTurn(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for rows := 1; rows <= MaxLane+4; rows++ {
		for _, width := range []int{8, 9, 13} {
			src := wordsAtPageEnd((rows-1)*width + TileColumns)
			for i := range src {
				src[i] = r.Uint64()
			}
			// A guard behind the last column must stay.
			dst := make([]uint64, TileColumns*rows+1)
			dst[TileColumns*rows] = 7
			Turn(dst, src, width, rows)
			for i, w := range dst[:TileColumns*rows] {
				if want := src[i%rows*width+i/rows]; w != want {
					t.Fatalf("%d rows of %d: row %d of column %d is %#x, want %#x", rows, width, i%rows, i/rows, w, want)
				}
			}
			if dst[TileColumns*rows] != 7 {
				t.Fatalf("%d rows of %d: written behind the last column", rows, width)
			}
		}
	}
}

func BenchmarkTurn(b *testing.B) {
	const width = 256
	src, dst := make([]uint64, MaxLane*width), make([]uint64, MaxLane*TileColumns)
	both(b, "tile", MaxLane*width, func() {
		for c := 0; c < width; c += TileColumns {
			Turn(dst, src[c:], width, MaxLane)
		}
	}, func() {
		for c := 0; c < width; c += TileColumns {
			turnGo(dst, src[c:], width, MaxLane, 0)
		}
	})
}
