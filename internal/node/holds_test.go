package node

import (
	"testing"

	"dalmatiner/internal/store"
)

// A node that was just loaded has its points in memory, and plans count them.
func TestHoldsWhatIsInMemory(t *testing.T) {
	st := store.Stats{Head: store.HeadStats{Bytes: 800, Late: 80, Sealed: 160}}
	if points, bytes := holds(&st); points != 130 || bytes != 1040 {
		t.Errorf("without segments: %d points, %d bytes", points, bytes)
	}
	st.Segments = store.SegmentStats{Points: 1000, Bytes: 500}
	if points, bytes := holds(&st); points != 1430 || bytes != 1540 {
		t.Errorf("with segments: %d points, %d bytes", points, bytes)
	}
}
