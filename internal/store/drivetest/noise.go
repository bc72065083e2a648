package drivetest

import (
	"math"

	"dalmatiner/internal/codec/point"
)

// NoiseSeries is how many series SendNoise writes.
const NoiseSeries = 3

// maxRead is how many slots are read at once.
const maxRead = 65536

// Noise returns a word that no codec makes small, so that chunks fill blocks.
func Noise(series int, slot int64) uint64 {
	x := uint64(slot)*0x9e3779b97f4a7c15 + uint64(series)*0xbf58476d1ce4e5b9
	x = (x ^ x>>31) * 0x94d049bb133111eb
	return point.FromFloat(float64(x>>11) * math.Pi)
}

// SendNoise writes the slots [from, to) of all series.
func SendNoise(t TB, s Store, bucket string, from, to int64) {
	t.Helper()
	x := Session(t, s, bucket)
	for slot := from; slot < to; slot++ {
		for series := range NoiseSeries {
			x.Point(Key(series), uint64(slot), Noise(series, slot))
		}
	}
	if err := x.Close(); err != nil {
		t.Fatalf("session: %v", err)
	}
}

// MissingNoise counts the words that are missing of the slots [from, to). The test fails where one
// is another than the one sent.
func MissingNoise(t TB, s Store, bucket string, from, to int64) (missing int) {
	t.Helper()
	for series := range NoiseSeries {
		for at := from; at < to; at += maxRead {
			for i, got := range Words(t, s, bucket, series, at, int(min(to-at, maxRead))) {
				switch want := Noise(series, at+int64(i)); got {
				case point.Unset:
					missing++
				case want:
				default:
					t.Fatalf("%s: series %d slot %d holds %x, want %x", bucket, series, at+int64(i), got, want)
				}
			}
		}
	}
	return missing
}
