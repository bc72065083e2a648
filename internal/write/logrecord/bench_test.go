package logrecord

import (
	"testing"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/write/head"
)

// BenchmarkParse parses what a replay reads most: rows of 256 points, runs of few points, and
// series.
func BenchmarkParse(b *testing.B) {
	words := make([]uint64, head.Width)
	for i := range words {
		words[i] = point.FromInt(int64(i))
	}
	runs := make([]head.Run, head.Width)
	for i := range runs {
		runs[i] = head.Run{Column: i * 7 % head.Width, Points: 1, Slot: 1_500_000_000 + int64(i%3)}
	}
	counts := account.Counts{Accepted: head.Width}
	for _, of := range []struct {
		name string
		rec  []byte
	}{
		{"row", writeRecord(nil, 7, 9, &head.Write{Slot: 1_500_000_000, Words: words}, 25_000_000,
			&counts)},
		{"runs", writeRecord(nil, 7, 9, &head.Write{Runs: runs, Words: words}, 25_000_000, &counts)},
		{"series", AppendSeries(nil, 7, 300, 5, 0, []byte("some key of a series"))},
	} {
		b.Run(of.name, func(b *testing.B) {
			var into []head.Run
			for b.Loop() {
				p, err := Parse(of.rec)
				if err != nil {
					b.Fatal(err)
				}
				into = ParseRuns(into[:0], p.Runs)
			}
		})
	}
}
