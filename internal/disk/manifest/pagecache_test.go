package manifest

import (
	"reflect"
	"testing"

	"dalmatiner/internal/testkit/pagecache"
)

// Whichever fsync of a copy failed: what the next Open gives out and what is committed
// on top of it stays through a power cut, and no copy is damaged by it.
func TestWhatAFailedFsyncLeftStays(t *testing.T) {
	met := 0
	for nth := 1; ; nth++ {
		fs := pagecache.New()
		left := nth
		fs.FailSyncs(func(string) bool { left--; return left == 0 })
		if m, _, _, err := open(fs, "", own, nil, 200); err == nil { // rewritten now and then
			for seq := range uint64(8) {
				if m.Commit(Edit{NextSeq: seq + 1}) != nil {
					break
				}
			}
			_ = m.Close() // it may have failed
		}
		fs.FailSyncs(nil)
		if left > 0 {
			break
		}
		met++
		m, _, _, err := open(fs, "", own, nil, 1<<20)
		if err != nil {
			t.Fatalf("fsync %d: %v", nth, err)
		}
		commit(t, m, Edit{NextSeq: 100}, Edit{NextGroup: 7})
		want := m.State()
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if fs, err = fs.PowerCut(); err != nil {
			t.Fatal(err)
		}
		m, got, report, err := open(fs, "", own, nil, 1<<20)
		if err != nil {
			t.Fatalf("fsync %d: behind the power cut: %v", nth, err)
		}
		if !reflect.DeepEqual(got, want) || len(report.Damaged)+len(report.Lost) > 0 {
			t.Errorf("fsync %d: %+v, want %+v; %+v", nth, got, want, report)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if met < 16 {
		t.Errorf("%d fsyncs failed", met)
	}
}
