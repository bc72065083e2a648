package eventfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/testkit/filetest"
)

// genEvents draws events of one bucket in ascending order, with equal times, runs of ids and
// large bodies among them.
func genEvents(t *rapid.T) []Event {
	list := make([]Event, rapid.IntRange(1, 60).Draw(t, "events"))
	at := rapid.Int64Range(1, 1<<62).Draw(t, "first")
	for i := range list {
		e := &list[i]
		at += rapid.SampledFrom([]int64{0, 1, 1000, 1e9, 1 << 40}).Draw(t, "step")
		e.Time = at
		e.ID[7] = byte(rapid.IntRange(0, 2).Draw(t, "sender"))
		e.ID[15] = byte(i)
		e.Body = bytes.Repeat([]byte{byte(i)},
			rapid.SampledFrom([]int{0, 1, 100, 5000}).Draw(t, "length"))
	}
	slices.SortFunc(list, func(a, b Event) int { return Compare(&a, &b) })
	return list
}

// testFile is a file of the directory of the tests.
func testFile(number uint64) origin.File {
	return origin.File{Directory: origin.Directory{1, 2, 15: 3}, Number: number}
}

func write(t rapid.TB, fs vfs.FS, number uint64, events map[uint64][]Event, lost []LostRange,
	meta Meta) Info {
	w, err := Create(fs, "f.evt", testFile(number))
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]uint64, 0, len(events))
	for id := range events {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		for i := range events[id] {
			if err := w.Add(id, &events[id][i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, l := range lost {
		w.AddLost(l)
	}
	info, err := w.Finish(&meta)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// readAll returns the events of a file by bucket, and the damage of its blocks.
func readAll(r *Reader) (events map[uint64][]Event, bad []error, err error) {
	events = make(map[uint64][]Event)
	if err := r.Acquire(); err != nil {
		return nil, nil, err
	}
	defer r.Release()
	var buf Buffer
	for i := range r.Blocks {
		list, err := r.Load(i, &buf)
		if IsDamage(err) {
			bad = append(bad, err)
			continue
		}
		if err != nil {
			return nil, bad, err
		}
		for _, e := range list {
			e.Body = slices.Clone(e.Body)
			events[r.Blocks[i].Bucket] = append(events[r.Blocks[i].Bucket], e)
		}
	}
	return events, bad, nil
}

func equal(a, b []Event) bool {
	return slices.EqualFunc(a, b, func(a, b Event) bool {
		return a.Time == b.Time && a.ID == b.ID && bytes.Equal(a.Body, b.Body)
	})
}

func TestAFileGivesBackWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs := vfs.NewMem()
		events := map[uint64][]Event{}
		for range rapid.IntRange(0, 3).Draw(t, "buckets") {
			events[rapid.Uint64().Draw(t, "bucket")] = genEvents(t)
		}
		lost := []LostRange{{Bucket: 5, First: 3, Last: 9, Events: 7}}
		meta := Meta{Buckets: []buckets.Info{
			{ID: 9, Name: "b", Resolution: 1000, PPF: 10, TTL: 5, Grace: 3, HPTS: true}}, Position: 77,
			Account: []byte("account"), Replaces: []uint64{1, 2}}
		write(t, fs, 12, events, lost, meta)
		r, damage, err := Open(fs, "f.evt", testFile(12))
		if err != nil || len(damage) > 0 {
			t.Fatal(damage, err)
		}
		if fmt.Sprint(r.Meta) != fmt.Sprint(meta) || !slices.Equal(r.Lost, lost) {
			t.Fatalf("%v %v", r.Meta, r.Lost)
		}
		got, bad, err := readAll(r)
		if err != nil || len(bad) > 0 || len(got) != len(events) {
			t.Fatal(len(got), bad, err)
		}
		for id := range events {
			if !equal(got[id], events[id]) {
				t.Fatalf("bucket %x: %v, want %v", id, got[id], events[id])
			}
		}
	})
}

// One bit anywhere is found; no event is given that was not written, and those of the other
// blocks are.
func TestOneFlippedBit(t *testing.T) {
	fs := vfs.NewMem()
	random := rand.New(rand.NewPCG(1, 2))
	events := make(map[uint64][]Event)
	for i := range 300 {
		e := Event{Time: int64(1 + i*7), Body: make([]byte, 1000)}
		e.ID[15] = byte(i)
		for j := range e.Body {
			e.Body[j] = byte(random.Uint32())
		}
		events[uint64(1+i/150)] = append(events[uint64(1+i/150)], e)
	}
	info := write(t, fs, 3, events, nil, Meta{})
	whole := filetest.Read(t, fs, "f.evt")
	most := int64(0)
	for _, b := range info.Blocks {
		most = max(most, b.Events)
	}
	for at := 0; at < len(whole); at += 1 + random.IntN(300) {
		data := slices.Clone(whole)
		data[at] ^= 1 << random.IntN(8)
		filetest.Write(t, fs, "f.evt", data)
		r, damage, err := Open(fs, "f.evt", testFile(3))
		if err != nil {
			t.Fatalf("byte %d: the file is lost: %v", at, err)
		}
		got, bad, err := readAll(r)
		if err != nil || len(bad)+len(damage) != 1 {
			t.Fatalf("byte %d: %v and %v are damaged, %v: want one", at, bad, damage, err)
		}
		n := 0
		for id, list := range got {
			n += len(list)
			for i := range list {
				if !slices.ContainsFunc(events[id], func(e Event) bool {
					return Compare(&e, &list[i]) == 0 && bytes.Equal(e.Body, list[i].Body)
				}) {
					t.Fatalf("byte %d: an event that was never written", at)
				}
			}
		}
		if n < 300-int(most) || len(bad) == 0 && n != 300 {
			t.Fatalf("byte %d: %d events are left", at, n)
		}
	}
}

// Every bit of a small file is covered, also in the copies that nothing needs. A flipped bit is
// damage of one place, the one that has it, and takes the events of one block at most.
func TestEveryFlippedBit(t *testing.T) {
	fs := vfs.NewMem()
	events := map[uint64][]Event{ // of one block each
		1: {{Time: 5, Body: []byte("a")}, {Time: 7, ID: ID{1}, Body: []byte("b")}},
		2: {{Time: 6}},
	}
	write(t, fs, 3, events, []LostRange{{Bucket: 2, First: 8, Last: 9, Events: 4}}, Meta{
		Buckets:  []buckets.Info{{ID: 1, Name: "b", Resolution: 1000, PPF: 10}},
		Position: 77,
		Account:  []byte("account"),
		Replaces: []uint64{1, 2},
	})
	whole := filetest.Read(t, fs, "f.evt")
	for bit := range 8 * len(whole) {
		at := int64(bit / 8)
		data := slices.Clone(whole)
		data[at] ^= 1 << (bit % 8)
		filetest.Write(t, fs, "f.evt", data)
		r, found, err := Open(fs, "f.evt", testFile(3))
		if err != nil {
			t.Fatalf("bit %d of byte %d: the file is lost: %v", bit%8, at, err)
		}
		got, bad, err := readAll(r)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, bad...)
		var d *DamageError
		if len(found) != 1 || !errors.As(found[0], &d) || at < d.Offset || at >= d.Offset+d.Length {
			t.Fatalf("bit %d of byte %d of %d: found %v, want one place that has it", bit%8, at,
				len(whole), found)
		}
		lost := 0
		for id, want := range events {
			if _, there := got[id]; !there {
				lost++
			} else if !equal(got[id], want) {
				t.Fatalf("bit %d of byte %d: bucket %d has %v, want %v", bit%8, at, id, got[id], want)
			}
		}
		if lost != len(bad) {
			t.Fatalf("bit %d of byte %d: %d blocks are lost, %v", bit%8, at, lost, bad)
		}
	}
}

// A block of another file or of another place is damage, though its checksum is that of its bytes.
func TestABlockInTheWrongPlaceIsDamage(t *testing.T) {
	fs := vfs.NewMem()
	events := map[uint64][]Event{1: {{Time: 5, Body: []byte("a")}}}
	write(t, fs, 3, events, nil, Meta{})
	if _, _, err := Open(fs, "f.evt", testFile(4)); !IsDamage(err) {
		t.Fatalf("a file of another number: %v", err)
	}
}

func TestACutFileIsDamage(t *testing.T) {
	fs := vfs.NewMem()
	write(t, fs, 3, map[uint64][]Event{1: {{Time: 5, Body: []byte("a")}}}, nil, Meta{})
	whole := filetest.Read(t, fs, "f.evt")
	for n := range whole {
		filetest.Write(t, fs, "f.evt", whole[:n])
		if _, _, err := Open(fs, "f.evt", testFile(3)); !IsDamage(err) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

func TestAnotherVersionIsRefusedByName(t *testing.T) {
	fs := vfs.NewMem()
	write(t, fs, 3, nil, nil, Meta{})
	whole := filetest.Read(t, fs, "f.evt")
	whole[8] = version + 1
	sum := crcOf(whole[:headerSize-4])
	copy(whole[headerSize-4:], sum[:])
	filetest.Write(t, fs, "f.evt", whole)
	if _, _, err := Open(fs, "f.evt", testFile(3)); !errors.Is(err, ErrFormat) {
		t.Fatal(err)
	}
}

func TestLargeBodiesFitTheirBlocks(t *testing.T) {
	fs := vfs.NewMem()
	var list []Event
	for i := range 3 {
		for j := range blockEvents - 1 {
			list = append(list, Event{Time: int64(1 + i), ID: ID{0: byte(j >> 8), 1: byte(j)},
				Body: make([]byte, 15)})
		}
		list = append(list, Event{Time: int64(1 + i), ID: ID{0: 255, 1: byte(i)},
			Body: make([]byte, MaxBody)})
	}
	write(t, fs, 1, map[uint64][]Event{1: list}, nil, Meta{})
	r, _, err := Open(fs, "f.evt", testFile(1))
	if err != nil {
		t.Fatal(err)
	}
	if got, bad, err := readAll(r); err != nil || len(bad) > 0 || !equal(got[1], list) {
		t.Fatal(bad, err)
	}
}

func FuzzParseKeys(f *testing.F) {
	f.Add(AppendKeys(nil, []Event{{Time: 5}, {Time: 9, ID: ID{1}}, {Time: 7, ID: ID{1, 15: 3}}}))
	f.Fuzz(func(t *testing.T, src []byte) {
		list, _, err := ParseKeys(nil, src, 1000)
		if err != nil {
			return
		}
		again, rest, err := ParseKeys(nil, AppendKeys(nil, list), 1000)
		if err != nil || len(rest) > 0 || !equal(list, again) {
			t.Fatalf("%v becomes %v, %v", list, again, err)
		}
	})
}

func FuzzParseBodies(f *testing.F) {
	f.Add(2, []byte("\x01\x02abb"))
	f.Fuzz(func(t *testing.T, n int, src []byte) {
		list := make([]Event, uint(n)%100)
		if ParseBodies(list, src) == nil && len(AppendBodies(nil, list)) > len(src) {
			t.Fatal("more came out than went in")
		}
	})
}

func FuzzParseIndex(f *testing.F) {
	m := Meta{Buckets: []buckets.Info{{ID: 9, Name: "b", Resolution: 1000, PPF: 10}}, Position: 7,
		Account: []byte("a"), Replaces: []uint64{4}}
	f.Add(appendIndex(nil, []Block{{Bucket: 1, First: 4, Last: 9, Events: 3, keys: 10, bodies: 20},
		{Bucket: 2, First: 4, Last: 9, Events: 3, keys: 5, bodies: 5}},
		[]LostRange{{1, 2, 3, 4}}, &m), int64(40))
	f.Fuzz(func(t *testing.T, src []byte, bytes int64) {
		blocks, lost, m, err := parseIndex(src, 0, bytes)
		if err != nil {
			return
		}
		if _, _, _, err := parseIndex(appendIndex(nil, blocks, lost, &m), 0, bytes); err != nil {
			t.Fatal(err)
		}
	})
}

func crcOf(b []byte) (sum [4]byte) {
	binary.LittleEndian.PutUint32(sum[:], crc32.Checksum(b, castagnoli))
	return sum
}
