package wire

import (
	"encoding/binary"
	"testing"

	"dalmatiner/internal/codec/point"
)

// offers is a Sink that notes what it is offered to take by itself.
type offers struct {
	entries, batches, points int
}

func (o *offers) Point([]byte, uint64, uint64)  { o.points++ }
func (o *offers) Points([]byte, uint64, []byte) { o.points++ }
func (o *offers) Batch(uint64, []byte) int      { o.batches++; return 0 }
func (o *offers) Entries(uint64, []byte) int    { o.entries++; return 0 }
func (o *offers) Flush()                        {}
func (o *offers) FlushAck(uint64)               {}

// A sink is offered the entries and batches of a plain stream, and nothing of one
// with timestamps, whose points have another width.
func TestOnlyPlainStreamsAreOffered(t *testing.T) {
	for _, hpts := range []bool{false, true} {
		p := NewStreamParser(&Request{Op: OpStream2, HPTS: hpts}, 1<<20)
		data := make([]byte, point.Size)
		if hpts {
			data = make([]byte, 2*point.Size)
		}
		src := binary.BigEndian.AppendUint64([]byte{byte(OpEntry)}, 7)
		src = appendB16(src, []byte("\x01a"))
		src = append(binary.BigEndian.AppendUint32(src, uint32(len(data))), data...)
		src = binary.BigEndian.AppendUint64(append(src, byte(OpBatch)), 7)
		src = append(append(appendB16(src, []byte("\x01a")), data...), 0, 0)
		var o offers
		if n, err := p.Parse(src, &o, &o); n != len(src) || err != nil || p.inBatch || o.points != 2 {
			t.Fatalf("hpts %v: %d of %d bytes, %v, %+v", hpts, n, len(src), err, o)
		}
		if offered := o.entries > 0 && o.batches > 0; offered == hpts || hpts && o.entries+o.batches > 0 {
			t.Errorf("hpts %v: %+v", hpts, o)
		}
	}
}

// The begin of a batch is taken as soon as it is whole, and not a byte earlier.
func TestABatchBeginsWithItsHead(t *testing.T) {
	head := binary.BigEndian.AppendUint64([]byte{byte(OpBatch)}, 7)
	for n := range len(head) + 1 {
		p := NewStreamParser(&Request{Op: OpStream}, 1<<20)
		got, err := p.Parse(head[:n], &offers{}, &offers{})
		if whole := n == len(head); err != nil || p.inBatch != whole || whole != (got == n) && n > 0 ||
			!whole && got != 0 {
			t.Errorf("%d bytes: %d taken, in a batch %v, %v", n, got, p.inBatch, err)
		}
	}
}

// Points with timestamps come back as they were sent; a slot without a point has no
// timestamp either, and no slots are no bytes.
func TestTimestampedDataComesBack(t *testing.T) {
	var e GetEncoder
	var d Decoder
	if got := e.AppendTimestampedData(nil, nil, nil); len(got) != 1 {
		t.Errorf("no slots have %d bytes", len(got))
	}
	words := []uint64{point.FromInt(1), point.Unset, point.FromInt(3), point.Unset}
	f, err := ParseGetFrame(e.AppendTimestampedData(nil, words, []uint64{10, 20, 30, 40}))
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.AppendTimestamped(nil, f, len(words))
	if err != nil || len(got) != len(words) {
		t.Fatalf("%d slots, %v", len(got), err)
	}
	for i, want := range []uint64{10, 0, 30, 0} {
		if got[i] != (Timestamped{Word: words[i], Time: want}) {
			t.Errorf("slot %d: %+v", i, got[i])
		}
	}
	name := string(make([]byte, 255))
	if h, err := ParseGetFrame(appendGetAggrHeader(nil, name, 2)); err != nil || len(h.Aggr) != 255 ||
		h.AggrCount != 2 {
		t.Errorf("the longest name of an aggregation: %+v, %v", h, err)
	}
}
