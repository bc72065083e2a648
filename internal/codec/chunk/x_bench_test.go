package chunk

import (
	"fmt"
	"testing"
)

// perPoint reports ns per slot beside ns per chunk.
func perPoint(b *testing.B, n, size int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/slot")
	b.ReportMetric(8*float64(size)/float64(n), "bits/slot")
}

func forKinds(b *testing.B, run func(b *testing.B, words []uint64, src []byte)) {
	var e Encoder
	for _, n := range []int{60, Slots} {
		for _, c := range kinds() {
			words := c.make(n)
			src := e.Append(nil, 0, words)
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				run(b, words, src)
				perPoint(b, n, len(src))
			})
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	var e Encoder
	dst := make([]byte, 0, 16<<10)
	forKinds(b, func(b *testing.B, words []uint64, _ []byte) {
		for b.Loop() {
			e.Append(dst, 0, words)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	var out [Slots]uint64
	forKinds(b, func(b *testing.B, words []uint64, src []byte) {
		for b.Loop() {
			if err := DecodeRange(out[:len(words)], src, 0); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// One lane out of a whole chunk.
func BenchmarkDecodeLane(b *testing.B) {
	var out [Lane]uint64
	var e Encoder
	for _, c := range kinds() {
		src := e.Append(nil, 0, c.make(Slots))
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if err := DecodeRange(out[:], src, 6*Lane); err != nil {
					b.Fatal(err)
				}
			}
			perPoint(b, Lane, len(src)*Lane/Slots)
		})
	}
}

func BenchmarkParseHeader(b *testing.B) {
	forKinds(b, func(b *testing.B, _ []uint64, src []byte) {
		for b.Loop() {
			if _, err := ParseHeader(src); err != nil {
				b.Fatal(err)
			}
		}
	})
}
