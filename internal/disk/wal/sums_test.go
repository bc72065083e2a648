package wal

import (
	"bytes"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The checksums of a record and of its head change with every bit of the length, the
// position, the log and the payload; that of the head is none of a record.
func TestChecksumsCoverEverything(t *testing.T) {
	s, other := newSums([16]byte{1}), newSums([16]byte{15: 1})
	const payload, word, lsn = 0x12345678, 0x40000123, LSN(0x123456789abcdef)
	prefix := []byte{1, 2, 3, 4, 5}
	for name, sum := range map[string]func(s *sums, payload, word uint32, lsn LSN) uint32{
		"record": func(s *sums, payload, word uint32, lsn LSN) uint32 {
			return s.record(payload, word, lsn, nil)
		},
		"headed": func(s *sums, payload, word uint32, lsn LSN) uint32 {
			return s.record(payload, word, lsn, prefix)
		},
		"head": func(s *sums, payload, word uint32, lsn LSN) uint32 {
			return s.head(payload, word, lsn)
		},
	} {
		want := sum(&s, payload, word, lsn)
		for bit := range 64 {
			if sum(&s, payload, word, lsn^1<<bit) == want {
				t.Errorf("%s: bit %d of the position is not covered", name, bit)
			}
			if bit < 32 && (sum(&s, payload^1<<bit, word, lsn) == want ||
				sum(&s, payload, word^1<<bit, lsn) == want) {
				t.Errorf("%s: bit %d of payload or length is not covered", name, bit)
			}
		}
		if sum(&other, payload, word, lsn) == want {
			t.Errorf("%s: the log is not covered", name)
		}
	}
	for i := range prefix {
		want := s.record(payload, word, lsn, prefix)
		prefix[i] ^= 0x80
		if s.record(payload, word, lsn, prefix) == want {
			t.Errorf("byte %d in front of a head is not covered", i)
		}
	}
	if s.record(payload, word, lsn, nil) == s.head(payload, word, lsn) {
		t.Error("the head of a record without a body has the checksum of the record")
	}
}

// A record stays where it is beyond 2^32: the same bytes 4 GiB further are none.
func TestPositionsAreNotCut(t *testing.T) {
	fs := vfs.NewMem()
	l := open(t, fs, func(o *Options) { o.ID, o.MinLSN = [16]byte{1}, 1<<32+1000 })
	want := add(t, l, numberedRecords(3, 60)...)
	closeLog(t, l)
	name := walFiles(t, fs)[0]
	data := readFile(t, fs, name)
	got, report := replayAll(t, open(t, fs), 0)
	wantEntries(t, got, want)
	if len(report.Torn)+len(report.Damaged)+len(report.Missing) != 0 {
		t.Errorf("%+v", report)
	}
	first, _ := parseFileName(name)
	moved := vfs.NewMem()
	head := appendHeader(nil, header{id: [16]byte{1}, first: first - 1<<32, clean: 1})
	writeFile(t, moved, fileName(first-1<<32), append(head, data[headerSize:]...))
	if got, _ := replayAll(t, open(t, moved), 0); len(got) != 0 {
		t.Errorf("records 4 GiB from their place: %v", got)
	}
}

func FuzzCopies(f *testing.F) {
	c := new(copies)
	c.reset(1)
	c.noteHeaded(100, []byte("head a"))
	c.noteHeaded(101, []byte("head b"))
	c.notePlain(40, 'x')
	c.noteOwn(17)
	c.noteHeaded(3000, []byte("a longer head than before"))
	c.noteHeaded(3000, bytes.Repeat([]byte("h"), maxHead))
	f.Add(c.list, uint64(1))
	f.Fuzz(func(t *testing.T, list []byte, base uint64) {
		at, again := LSN(base), new(copies)
		again.reset(at)
		type told struct {
			lsn  LSN
			size int
			own  bool
			head string
		}
		var first, second []told
		eachCopy(list, at, func(k knownRecord) {
			first = append(first, told{k.lsn, k.size, k.own, string(k.head)})
			if k.lsn != at || k.size <= frameSize || len(k.head) > maxHead {
				t.Fatalf("%+v at %d", k, at)
			}
			at += LSN(k.size)
			switch {
			case k.own:
				again.noteOwn(k.size)
			case len(k.head) == 0:
				again.notePlain(k.size, 0)
			default:
				again.noteHeaded(k.size, k.head)
			}
		})
		eachCopy(again.list, LSN(base), func(k knownRecord) {
			second = append(second, told{k.lsn, k.size, k.own, string(k.head)})
		})
		if len(first) != len(second) {
			t.Fatalf("%d records, again %d", len(first), len(second))
		}
		for i := range first {
			if first[i] != second[i] {
				t.Fatalf("%+v, again %+v", first[i], second[i])
			}
		}
	})
}
