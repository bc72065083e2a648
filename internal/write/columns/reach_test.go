package columns

import (
	"testing"

	"dalmatiner/internal/model/buckets"
)

// TestReach: of slots of a second each the last 300 need a note behind a flush that has them, older
// ones need one each hour, and a note from before a flush does not count behind it.
func TestReach(t *testing.T) {
	b := NewBucket(buckets.Info{Resolution: 1000}, 60, nil)
	r := &b.Reach
	record := func(slot int64) bool {
		r.Raise(slot)
		return r.NeedsNote(slot)
	}
	for slot := int64(100_000); slot < 100_400; slot++ {
		if record(slot) {
			t.Fatalf("slot %d is to be noted, nothing is flushed", slot)
		}
	}
	if record(100_200) || !record(100_000) {
		t.Error("not five minutes are free")
	}
	r.NoteFlush(100_399)
	if record(100_400) || !record(100_399) {
		t.Error("not what is flushed is to be noted")
	}
	n := r.LateNote(100_399)
	if r.ConfirmNote(n); n.Slot != 100_100 || record(100_100) || !record(100_099) {
		t.Errorf("noted: %d", n.Slot)
	}
	if _, more := r.Next(); more {
		t.Error("all have a note")
	}
	n = r.LateNote(90_000)
	if r.ConfirmNote(n); n.Slot != 90_000-3600 || record(n.Slot) || !record(n.Slot-1) {
		t.Errorf("late: %d", n.Slot)
	}
	n = r.LateNote(20_000)
	r.NoteFlush(NoSlot)
	if r.ConfirmNote(n); n.Slot != 20_000-80_400/8 || !record(20_000) || !record(100_399) {
		t.Errorf("a note from before a flush counts: %d", n.Slot)
	}
	if n := r.LateNote(5); n.Slot != 0 {
		t.Errorf("a note of slot %d", n.Slot)
	}
}

// A write asks and raises once; nothing is allocated.
func BenchmarkReach(b *testing.B) {
	r := &NewBucket(buckets.Info{Resolution: 1000}, 60, nil).Reach
	b.ReportAllocs()
	for i := range int64(b.N) {
		if r.Raise(i); r.NeedsNote(i) {
			b.Fatal(i)
		}
	}
}
