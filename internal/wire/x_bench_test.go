package wire

import (
	"fmt"
	"testing"

	"dalmatiner/internal/codec/point"
)

// countingSink does as little as a sink can.
type countingSink struct {
	PointByPoint
	points int
	sum    uint64
}

func (s *countingSink) Point(key []byte, slot, raw uint64) { s.points++; s.sum += raw }

func (s *countingSink) Points(key []byte, slot uint64, data []byte) {
	s.points += len(data) / point.Size
}
func (s *countingSink) Flush()              {}
func (s *countingSink) FlushAck(seq uint64) {}

const benchPoints = 5000

func benchStream(b *testing.B, stream []byte) {
	p := NewStreamParser(&Request{Op: OpStream}, MinStreamLimit)
	sink := &countingSink{}
	b.ReportAllocs()
	b.SetBytes(int64(len(stream)))
	for b.Loop() {
		if n, err := p.Parse(stream, sink, sink); n != len(stream) || err != nil {
			b.Fatal(n, err)
		}
	}
	if sink.points != b.N*benchPoints {
		b.Fatalf("%d points in %d rounds", sink.points, b.N)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(sink.points), "ns/point")
}

func benchKey(i int) []byte { return fmt.Appendf(nil, "\x05agent\x06%6d\x07metrics\x06%6d", 3, i) }

func BenchmarkStreamBatch(b *testing.B) {
	stream := AppendBatchStart(nil, 1500000000)
	for i := range benchPoints {
		stream = AppendBatchPoint(stream, benchKey(i), point.FromInt(int64(i)))
	}
	benchStream(b, AppendBatchEnd(stream))
}

func BenchmarkStreamEntries(b *testing.B) {
	var stream []byte
	for i := range benchPoints {
		stream = AppendEntry(stream, benchKey(i), 1500000000, point.FromInt(int64(i)))
	}
	benchStream(b, stream)
}

func BenchmarkGetEncode(b *testing.B) {
	words := make([]uint64, 3600)
	for i := range words {
		words[i] = point.FromInt(int64(i * i % 1000))
	}
	var e GetEncoder
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = e.AppendData(dst[:0], words)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(words)), "ns/point")
}
