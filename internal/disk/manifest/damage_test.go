package manifest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/testkit/filetest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// buildFile returns a file with a snapshot and one edit per segment 1 to n, and
// where each of the n+1 records begins.
func buildFile(n int) (data []byte, starts []int) {
	data = appendHeader(nil)
	starts = append(starts, len(data))
	data = appendRecord(data, 5, &Edit{begin: begin{reset: true}, ReplayPosition: 10,
		PutBuckets: []buckets.Info{{ID: 1, Name: "b"}}})
	for i := range n {
		starts = append(starts, len(data))
		seq := uint64(i + 1)
		data = appendRecord(data, 6+uint64(i), &Edit{
			AddSegments: []Segment{{Seq: seq}}, ReplayPosition: 100 * seq, ReplayPositions: []ReplayPosition{
				{1, 90 * seq}},
			NextSeq: seq + 1, Accounts: Accounts{Account: fmt.Append(nil, "account ", seq),
				AccountLSN: 95 * seq},
		})
	}
	return data, starts
}

func disk(t testing.TB, data []byte) *vfs.MemFS {
	t.Helper()
	return disks(t, data, data)
}

// disks has the two copies; nil stands for none.
func disks(t testing.TB, first, second []byte) *vfs.MemFS {
	t.Helper()
	fs := durableDir(t)
	for i, data := range [][]byte{first, second} {
		if data != nil {
			writeFile(t, fs, names[i], data)
		}
	}
	return fs
}

func writeFile(t testing.TB, fs vfs.FS, name string, data []byte) {
	t.Helper()
	filetest.Write(t, fs, fs.PathJoin(dir, name), data)
}

func seqs(s *State) (seqs []uint64) {
	for _, seg := range s.Segments {
		seqs = append(seqs, seg.Seq)
	}
	return seqs
}

// TestTornAtEveryLength cuts one copy inside its last edit, as a crash in a commit
// does, with and without zeros behind. In the first copy the edit was never
// committed; in the second it counts, since the first one has it.
func TestTornAtEveryLength(t *testing.T) {
	data, starts := buildFile(3)
	_, before, _ := mustOpen(t, disk(t, data[:starts[3]]), rewriteSize)
	_, after, _ := mustOpen(t, disk(t, data), rewriteSize)
	f := func(first, second []byte, torn bool, want *State) {
		t.Helper()
		fs := disks(t, first, second)
		m, s, r := mustOpen(t, fs, rewriteSize)
		if !reflect.DeepEqual(s, want) || torn != (len(r.Torn) == 1) || len(r.Damaged)+len(r.Lost) != 0 {
			t.Fatalf("copies of %d and %d bytes: %+v, %+v", len(first), len(second), s, r)
		}
		commit(t, m, Edit{AddSegments: []Segment{{Seq: 9}}})
		_, s, r = mustOpen(t, fs, rewriteSize)
		if !slices.Equal(seqs(s), append(seqs(want), 9)) || len(r.Torn)+len(r.Damaged)+len(r.Lost) != 0 {
			t.Fatalf("copies of %d and %d bytes, second start: %+v, %+v", len(first), len(second), s, r)
		}
	}
	for cut := starts[3]; cut < len(data); cut++ {
		for _, zeros := range []int{0, 50} {
			end := append(slices.Clone(data[:cut]), make([]byte, zeros)...)
			torn := cut > starts[3] || zeros > 0
			f(end, data[:starts[3]], torn, before)
			f(data, end, torn, after)
		}
	}
}

// TestOneCopyIsEnough damages one copy: each bit of it, each length, each missing
// edit, 4 KiB of zeros, no file. Not one edit is lost, and but for the end of the
// second, which a crash may leave torn, the damage is named, kept and mended.
func TestOneCopyIsEnough(t *testing.T) {
	data, starts := buildFile(3)
	_, want, _ := mustOpen(t, disk(t, data), rewriteSize)
	f := func(which int, bad []byte, expected bool) {
		t.Helper()
		copies := [2][]byte{data, data}
		copies[which] = bad
		fs := disks(t, copies[0], copies[1])
		_, s, r := mustOpen(t, fs, rewriteSize)
		if !reflect.DeepEqual(s, want) || s.Suspect || len(r.Lost) > 0 {
			t.Fatalf("copy %d: %+v, %+v", which, s, r)
		}
		if named := len(r.Damaged) > 0 && r.Damaged[0].File == names[which]; named == expected {
			t.Fatalf("copy %d of %d bytes: %+v", which, len(bad), r)
		}
		if bad != nil && !expected &&
			(len(r.SetAside) != 1 || !slices.Equal(filetest.Read(t, fs, r.SetAside[0]), bad)) {
			t.Fatalf("copy %d: kept %q", which, r.SetAside)
		}
		if a, b := filetest.Read(t, fs, fs.PathJoin(dir, FirstName)),
			filetest.Read(t, fs, fs.PathJoin(dir, SecondName)); !slices.Equal(a, b) {
			t.Fatalf("copy %d: not mended", which)
		}
		if _, s, r := mustOpen(t, fs, rewriteSize); !reflect.DeepEqual(s, want) ||
			len(r.Damaged)+len(r.Torn)+len(r.Lost) > 0 {
			t.Fatalf("copy %d, second start: %+v, %+v", which, s, r)
		}
	}
	last := starts[3]
	for which := range 2 {
		for bit := range 8 * len(data) {
			bad := slices.Clone(data)
			bad[bit/8] ^= 1 << (bit % 8)
			f(which, bad, which == 1 && bit/8 >= last)
		}
		for n := range data {
			f(which, data[:n:n], which == 1 && n >= last)
		}
		ends := append(slices.Clone(starts), len(data))
		for i := range starts {
			f(which, slices.Concat(data[:ends[i]], data[ends[i+1]:]), which == 1 && i == len(starts)-1)
		}
		f(which, nil, false)
		f(which, make([]byte, 4096), false)
		f(which, slices.Concat(data[:starts[1]], make([]byte, 512), data[starts[2]:]), false)
	}
}

// Damage in both copies at different edits: each has what the other one lost.
func TestCopiesMendEachOther(t *testing.T) {
	data, starts := buildFile(4)
	_, want, _ := mustOpen(t, disk(t, data), rewriteSize)
	for i := range starts {
		for j := range starts {
			copies := [2][]byte{slices.Clone(data), slices.Clone(data)}
			copies[0][starts[i]+frameSize+1] ^= 4
			copies[1][starts[j]+frameSize+1] ^= 4
			_, s, r := mustOpen(t, disks(t, copies[0], copies[1]), rewriteSize)
			if i == j != (len(r.Lost) > 0) || i == j != s.Suspect {
				t.Errorf("edits %d and %d: %+v, %+v", i, j, s, r)
			}
			if i != j && !reflect.DeepEqual(s, want) {
				t.Errorf("edits %d and %d: %+v", i, j, s)
			}
		}
	}
}

// TestBitFlips: every bit of an edit in the middle, in both copies. It is named, the other
// edits count but for their replay positions, ids jump, and the state is suspect until
// the owner has settled it, over restarts.
func TestBitFlips(t *testing.T) {
	data, starts := buildFile(3)
	for bit := starts[2] * 8; bit < starts[3]*8; bit++ {
		bad := slices.Clone(data)
		bad[bit/8] ^= 1 << (bit % 8)
		fs := disk(t, bad)
		m, s, r := mustOpen(t, fs, rewriteSize)
		if len(r.Damaged) != 2 || r.Damaged[0].Offset != int64(starts[2]) || len(r.Torn) != 0 {
			t.Fatalf("bit %d: %+v", bit, r)
		}
		if !slices.Equal(seqs(s), []uint64{1, 3}) || s.ReplayPosition != 100 ||
			s.ReplayPositionOf(1) != 90 || !s.Suspect ||
			s.AccountLSN != 285 || string(s.Account) != "account 3" || s.NextSeq < 4+idGap ||
			s.NextGroup < idGap {
			t.Fatalf("bit %d: %+v", bit, s)
		}
		if len(r.SetAside) != 2 || !slices.Equal(filetest.Read(t, fs, r.SetAside[0]), bad) {
			t.Fatalf("bit %d: %q is no copy of the file", bit, r.SetAside)
		}
		_, again, r := mustOpen(t, fs, rewriteSize)
		if !reflect.DeepEqual(again, s) || len(r.Damaged) != 0 {
			t.Fatalf("bit %d, second start: %+v, %+v", bit, again, r)
		}
		if bit == starts[2]*8 {
			commit(t, m, Edit{Settled: true})
			if _, s, _ := mustOpen(t, fs, rewriteSize); s.Suspect {
				t.Error("suspect after Settled")
			}
		}
	}
}

// TestDamagedFront: header or snapshot lost, or the whole file.
func TestDamagedFront(t *testing.T) {
	data, starts := buildFile(3)
	f := func(name string, bad []byte, floor uint64, want ...uint64) {
		t.Helper()
		_, s, r := mustOpen(t, disk(t, bad), rewriteSize)
		if len(r.Damaged) == 0 || len(r.Lost) == 0 || len(r.Torn) != 0 || !s.Suspect ||
			!slices.Equal(seqs(s), want) || s.ReplayPosition != floor {
			t.Errorf("%s: %+v, %+v", name, s, r)
		}
	}
	flip := func(at int) []byte {
		bad := slices.Clone(data)
		bad[at] ^= 0x10
		return bad
	}
	f("snapshot", flip(starts[0]+20), 0, 1, 2, 3)
	f("empty", []byte{}, 0)
	f("header only", data[:headerSize], 0)
	f("snapshot cut", data[:starts[1]-1], 0)
	f("zeros", make([]byte, 500), 0)
	f("an edit missing", slices.Concat(data[:starts[2]], data[starts[3]:]), 100, 1, 3)
	f("last edit", flip(len(data)-1), 200, 1, 2)

	// What has all edits has lost nothing.
	for name, bad := range map[string][]byte{
		"header": flip(3), "an edit twice": slices.Concat(data[:starts[2]], data[starts[1]:])} {
		_, s, r := mustOpen(t, disk(t, bad), rewriteSize)
		if len(r.Damaged) != 2 || len(r.Lost)+len(r.Torn) != 0 || s.Suspect ||
			!slices.Equal(seqs(s), []uint64{1, 2, 3}) || s.ReplayPosition != 300 {
			t.Errorf("%s: %+v, %+v", name, s, r)
		}
	}
}

// Bytes that are nobody's between two edits are damage, and no edit is lost by them,
// wherever the next one begins. So is a snapshot behind edits, which nobody writes.
func TestStrangeBytesBetweenEdits(t *testing.T) {
	data, starts := buildFile(3)
	_, want, _ := mustOpen(t, disk(t, data), rewriteSize)
	for n := 1; n <= 2*frameSize; n++ {
		for _, fill := range []byte{0, marker[0]} {
			bad := slices.Concat(data[:starts[2]], slices.Repeat([]byte{fill}, n), data[starts[2]:])
			_, s, r := mustOpen(t, disk(t, bad), rewriteSize)
			if !reflect.DeepEqual(s, want) || len(r.Damaged) != 2 || r.Damaged[0].Bytes != int64(n) ||
				len(r.Lost)+len(r.Torn) > 0 {
				t.Fatalf("%d bytes: %+v, %+v", n, s, r)
			}
		}
	}
	bad := appendRecord(slices.Clone(data), 9, &Edit{begin: begin{reset: true}})
	_, s, r := mustOpen(t, disk(t, bad), rewriteSize)
	if len(r.Damaged) != 2 || r.Damaged[0].Offset != int64(len(data)) ||
		!strings.Contains(r.Damaged[0].Reason, "snapshot") || !reflect.DeepEqual(s, want) {
		t.Errorf("a snapshot behind edits: %+v, %+v", s, r)
	}
}

// TestSetAsideKeepsAll: a second damage does not replace the first copy.
func TestSetAsideKeepsAll(t *testing.T) {
	fs := disk(t, []byte("one"))
	_, _, a := mustOpen(t, fs, rewriteSize)
	writeFile(t, fs, FirstName, []byte("two"))
	_, _, b := mustOpen(t, fs, rewriteSize)
	if string(filetest.Read(t, fs, a.SetAside[0])) != "one" ||
		string(filetest.Read(t, fs, b.SetAside[0])) != "two" {
		t.Errorf("%+v, %+v", a, b)
	}
}

func TestOtherFormatsAreRefused(t *testing.T) {
	for _, format := range []uint32{0, formatNumber - 1, formatNumber + 1} {
		data, _ := buildFile(1)
		binary.LittleEndian.PutUint32(data[8:], format)
		binary.LittleEndian.PutUint32(data[12:], crc32.Checksum(data[:12], castagnoli))
		fs := disk(t, data)
		_, _, _, err := Open(fs, dir, own, nil)
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), FirstName) {
			t.Errorf("format %d: %v, want ErrFormat with the file's name", format, err)
		}
		if !slices.Equal(filetest.Read(t, fs, fs.PathJoin(dir, FirstName)), data) {
			t.Error("the file was changed")
		}
	}
}

// FuzzOpen: whatever stands in the file, it opens, takes an edit, and has the
// same state and that edit at the next start.
func FuzzOpen(f *testing.F) {
	data, starts := buildFile(3)
	f.Add(data)
	f.Add(data[:starts[2]+5])
	f.Add(data[starts[1]:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		fs := disk(t, data)
		m, s, _, err := Open(fs, dir, own, nil)
		if errors.Is(err, ErrFormat) {
			return
		}
		if err != nil {
			t.Fatalf("I6: %v", err)
		}
		e := Edit{Settled: true, Accounts: Accounts{Account: []byte("a")}}
		commit(t, m, e)
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		s.apply(&e)
		_, again, r := mustOpen(t, fs, rewriteSize)
		if !reflect.DeepEqual(again, s.clone()) || len(r.Damaged)+len(r.Torn) != 0 {
			t.Fatalf("%+v\nbecame %+v\n%+v", s, again, r)
		}
	})
}

func FuzzRecord(f *testing.F) {
	data, starts := buildFile(2)
	f.Add(data[starts[0]:])
	f.Add(data[starts[1]:starts[2]])
	added := Edit{AddSegments: []Segment{{Seq: 18, Kind: 1, Generation: 7, Purged: 3}}}
	purged := Edit{Purged: []PurgedSegment{{18, 5}, {18, 2}, {9, 1}}}
	f.Add(appendEdit(appendEdit(nil, &added), &purged))
	f.Add(appendEdit(appendEdit(nil, &purged), &added)) // an order that is never written
	f.Fuzz(func(t *testing.T, data []byte) {
		// The checksum keeps a fuzzer out, so the payload is tried on its own.
		e, err := parseEdit(data)
		if err == nil {
			again, err := parseEdit(appendEdit(nil, &e))
			if err != nil || !reflect.DeepEqual(again, e) {
				t.Fatalf("%+v became %+v: %v", e, again, err)
			}
		}
		if _, _, rest, err := parseRecord(data); err == nil && len(rest) >= len(data) {
			t.Fatal("a record of no bytes")
		}
	})
}

// On a full disk a damaged copy is not mended, and the state is there. An edit is
// refused without harm until there is room, and then the copies are mended first.
func TestFullDiskAtAStart(t *testing.T) {
	data, starts := buildFile(3)
	bad := slices.Clone(data)
	bad[starts[1]+frameSize] ^= 1
	for which := range 2 {
		copies := [2][]byte{data, data}
		copies[which] = bad
		mem := disks(t, copies[0], copies[1])
		full := true
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if full && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				return syscall.ENOSPC
			}
			return nil
		}))
		m, s, r := mustOpen(t, fs, rewriteSize)
		if !slices.Equal(seqs(s), []uint64{1, 2, 3}) || s.Suspect || len(r.Damaged) != 1 ||
			!errors.Is(r.Deferred, syscall.ENOSPC) {
			t.Fatalf("%+v, %+v", s, r)
		}
		if err := m.Commit(Edit{NextSeq: 50}); !errors.Is(err, ErrUnwritten) {
			t.Fatalf("on a full disk: %v", err)
		}
		full = false
		commit(t, m, Edit{NextSeq: 60})
		if got := filetest.Read(t, fs, fs.PathJoin(dir, lostDir, names[which]+".1")); !slices.Equal(got,
			bad) {
			t.Error("the damaged copy was not kept")
		}
		_, s, r = mustOpen(t, mem, rewriteSize)
		if s.NextSeq != 60 || len(r.Damaged)+len(r.Torn)+len(r.Lost) != 0 {
			t.Errorf("%+v, %+v", s, r)
		}
	}
}
