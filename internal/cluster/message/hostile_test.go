package message

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/cluster/replication"
)

// A frame and a change that end early, or go on, are refused at every length, and change nothing.
func TestTruncation(t *testing.T) {
	here := newWorld(12)
	rapid.Check(t, func(t *rapid.T) {
		g := generator{t, here}
		frame, err := here.encoder(1).Append(nil, g.any())
		if err != nil {
			t.Fatal(err)
		}
		there := emptyWorld()
		d := NewDecoder(there.Registry)
		for n := range len(frame) {
			if m, news, err := d.Decode(frame[:n]); !errors.Is(err, ErrMalformed) || m != nil ||
				news != nil {
				t.Fatalf("%d of %d bytes: %v, %v", n, len(frame), m, err)
			}
		}
		if _, _, err := d.Decode(append(bytes.Clone(frame), 0)); !errors.Is(err, ErrMalformed) {
			t.Fatalf("a byte too many: %v", err)
		}
		if there.Bytes() != 0 || d.epoch != (epoch{}) || d.buckets != nil || *d.known != (pages{}) {
			t.Fatal("a frame that was refused left something")
		}
		changes := NewChanges(here.Registry)
		src, err := changes.Append(nil, g.change())
		if err != nil {
			t.Fatal(err)
		}
		for n := range len(src) {
			if c, err := NewChanges(there.Registry).Read(src[:n]); !errors.Is(err, ErrMalformed) ||
				!reflect.DeepEqual(c, replication.Change{}) {
				t.Fatalf("%d of %d bytes: %v, %v", n, len(src), c, err)
			}
		}
		if there.Bytes() != 0 {
			t.Fatal("a change that was refused left something")
		}
	})
}

// allocated returns the bytes that a call allocates.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Whatever a frame says of how much follows: it is not believed beyond what is there.
func TestHostileCounts(t *testing.T) {
	var frames [][]byte
	for kind := byte(0); kind <= kindAskKeeps+1; kind++ {
		for zeros := range 120 {
			for _, count := range []uint64{1 << 10, 1 << 20, 1 << 32, 1 << 62, 1<<64 - 1} {
				frame := append([]byte{version, kind}, make([]byte, zeros)...)
				frames = append(frames, append(binary.AppendUvarint(frame, count), make([]byte, 100)...))
			}
		}
	}
	for _, frame := range frames {
		there := emptyWorld()
		d := NewDecoder(there.Registry)
		if n := allocated(func() { _, _, _ = d.Decode(frame) }); n > 32<<10 {
			t.Errorf("% x: %d bytes were allocated", frame[:8], n)
		}
		if n := allocated(func() { _, _ = NewChanges(there.Registry).Read(frame) }); n > 32<<10 {
			t.Errorf("% x: %d bytes were allocated for a change", frame[:8], n)
		}
	}
}

// Each form of a run that says the same in another way is refused, and so is each that says
// nothing.
func TestRunsHaveOneForm(t *testing.T) {
	w := newWorld(3)
	word := make([]byte, 8)
	read := func(rows int, parts ...any) ([]replication.Row, bool) {
		src := binary.AppendUvarint(nil, uint64(rows))
		for _, p := range parts {
			switch p := p.(type) {
			case int:
				src = binary.AppendUvarint(src, uint64(p))
			case []byte:
				src = append(src, p...)
			}
		}
		r := reader{}
		r.Src = src
		for _, id := range w.series {
			r.fresh = append(r.fresh, definition{id: id})
		}
		rows0 := r.rows()
		return rows0, r.IsDone()
	}
	two := append(bytes.Clone(word), word...)
	for i, c := range []struct {
		ok    bool
		rows  int
		parts []any
	}{
		{true, 1, []any{0, word}},
		{true, 2, []any{otherCount, 2, two}},
		{true, 2, []any{0, word, nextSeries, word}},
		{true, 2, []any{0, word, sameSeries, word}},
		{false, 2, []any{0, word, sameSeries | otherSlot, 2, word}},         // the slots are consecutive
		{false, 1, []any{otherSeries, 0, word}},                             // the next one
		{false, 2, []any{0, word, otherSeries, 0, word}},                    // the same one
		{true, 2, []any{0, word, otherSeries, 2, word}},                     //
		{false, 1, []any{otherSeries, 3, word}},                             // nobody knows it
		{false, 1, []any{otherIncarnation, 0, word}},                        // as before
		{false, 1, []any{otherSlot, 0, word}},                               // as before
		{false, 1, []any{otherCount, 1, word}},                              // as before
		{false, 1, []any{otherCount, 0, word}},                              // none
		{false, 1, []any{otherCount, 2, two}},                               // more than there are
		{false, 1, []any{withTimes, word, word}},                            // there is no timestamp
		{false, 1, []any{1 << 6, word}},                                     // no such bit
		{false, 1, []any{3, word}},                                          // no such series
		{false, 2, []any{otherSlot | otherCount, 1, 2, two}},                // slot 1<<64 - 1 is the last
		{false, 1, []any{otherIncarnation, []byte{0x87, 0}, word}},          // a number of two forms
		{false, 3, []any{0, word, nextSeries, word, nextSeries, []byte{1}}}, // it ends early
	} {
		if rows, ok := read(c.rows, c.parts...); ok != c.ok {
			t.Errorf("case %d: %v, rows %v", i, ok, rows)
		}
	}
}

// What is decoded is bounded by the frame: 48 bytes a row of 8.
func TestDecodedBytesFollowTheFrame(t *testing.T) {
	here, there := newWorld(1), emptyWorld()
	var m replication.Deliver
	for i := range replication.MaxRows {
		m.Change.Rows = append(m.Change.Rows, replication.Row{Series: here.series[0], Slot: uint64(i),
			Value: replication.Value{Word: 1}})
	}
	frame, err := here.encoder(1).Append(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	d := NewDecoder(there.Registry)
	if n := allocated(func() { _, _, err = d.Decode(frame) }); err != nil || n > uint64(8*len(frame)) {
		t.Errorf("%d bytes for a frame of %d, %v", n, len(frame), err)
	}
}

// fuzzBoot is one that no damaged frame has by chance.
const fuzzBoot = 0xfeedfacecafebeef

// FuzzDecode gives frames, good and damaged ones, to a decoder. Each part of the input is a frame
// behind its length; an empty one stands for a good one.
func FuzzDecode(f *testing.F) {
	here := newWorld(6)
	var seed []byte
	for i, m := range examples(here) {
		frame, err := here.encoder(uint64(i/4)).Append(nil, m)
		if err != nil {
			f.Fatal(err)
		}
		one := append(binary.AppendUvarint(nil, uint64(len(frame))), frame...)
		f.Add(one)
		if seed = append(seed, one...); i%3 == 0 {
			seed = append(seed, 0)
		}
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, src []byte) {
		there := emptyWorld()
		d, e := NewDecoder(there.Registry), here.encoder(fuzzBoot)
		good := 0
		for len(src) > 0 {
			n, used := binary.Uvarint(src)
			if used <= 0 {
				return
			}
			frame := src[used:]
			frame = frame[:min(n, uint64(len(frame)))]
			src = src[used+len(frame):]
			if n > 0 {
				mustDecodeToItself(t, d, there, frame)
				continue
			}
			m := fillOf(here.series[good%6])
			good++
			b, err := e.Append(nil, m)
			if err != nil {
				t.Fatal(err)
			}
			e.ConfirmSent(true)
			got, _, err := d.Decode(b)
			switch {
			case errors.Is(err, ErrRenew):
				e.Renew()
			case err != nil:
				t.Fatal(err)
			case d.epoch.boot == fuzzBoot && !equal(got, m):
				t.Fatalf("got %+v, want %+v", got, m)
			}
		}
	})
}

// mustDecodeToItself decodes a frame that may be damaged. If it is none, what it says is encoded
// and decoded again.
func mustDecodeToItself(t *testing.T, d *Decoder, w *world, frame []byte) {
	m, news, err := d.Decode(frame)
	if err != nil {
		if m != nil || news != nil {
			t.Fatalf("%v and %v with %v", m, news, err)
		}
		return
	}
	for _, b := range news {
		w.buckets[b.ID()] = b
	}
	again, err := NewEncoder(w.Registry, w.bucketOf, 1, 1<<30).Append(nil, m)
	if err != nil {
		t.Fatalf("%+v: %v", m, err)
	}
	got, _, err := NewDecoder(emptyWorld().Registry).Decode(again)
	if err != nil || !equal(got, m) {
		t.Fatalf("got %+v, %v, want %+v", got, err, m)
	}
}

// FuzzChange: what is read from disk is what is written from it.
func FuzzChange(f *testing.F) {
	here := newWorld(6)
	for _, m := range examples(here) {
		if w, ok := m.(replication.Write); ok {
			src, err := NewChanges(here.Registry).Append(nil, w.Change)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(src)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		c := NewChanges(emptyWorld().Registry)
		of, err := c.Read(src)
		if err != nil {
			return
		}
		again, err := c.Append(nil, of)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Read(again); err != nil || !equal(got, of) {
			t.Fatalf("got %+v, %v, want %+v", got, err, of)
		}
	})
}

// examples are a message of each kind, always the same.
func examples(w *world) (list []replication.Message) {
	g := rapid.Custom(func(t *rapid.T) []replication.Message {
		list := make([]replication.Message, 0, kindAskKeeps)
		for kind := kindWrite; kind <= kindAskKeeps; kind++ {
			list = append(list, generator{t, w}.message(kind))
		}
		return list
	})
	for seed := range 4 {
		list = append(list, g.Example(seed)...)
	}
	return list
}
