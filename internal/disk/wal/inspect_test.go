package wal

import (
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func inspect(t testing.TB, fs vfs.FS, from LSN) (got []entry, report Report) {
	t.Helper()
	report, err := Inspect(fs, dir, [16]byte{}, from, func(lsn LSN, rec []byte) error {
		got = append(got, entry{lsn, string(rec)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got, report
}

// A bad record in the newest file is damage if it was synced, and a torn end if not;
// a start says the same, and both read what is whole.
func TestInspectTellsDamageFromATear(t *testing.T) {
	for _, synced := range []int{0, 20} {
		files, names, want := buildFiles(t, 20, synced)
		newest := names[len(names)-1]
		data := files[newest]
		for _, at := range []int{-1, headerSize + 1, headerSize + frameSize + 2, len(data) - 1} {
			fs := disk(t, files)
			bad, lost := slices.Clone(data), 0
			if at >= 0 {
				bad[at] ^= 4
				lost = 1
			}
			writeFile(t, fs, newest, bad)
			got, report := inspect(t, fs, 0)
			places, others := report.Damaged, report.Torn
			if synced == 0 {
				places, others = others, places
			}
			if len(places) != lost || len(others)+len(report.Missing) != 0 {
				t.Errorf("byte %d, %d synced: %+v", at, synced, report)
			}
			l := open(t, fs)
			replayed, again := replayAll(t, l, 0)
			wantEntries(t, got, replayed)
			if !slices.Equal(report.Torn, again.Torn) || !slices.Equal(report.Damaged, again.Damaged) {
				t.Errorf("byte %d, %d synced: a start says %+v", at, synced, again)
			}
			if synced > 0 && len(got)+lost != len(want) {
				t.Errorf("byte %d: %d of %d records", at, len(got), len(want))
			}
		}
	}
}

// Inspect says what is missing in front of the first file and behind the last,
// and writes nothing.
func TestInspectNamesWhatIsMissing(t *testing.T) {
	files, names, want := buildFiles(t, 20, 20)
	fs := disk(t, files)
	if err := fs.Remove(fs.PathJoin(dir, names[0])); err != nil {
		t.Fatal(err)
	}
	if _, report := inspect(t, fs, 0); len(report.Missing) != 0 {
		t.Errorf("what may have been removed is missed: %+v", report)
	}
	_, report := inspect(t, fs, 1)
	if len(report.Missing) != 1 || report.Missing[0].From != 1 ||
		!strings.HasSuffix(report.Missing[0].File, names[0]) {
		t.Errorf("%+v", report)
	}
	last := want[len(want)-1].lsn
	if _, report := inspect(t, fs, last+1000); len(report.Missing) != 1 ||
		report.Missing[0].To != last+1000 {
		t.Errorf("%+v", report)
	}
	if got := walFiles(t, fs); !slices.Equal(got, names[1:]) {
		t.Errorf("files are %v", got)
	}
	if got, report := inspect(t, vfs.NewMem(), 0); len(got) != 0 || len(report.Missing) != 0 {
		t.Errorf("no directory: %v, %+v", got, report)
	}
}

// A copy holds every record appended before it and is a log of its own.
func TestCopyTo(t *testing.T) {
	fs := vfs.NewMem()
	l := open(t, fs)
	want := add(t, l, numberedRecords(30, 60)...)
	if err := l.RemoveBelow(want[10].lsn); err != nil {
		t.Fatal(err)
	}
	bytes, err := l.CopyTo("copy")
	if err != nil {
		t.Fatal(err)
	}
	add(t, l, numberedRecords(30, 60)...)
	o := l.o
	o.Dir = "copy"
	c, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer closeLog(t, c)
	got, report := replayAll(t, c, 0)
	if len(report.Torn)+len(report.Damaged)+len(report.Missing) != 0 || bytes == 0 {
		t.Errorf("%d bytes, %+v", bytes, report)
	}
	wantEntries(t, got, want[len(want)-len(got):])
	if len(got) < 20 {
		t.Errorf("%d records in the copy", len(got))
	}
	if lsn := add(t, c, "next")[0].lsn; lsn <= want[29].lsn {
		t.Errorf("the copy goes on at %d, the last record is at %d", lsn, want[29].lsn)
	}
}
