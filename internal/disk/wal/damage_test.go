package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// buildFiles returns the files of a log of n records of 60 bytes, 6 to a file, as after
// kill -9, and the records: all are written, and the first of them, and lastFile says
// so, were synced.
func buildFiles(t testing.TB, n, synced int) (files map[string][]byte,
	names []string, want []entry) {
	t.Helper()
	fs, clock := vfs.NewMem(), new(stoppedClock)
	l := open(t, fs, mode(Off), func(o *Options) { o.ID, o.After = [16]byte{7}, clock.newTimer })
	want = add(t, l, numberedRecords(synced, 60)...)
	if synced > 0 {
		if err := l.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	if synced < n {
		clock.goes.Store(true)
		want = append(want, add(t, l, numberedRecords(n, 60)[synced:]...)...)
		awaitWritten(t, l)
	}
	return filesAfterKill(t, fs), walFiles(t, fs), want
}

// awaitWritten waits until all that was appended is in files.
func awaitWritten(t testing.TB, l *Log) {
	t.Helper()
	waitFor(t, "all is written", func() bool {
		size := int64(1)
		for _, name := range walFiles(t, l.o.FS) {
			size += int64(len(readFile(t, l.o.FS, name))) - headerSize
		}
		return LSN(size) == l.End()
	})
}

// filesAfterKill returns the files as they are now.
func filesAfterKill(t testing.TB, fs vfs.FS) map[string][]byte {
	t.Helper()
	var names []string
	waitFor(t, "no file is about to get its name", func() bool {
		names = allFiles(t, fs)
		return !slices.Contains(names, lastTemp)
	})
	files := make(map[string][]byte)
	for _, name := range names {
		files[name] = readFile(t, fs, name)
	}
	return files
}

func disk(t testing.TB, files map[string][]byte) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	for name, data := range files {
		writeFile(t, fs, name, data)
	}
	return fs
}

// TestTornRecordStaysLost: once a start has passed over a torn record, it does
// not come back, even if its bytes do: records were appended after it.
func TestTornRecordStaysLost(t *testing.T) {
	files, names, want := buildFiles(t, 3, 0)
	whole := files[names[0]]
	files[names[0]] = slices.Clone(whole)
	files[names[0]][len(whole)-1] ^= 1
	fs := disk(t, files)
	l := open(t, fs)
	later := add(t, l, "later")
	closeLog(t, l)
	for _, name := range walFiles(t, fs)[1:] {
		files[name] = readFile(t, fs, name)
	}
	files[names[0]] = whole
	got, report := replayAll(t, open(t, disk(t, files)), 1)
	wantEntries(t, got, slices.Concat(want[:2], later))
	if len(report.Torn)+len(report.Damaged) != 0 {
		t.Errorf("%+v", report)
	}
}

func TestMissingFile(t *testing.T) {
	f := func(drop []int, from LSN, kept []int, gaps ...Gap) {
		t.Helper()
		files, names, want := buildFiles(t, 29, 29)
		for _, i := range drop {
			delete(files, names[i])
		}
		for i := range gaps {
			gaps[i].File = dir + "/" + names[drop[len(drop)-1]]
		}
		var expected []entry
		for _, i := range kept {
			expected = append(expected, want[i*6:min(i*6+6, len(want))]...)
		}
		got, report := replayAll(t, open(t, disk(t, files)), from)
		wantEntries(t, got, expected)
		if !slices.Equal(report.Missing, gaps) || len(report.Damaged)+len(report.Torn) != 0 {
			t.Errorf("without %v from %d: %+v, want %v", drop, from, report, gaps)
		}
	}
	const file = 6 * (frameSize + 60)
	const first = 1 + markSize // the only mark is in the first file
	f([]int{2}, 1, []int{0, 1, 3, 4}, Gap{From: first + 2*file, To: first + 3*file})
	f([]int{1, 2}, 1, []int{0, 3, 4}, Gap{From: first + file, To: first + 3*file})
	f([]int{0, 1}, 0, []int{2, 3, 4})
	f([]int{0, 1}, 1, []int{2, 3, 4}, Gap{From: 1, To: first + 2*file})
	f([]int{0, 1}, first+2*file, []int{2, 3, 4})
	f([]int{0, 2}, first+3*file, []int{3, 4})
	f([]int{4}, 1, []int{0, 1, 2, 3}, Gap{From: first + 4*file, To: first + 4*file + 5*(frameSize+60)})
}

func TestMissingEnd(t *testing.T) {
	_, report := replayAll(t, open(t, vfs.NewMem()), 500)
	if want := []Gap{{From: 1, To: 500}}; !slices.Equal(report.Missing, want) {
		t.Errorf("no file at all: %+v", report)
	}
	files, _, _ := buildFiles(t, 12, 12)
	_, report = replayAll(t, open(t, disk(t, files)), 500_000)
	if len(report.Missing) != 1 || report.Missing[0].To != 500_000 ||
		report.Missing[0].From < 1+markSize+12*68 {
		t.Errorf("behind the newest file: %+v", report)
	}
}

// TestMissingNewestFile: it is missed until what it held is not needed any more, and
// no position is given again.
func TestMissingNewestFile(t *testing.T) {
	files, names, want := buildFiles(t, 15, 15)
	end := want[14].lsn + frameSize + 60
	delete(files, names[2])
	fs := disk(t, files)
	gap := []Gap{{From: want[12].lsn, To: end, File: dir + "/" + names[2]}}
	for range 3 {
		l := open(t, fs)
		got, report := replayAll(t, l, 1)
		wantEntries(t, got[:12], want[:12])
		if !slices.Equal(report.Missing, gap) || len(report.Damaged)+len(report.Torn) != 0 {
			t.Fatalf("%+v, want the gap %v", report, gap)
		}
		if later := add(t, l, "later")[0]; later.lsn <= end {
			t.Fatalf("LSN %d was given, the missing file had some up to %d", later.lsn, end)
		}
		closeLog(t, l)
	}
	_, report := replayAll(t, open(t, fs), end)
	if len(report.Missing) != 0 {
		t.Errorf("what is not needed is missed: %+v", report)
	}
}

// TestAHoleIsATear: a sector of zeros in what was not synced is what a power failure
// leaves, and no damage, also with whole records behind it and at the starts to come.
// Behind it a write may tell that it was durable: then it is damage.
func TestAHoleIsATear(t *testing.T) {
	for _, synced := range []int{0, 20, 40} {
		fs, clock := vfs.NewMem(), new(manual)
		l := open(t, fs, mode(Off), func(o *Options) { o.FileSize, o.After = 8<<10, clock.newTimer })
		want := add(t, l, numberedRecords(20, 92)...) // 100 bytes each
		awaitWritten(t, l)
		files := filesAfterKill(t, fs)
		if synced > 0 {
			if err := l.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		want = append(want, add(t, l, numberedRecords(20, 92)...)...)
		awaitWritten(t, l)
		last := files[lastFile] // of a time when nothing was synced
		files = filesAfterKill(t, fs)
		files[lastFile] = last
		name := walFiles(t, fs)[0]
		clear(files[name][1024:1536]) // in records 9 to 14
		fs = disk(t, files)
		for range 3 {
			l := open(t, fs)
			got, report := replayAll(t, l, 1)
			if synced == 0 {
				wantEntries(t, got, want[:9])
				if len(report.Torn) > 1 || len(report.Damaged) != 0 {
					t.Fatalf("%+v", report)
				}
				add(t, l, "later") // goes to the next file
				closeLog(t, l)
				break
			}
			wantEntries(t, got[:34], slices.Concat(want[:9], want[15:]))
			if len(report.Torn) != 0 || len(report.Damaged) != 1 {
				t.Fatalf("%+v", report)
			}
			add(t, l, "later")
			closeLog(t, l)
		}
	}
}

// TestStrangeFiles: files of another log, renamed ones and any other name are
// neither replayed, nor replaced, nor removed.
func TestStrangeFiles(t *testing.T) {
	files, names, want := buildFiles(t, 15, 15)
	other := vfs.NewMem()
	l := open(t, other, func(o *Options) { o.MinLSN, o.FileSize = 3000, 8<<10 })
	add(t, l, "of another log")
	closeLog(t, l)
	files[fileName(3000)] = readFile(t, other, fileName(3000))
	files[fileName(3)] = files[names[0]]
	files["readme"] = []byte("text")
	files["0000000000000000.wal"] = nil
	files["F000000000000000.wal"] = nil
	fs := disk(t, files)
	l = open(t, fs, func(o *Options) { o.FileSize = 8 << 10 })
	got, report := replayAll(t, l, 1)
	wantEntries(t, got, want)
	if len(report.Damaged) != 2 || len(report.Torn)+len(report.Missing) != 0 {
		t.Errorf("%+v", report)
	}
	add(t, l, "later")
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := l.RemoveBelow(l.End()); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	if n := len(walFiles(t, fs)); n != 6 {
		t.Errorf("%d files are left, want 5 strange ones and the newest: %v", n, walFiles(t, fs))
	}
}

func TestNewerFormatIsRefused(t *testing.T) {
	files, names, _ := buildFiles(t, 3, 3)
	data := files[names[0]]
	binary.LittleEndian.PutUint32(data[8:], formatNumber+1)
	binary.LittleEndian.PutUint32(data[60:], crc32.Checksum(data[:60], castagnoli))
	_, err := Open(Options{FS: disk(t, files), Dir: dir})
	if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), names[0]) {
		t.Errorf("%v, want ErrFormat with the file's name", err)
	}
}

// FuzzReplay: whatever stands in the files, a log opens, replays only records
// whose checksums hold, takes new ones and gives them back.
func FuzzReplay(f *testing.F) {
	files, names, _ := buildFiles(f, 9, 9)
	a, b := files[names[0]], files[names[1]]
	f.Add(a, b, uint64(1))
	f.Add(a, b[:100], uint64(200))
	f.Add(a[:300], []byte{}, uint64(0))
	f.Add([]byte{}, b, uint64(1<<40))
	f.Add(append(slices.Clone(a[:headerSize]), 0xff, 0xff, 0xff, 0x03, 1, 2, 3, 4), b, uint64(1))
	f.Fuzz(func(t *testing.T, a, b []byte, from uint64) {
		fs := disk(t, map[string][]byte{names[0]: a, names[1]: b})
		l, err := Open(Options{FS: fs, Dir: dir, MaxRecord: 100, BufferSize: 1})
		if errors.Is(err, ErrFormat) {
			return
		}
		if err != nil {
			t.Fatalf("I6: %v", err)
		}
		old, _ := replayAll(t, l, LSN(from))
		for i, e := range old {
			if i > 0 && e.lsn < old[i-1].lsn+frameSize+LSN(len(old[i-1].rec)) {
				t.Fatalf("records overlap: %d after %d", e.lsn, old[i-1].lsn)
			}
			if !bytes.Contains(a, []byte(e.rec)) && !bytes.Contains(b, []byte(e.rec)) {
				t.Fatalf("I2: %q is in no file", e.rec)
			}
		}
		before, _ := replayAll(t, l, 0)
		later := add(t, l, "later")
		readAgain(t, l, 0, before)
		closeLog(t, l)
		l, err = Open(Options{FS: fs, Dir: dir, MaxRecord: 100, BufferSize: 1})
		if err != nil {
			t.Fatalf("I6: second start: %v", err)
		}
		got, _ := replayAll(t, l, 0)
		wantEntries(t, got, slices.Concat(before, later))
		closeLog(t, l)
	})
}

func FuzzHeader(f *testing.F) {
	f.Add(appendHeader(nil, header{id: [16]byte{1}, first: 9, clean: 8, prev: 1}))
	f.Add([]byte("DDBWAL\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, rest, err := parseHeader(data)
		if err != nil {
			return
		}
		again, _, err := parseHeader(appendHeader(nil, h))
		if err != nil || again != h || len(rest) != len(data)-headerSize {
			t.Errorf("%+v became %+v: %v", h, again, err)
		}
	})
}
