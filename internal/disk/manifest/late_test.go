package manifest

import (
	"reflect"
	"testing"
)

// TestLateIsAboutTheNextFlush: a note counts for all records until a flush comes behind it, then
// for those in front of that, and it is dropped when no start reads these any more.
func TestLateIsAboutTheNextFlush(t *testing.T) {
	var s State
	note := func(slot int64, lsn uint64) {
		s.apply(&Edit{Slots: Slots{Late: []LateNote{{Bucket: 1, Slot: slot, LSN: lsn}}}})
	}
	flush := func(end, from uint64, more ...LateNote) {
		s.apply(&Edit{Accounts: Accounts{AccountLSN: end}, ReplayPosition: end,
			ReplayPositions: []ReplayPosition{{7, from}}, Slots: Slots{Late: more}})
	}
	want := func(what string, lsn uint64, slot int64) {
		t.Helper()
		if got := s.LowestOf(1, lsn, 1000); got != slot {
			t.Errorf("%s: records from %d on go back to %d, want %d: %v", what, lsn, got, slot, s.Late)
		}
	}
	want("empty", 0, 1000)
	note(500, 40)
	note(400, 60)
	want("noted", 99, 400)
	flush(50, 30)
	want("a flush between the notes", 30, 400)
	want("a flush between the notes, of what is behind it", 50, 400)
	flush(100, 80, LateNote{Bucket: 1, Slot: 450, LSN: 99})
	want("in front of the flush", 80, 400)
	want("behind the flush", 100, 1000)
	if len(s.Late) != 1 {
		t.Errorf("left: %v", s.Late)
	}
	note(300, 90) // it came behind the flush that it was made before
	want("late", 100, 1000)
	flush(200, 200)
	if want("no start needs them", 0, 1000); len(s.Late) != 0 {
		t.Errorf("left: %v", s.Late)
	}
	note(200, 210)
	var again State
	again.apply(s.snapshot())
	if !reflect.DeepEqual(again.Late, s.Late) || len(again.Late) != 1 {
		t.Errorf("a snapshot has %v of %v", again.Late, s.Late)
	}
}
