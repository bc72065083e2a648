package intlist

import "testing"

func TestGroupsOfALane(t *testing.T) {
	for group := 1; group <= maxGroup; group++ {
		for length := 1; length <= Lane; length++ {
			l := layout{length: length, group: group}
			if got, want := l.groups(), (length+group-1)/group; got != want {
				t.Fatalf("%d residuals in groups of %d: %d, want %d", length, group, got, want)
			}
		}
	}
}
