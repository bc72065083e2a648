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
			src := wordsAtPageEnd((rows-1)*width + TurnColumns)
			for i := range src {
				src[i] = r.Uint64()
			}
			for _, height := range []int{rows, rows + 1, rows + 12} {
				// What lies behind the rows of each column must stay.
				dst := make([]uint64, (TurnColumns-1)*height+rows+1)
				for i := range dst {
					dst[i] = 7
				}
				Turn(dst, height, src, width, rows)
				for i, w := range dst {
					want := uint64(7)
					if row, col := i%height, i/height; row < rows && col < TurnColumns {
						want = src[row*width+col]
					}
					if w != want {
						t.Fatalf("%d rows of %d: row %d of %d of column %d is %#x, want %#x", rows, width, i%height,
							height, i/height, w, want)
					}
				}
			}
		}
	}
}

func BenchmarkTurn(b *testing.B) {
	const width = 256
	src, dst := make([]uint64, MaxLane*width), make([]uint64, MaxLane*TurnColumns)
	benchBoth(b, "turn", MaxLane*width, func() {
		for c := 0; c < width; c += TurnColumns {
			Turn(dst, MaxLane, src[c:], width, MaxLane)
		}
	}, func() {
		for c := 0; c < width; c += TurnColumns {
			turnGo(dst, MaxLane, src[c:], width, MaxLane, 0)
		}
	})
}
