package store

import (
	"testing"

	"dalmatiner/internal/manifest"
	"dalmatiner/internal/metric"
)

// A tombstone goes when neither a segment nor a record of the log needs it: one of the
// two alone keeps it.
func TestWhichTombstonesGo(t *testing.T) {
	var all tombstones
	for i, stone := range []tombstone{{below: 5, lsn: 99}, {below: 5, lsn: 100}, {below: 6, lsn: 99}, {below: 6, lsn: 100}} {
		stone.id = metric.SeriesID{byte(i)}
		all = append(all, stone)
	}
	left := all.without(manifest.Buried{Below: 5, LSN: 100})
	if len(left) != 3 || left[0].id != all[1].id || left[1].id != all[2].id || left[2].id != all[3].id {
		t.Errorf("of %+v these stay: %+v", all, left)
	}
	if len(all) != 4 {
		t.Error("the list that readers have was changed")
	}
}
