package version

import (
	"testing"

	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/model/metric"
)

// A tombstone goes when neither a segment nor a record of the log needs it: one of the
// two alone keeps it.
func TestWhichTombstonesGo(t *testing.T) {
	var all Tombstones
	for i, stone := range []Tombstone{{DeleteSequence: 5, LSN: 99}, {DeleteSequence: 5, LSN: 100},
		{DeleteSequence: 6, LSN: 99}, {DeleteSequence: 6, LSN: 100}} {
		stone.ID = metric.SeriesID{byte(i)}
		all = append(all, stone)
	}
	left := all.Subtract(manifest.DroppedTombstones{DeleteSequence: 5, LSN: 100})
	if len(left) != 3 || left[0].ID != all[1].ID || left[1].ID != all[2].ID ||
		left[2].ID != all[3].ID {
		t.Errorf("of %+v these stay: %+v", all, left)
	}
	if len(all) != 4 {
		t.Error("the list that readers have was changed")
	}
}
