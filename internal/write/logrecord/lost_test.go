package logrecord

import (
	"slices"
	"testing"
)

// Records of a group whose slots touch are one range.
func TestLostRangesAreJoined(t *testing.T) {
	records := []LostRecord{
		{LSN: 10, Head: Head{Bucket: 1, Group: 2, Points: 3, First: 5, Last: 6}},
		{LSN: 20, Head: Head{Bucket: 1, Group: 2, Points: 4, First: 7, Last: 7, Copies: true}},
		{LSN: 30, Head: Head{Bucket: 1, Group: 2, Points: 1, First: 9, Last: 9}},
		{LSN: 40, Head: Head{Bucket: 1, Group: 3, Points: 1, First: 7, Last: 7}},
	}
	want := []LostSlots{{1, 2, 5, 7, 7, 4}, {1, 2, 9, 9, 1, 0}, {1, 3, 7, 7, 1, 0}}
	if got := LostRanges(records); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
