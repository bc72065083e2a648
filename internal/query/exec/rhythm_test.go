package exec

import (
	"slices"
	"testing"

	"dalmatiner/internal/query/holes"
)

// TestRhythmBehindManyHoles: behind the unknown ranges that are listed, nothing is taken
// for known.
func TestRhythmBehindManyHoles(t *testing.T) {
	s := Series{Start: 500, Resolution: 1000, BucketResolution: 1000, Interval: 4000, Confidence: []float64{1, 0, 0, 1, 0, 0, 0},
		Unknown: &holes.List{Slots: 2, Ranges: [][2]int64{{1000, 2000}}, More: 1}}
	s.hold()
	if want := []float64{1, 0, 0, 1, 0, 0, 0}; !slices.Equal(s.Confidence, want) {
		t.Errorf("confidences are %v, want %v", s.Confidence, want)
	}
	s.Unknown.More = 0
	s.hold()
	if want := []float64{1, 0, 0, 1, 0.25, 0.25, 0.25}; !slices.Equal(s.Confidence, want) {
		t.Errorf("confidences are %v, want %v", s.Confidence, want)
	}
}
