package dedup

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

func series(n int) (s Series) {
	binary.BigEndian.PutUint64(s.Hash[:], uint64(n))
	return s
}

// TestEqualsTheModel compares the table with a map of all chunks, beyond its limits.
func TestEqualsTheModel(t *testing.T) {
	s := New()
	var all [][]byte
	read := func(owner uint32, length int) []byte {
		if len(all[owner]) != length {
			return nil
		}
		return all[owner]
	}
	r := rand.New(rand.NewPCG(5, 5))
	sharers := make(map[uint32]map[Series]bool)
	stored := make(map[string]int)
	for i := range uint32(60_000) {
		of := series(r.IntN(3000))
		data := binary.LittleEndian.AppendUint64(bytes.Repeat([]byte{1}, 20), uint64(r.IntN(1+int(i)/10)))
		all = append(all, data)
		owner, ok := s.Find(of, data, i, read)
		if !ok {
			if owner != i {
				t.Fatalf("entry %d is not its own", i)
			}
			stored[string(data)]++
			sharers[i] = map[Series]bool{of: true}
			continue
		}
		if sharers[owner] == nil || !bytes.Equal(all[owner], data) {
			t.Fatalf("entry %d shares %x of %d and has %x", i, all[owner], owner, data)
		}
		if sharers[owner][of] = true; len(sharers[owner]) > MaxSharers {
			t.Fatalf("%d series share entry %d", len(sharers[owner]), owner)
		}
	}
	copies := 0
	for _, n := range stored {
		copies += n
	}
	if copies > len(stored)+60_000/MaxSharers {
		t.Errorf("%d copies of %d chunks", copies, len(stored))
	}
}

// TestSharingIsBounded: behind the limit of bytes nothing more is shared, and all is kept.
func TestSharingIsBounded(t *testing.T) {
	s := New()
	big := func(n uint32) []byte { return append(make([]byte, 60_000), byte(n), byte(n>>8)) }
	read := func(owner uint32, _ int) []byte { return big(owner) }
	shared := 0
	for n := range uint32(300) {
		if _, ok := s.Find(series(1), big(n), n, read); ok {
			t.Fatalf("entry %d is equal to none", n)
		}
	}
	for n := range uint32(300) {
		if owner, ok := s.Find(series(2), big(n), 1000+n, read); ok {
			if shared++; owner != n {
				t.Fatalf("entry %d shares that of %d", n, owner)
			}
		}
	}
	if want := MaxShared / 60_002; shared != want || s.bytes > MaxShared {
		t.Errorf("%d are shared with %d bytes, want %d", shared, s.bytes, want)
	}
}
