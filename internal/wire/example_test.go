package wire_test

import (
	"fmt"
	"log"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/wire"
)

// A request is a frame: its length, then its payload.
func Example() {
	payload, err := wire.AppendRequest(nil, &wire.Request{
		Op: wire.OpGet, Bucket: []byte("shop"), Key: []byte("\x03web"), Slot: 1_700_000_000, Count: 60,
	})
	if err != nil {
		log.Fatal(err)
	}
	sent := wire.AppendFrame(nil, payload)

	got, rest, err := wire.ParseFrame(sent, 1<<20)
	if err != nil {
		log.Fatal(err)
	}
	q, err := wire.ParseRequest(got)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s %q from %d, %d slots; %d bytes are left\n", q.Bucket, q.Key, q.Slot, q.Count,
		len(rest))
	// Output:
	// shop "\x03web" from 1700000000, 60 slots; 0 bytes are left
}

// printer prints what a stream brings.
type printer struct{ wire.PointByPoint }

func (printer) Point(key []byte, slot, raw uint64) {
	fmt.Printf("%q at %d: %d\n", key, slot, point.Int(raw))
}

func (printer) Points(key []byte, slot uint64, data []byte) {
	fmt.Printf("%q from %d: %d points\n", key, slot, len(data)/point.Size)
}

func (printer) Flush()              { fmt.Println("flush") }
func (printer) FlushAck(seq uint64) { fmt.Println("acknowledge as", seq) }

// A stream is cut anywhere on its way: the parser takes whole messages and says
// how many bytes to present again.
func ExampleStreamParser() {
	sent := wire.AppendEntry(nil, []byte("\x03web"), 7, point.FromInt(42))
	sent = wire.AppendEntry(sent, []byte("\x03web"), 8, point.FromInt(43), point.FromInt(44))
	sent = wire.AppendFlushAck(sent, 1)

	p := wire.NewStreamParser(&wire.Request{Op: wire.OpAckStream}, wire.MinStreamLimit)
	var buf []byte
	for _, piece := range [][]byte{sent[:30], sent[30:]} {
		buf = append(buf, piece...)
		n, err := p.Parse(buf, printer{}, printer{})
		if err != nil {
			log.Fatal(err)
		}
		buf = buf[n:]
	}
	fmt.Println(len(buf), "bytes are left")
	// Output:
	// "\x03web" at 7: 42
	// "\x03web" from 8: 2 points
	// acknowledge as 1
	// 0 bytes are left
}
