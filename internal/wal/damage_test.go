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

// built returns the files of a log of n records of 60 bytes, 6 to a file, and
// the records.
func built(t testing.TB, n int) (files map[string][]byte, names []string, want []entry) {
	t.Helper()
	fs := vfs.NewMem()
	l := open(t, fs, func(o *Options) { o.ID = [16]byte{7} })
	want = add(t, l, numbered(n, 60)...)
	closeLog(t, l)
	names = walFiles(t, fs)
	files = make(map[string][]byte)
	for _, name := range names {
		files[name] = readFile(t, fs, name)
	}
	return files, names, want
}

func disk(t testing.TB, files map[string][]byte) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	for name, data := range files {
		writeFile(t, fs, name, data)
	}
	return fs
}

// TestTornAtEveryLength cuts the newest file at every length, twice: the
// second time with bytes of a lost record behind. The next two starts give
// the whole records, and only the first one reports the tear.
func TestTornAtEveryLength(t *testing.T) {
	files, names, want := built(t, 15)
	name := names[len(names)-1]
	whole := files[name]
	first, _ := parseFileName(name)
	for cut := range len(whole) {
		for _, junk := range [][]byte{nil, bytes.Repeat([]byte{0}, 100), append(make([]byte, 100), 1)} {
			files[name] = append(slices.Clone(whole[:cut]), junk...)
			kept := want
			for len(kept) > 0 && kept[len(kept)-1].lsn >= first &&
				int64(kept[len(kept)-1].lsn-first)+headerSize+frameSize+60 > int64(cut) {
				kept = kept[:len(kept)-1]
			}
			if cut < headerSize && len(junk) > 0 {
				continue // TestDamagedHeader
			}
			fs := disk(t, files)
			killed := open(t, fs)
			got, report := replayAll(t, killed, 1)
			wantEntries(t, got, kept)
			tail := int64(cut) - headerSize - int64(len(kept)%6)*(frameSize+60)
			torn := cut < headerSize || tail != 0 || bytes.Count(junk, []byte{1}) > 0
			if len(report.Damaged)+len(report.Missing) != 0 || torn != (len(report.Torn) == 1) {
				t.Fatalf("cut at %d, %d bytes behind: %+v", cut, len(junk), report)
			}
			l := open(t, fs)
			later := add(t, l, "later")
			closeLog(t, l)
			l = open(t, fs)
			got, report = replayAll(t, l, 1)
			wantEntries(t, got, slices.Concat(kept, later))
			if len(report.Damaged)+len(report.Missing)+len(report.Torn) != 0 {
				t.Fatalf("cut at %d, %d bytes behind, second start: %+v", cut, len(junk), report)
			}
			closeLog(t, l)
			closeLog(t, killed)
		}
	}
}

// TestTornRecordStaysLost: once a start has passed over a torn record, it does
// not come back, even if its bytes do: records were appended after it.
func TestTornRecordStaysLost(t *testing.T) {
	files, names, want := built(t, 3)
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

// TestBitFlips: every bit of an earlier file and of the newest. The place is
// named, and all records are given but the one that holds the bit, or those of
// a file whose header does. Only in the last record of all the bit cannot be
// told from a tear. A start after the next says the same.
func TestBitFlips(t *testing.T) {
	const n, size = 15, frameSize + 60
	for file, perFile := range map[int]int{1: 6, 2: 3} {
		files, names, want := built(t, n)
		whole := files[names[file]]
		for bit := range len(whole) * 8 {
			bad := slices.Clone(whole)
			bad[bit/8] ^= 1 << (bit % 8)
			files[names[file]] = bad
			first, lost, at := 6*file, perFile, int64(0)
			if bit/8 >= headerSize {
				first, lost = first+(bit/8-headerSize)/size, 1
				at = headerSize + int64(first-6*file)*size
			}
			kept := slices.Concat(want[:first], want[first+lost:])
			fs := disk(t, files)
			l := open(t, fs)
			got, report := replayAll(t, l, 1)
			wantEntries(t, got, kept)
			places := report.Damaged
			if first == n-1 {
				places = report.Torn
			}
			if len(places) != 1 || len(report.Torn)+len(report.Damaged)+len(report.Missing) != 1 {
				t.Fatalf("bit %d of file %d: %+v", bit, file, report)
			}
			p := places[0]
			if p.LSN != want[first].lsn || p.Offset != at || !strings.HasSuffix(p.File, names[file]) || p.Reason == "" {
				t.Fatalf("bit %d of file %d: damage at %v, want LSN %d, offset %d", bit, file, p, want[first].lsn, at)
			}
			if bit%37 == 0 {
				kept = append(kept, add(t, l, "later")...)
				closeLog(t, l)
				l = open(t, fs)
				got, _ = replayAll(t, l, 1)
				wantEntries(t, got, kept)
			}
			closeLog(t, l) // thousands at a time take a gigabyte
		}
	}
}

// TestAHoleIsATear: a sector of zeros before whole records of the newest file
// is what a power failure leaves of unsynced writes, and no damage. In an
// earlier file it is damage.
func TestAHoleIsATear(t *testing.T) {
	for _, newest := range []bool{true, false} {
		fs := vfs.NewMem()
		l := open(t, fs, func(o *Options) { o.FileSize = 8 << 10 })
		want := add(t, l, numbered(40, 92)...) // 100 bytes each
		if !newest {
			want = append(want, add(t, l, numbered(60, 92)...)...)
		}
		closeLog(t, l)
		name := walFiles(t, fs)[0]
		data := readFile(t, fs, name)
		clear(data[2*sector : 3*sector]) // in records 9 to 14
		writeFile(t, fs, name, data)
		got, report := replayAll(t, open(t, fs), 1)
		if newest {
			wantEntries(t, got, want[:9])
			if len(report.Torn) != 1 || len(report.Damaged) != 0 {
				t.Errorf("%+v", report)
			}
			continue
		}
		wantEntries(t, got, slices.Concat(want[:9], want[15:]))
		if len(report.Torn) != 0 || len(report.Damaged) != 1 {
			t.Errorf("%+v", report)
		}
	}
}

// TestShortEarlierFile: a file that lost its end, at a record's end or not, is
// damaged although no byte of it is wrong.
func TestShortEarlierFile(t *testing.T) {
	files, names, want := built(t, 15)
	files[names[0]] = files[names[0]][:headerSize+2*(frameSize+60)]
	got, report := replayAll(t, open(t, disk(t, files)), 1)
	wantEntries(t, got, slices.Concat(want[:2], want[6:]))
	if len(report.Damaged) != 1 || report.Damaged[0].LSN != want[2].lsn {
		t.Errorf("%+v", report)
	}
}

func TestMissingFile(t *testing.T) {
	f := func(drop []int, from LSN, kept []int, gaps ...Gap) {
		t.Helper()
		files, names, want := built(t, 30)
		for _, i := range drop {
			delete(files, names[i])
		}
		for i := range gaps {
			gaps[i].File = dir + "/" + names[drop[len(drop)-1]]
		}
		var expected []entry
		for _, i := range kept {
			expected = append(expected, want[i*6:i*6+6]...)
		}
		got, report := replayAll(t, open(t, disk(t, files)), from)
		wantEntries(t, got, expected)
		if !slices.Equal(report.Missing, gaps) || len(report.Damaged)+len(report.Torn) != 0 {
			t.Errorf("without %v from %d: %+v, want %v", drop, from, report, gaps)
		}
	}
	const file = 6 * (frameSize + 60)
	f([]int{2}, 1, []int{0, 1, 3, 4}, Gap{From: 1 + 2*file, To: 1 + 3*file})
	f([]int{1, 2}, 1, []int{0, 3, 4}, Gap{From: 1 + file, To: 1 + 3*file})
	f([]int{0, 1}, 0, []int{2, 3, 4})
	f([]int{0, 1}, 1, []int{2, 3, 4}, Gap{From: 1, To: 1 + 2*file})
	f([]int{0, 1}, 1+2*file, []int{2, 3, 4})
	f([]int{0, 2}, 1+3*file, []int{3, 4})
}

func TestMissingEnd(t *testing.T) {
	_, report := replayAll(t, open(t, vfs.NewMem()), 500)
	if want := []Gap{{From: 1, To: 500}}; !slices.Equal(report.Missing, want) {
		t.Errorf("no file at all: %+v", report)
	}
	files, names, _ := built(t, 12)
	delete(files, names[1])
	_, report = replayAll(t, open(t, disk(t, files)), 500)
	if want := []Gap{{From: 1 + 6*68, To: 500}}; !slices.Equal(report.Missing, want) {
		t.Errorf("the newest file is gone: %+v", report)
	}
}

// TestDamagedHeader: a file with records and no header is damage, also as the
// newest one: a header is durable before the first record is written.
func TestDamagedHeader(t *testing.T) {
	files, names, want := built(t, 15)
	name := names[2]
	files[name] = slices.Concat(make([]byte, headerSize), files[name][headerSize:])
	fs := disk(t, files)
	l := open(t, fs)
	got, report := replayAll(t, l, 1)
	wantEntries(t, got, want[:12])
	if len(report.Damaged) != 1 || len(report.Torn)+len(report.Missing) != 0 {
		t.Errorf("%+v", report)
	}
	later := add(t, l, "later")
	closeLog(t, l)
	got, report = replayAll(t, open(t, fs), 1)
	wantEntries(t, got, slices.Concat(want[:12], later))
	if len(report.Damaged) != 1 || len(report.Torn)+len(report.Missing) != 0 {
		t.Errorf("after the next start: %+v", report)
	}
}

// TestStrangeFiles: files of another log, renamed ones and any other name are
// neither replayed, nor replaced, nor removed.
func TestStrangeFiles(t *testing.T) {
	files, names, want := built(t, 15)
	other := vfs.NewMem()
	l := open(t, other, func(o *Options) { o.MinLSN = 3000 })
	add(t, l, "of another log")
	closeLog(t, l)
	files[fileName(3000)] = readFile(t, other, fileName(3000))
	files[fileName(3)] = files[names[0]]
	files["readme"] = []byte("text")
	files["0000000000000000.wal"] = nil
	files["F000000000000000.wal"] = nil
	fs := disk(t, files)
	l = open(t, fs)
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
	files, names, _ := built(t, 3)
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
	files, names, _ := built(f, 9)
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

// TestMovedRecord: a sound record in another record's place is damage.
func TestMovedRecord(t *testing.T) {
	files, names, want := built(t, 15)
	data := files[names[0]]
	const size = frameSize + 60
	first, second := data[headerSize:headerSize+size], data[headerSize+size:headerSize+2*size]
	files[names[0]] = slices.Concat(data[:headerSize], second, first, data[headerSize+2*size:])
	got, report := replayAll(t, open(t, disk(t, files)), 1)
	wantEntries(t, got, want[2:])
	if len(report.Damaged) != 1 || report.Damaged[0].LSN != 1 {
		t.Errorf("%+v", report)
	}
}
