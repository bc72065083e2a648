package plan

import (
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// What a histogram is charged with is what it takes.
func TestHistogramsAreChargedWithTheirSize(t *testing.T) {
	without := int64(hdrhistogram.New(1, 2, 1).ByteSize()) - histogramBytes(2, 1)
	for _, highest := range []int64{2, 31, 32, 63, 1000, 2047, 2048, 1 << 20, 1<<53 - 1, 1 << 53} {
		for digits := 1; digits <= 5; digits++ {
			want := int64(hdrhistogram.New(1, highest, digits).ByteSize()) - without
			if got := histogramBytes(highest, digits); got != want {
				t.Errorf("up to %d with %d digits: %d bytes, want %d", highest, digits, got, want)
			}
		}
	}
	if without > 100 {
		t.Errorf("%d bytes are not charged", without)
	}
}
