package head

import (
	"testing"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
)

// TestRowsOfThePastAreOneRunAColumn: what rows fill in takes eight bytes a point,
// and what leaves with its series takes nothing.
func TestRowsOfThePastAreOneRunAColumn(t *testing.T) {
	var l lateRuns
	var c account.Counts
	const rows, columns = 1000, 5
	for slot := range int64(rows) {
		for col := range columns {
			l.add(col, slot, point.FromInt(slot), &c)
		}
	}
	want := int64(columns * (rows*8 + lateRunBytes + lateColumnBytes + 8))
	if l.bytes() != want || c.Late != rows*columns {
		t.Errorf("%d bytes for %d late points, want %d", l.bytes(), c.Late, want)
	}
	l.add(2, 7, point.FromInt(1), &c) // a second write of a slot is newer
	dst := make([]uint64, 10)
	if l.read(2, 0, dst); dst[7] != point.FromInt(1) || dst[8] != point.FromInt(8) {
		t.Errorf("slots 7 and 8 are %x and %x", dst[7], dst[8])
	}
	for col := range columns {
		var m Mask
		m.Set(col)
		if got := l.drop(&m); got != rows && col != 2 || (l.column(col) != nil) {
			t.Errorf("column %d lost %d points", col, got)
		}
	}
	if !l.empty() {
		t.Errorf("%d bytes are left", l.bytes())
	}
}
