package remotewrite

import (
	"dalmatiner/internal/ingest/histogram"
	"dalmatiner/internal/ingest/protobuf"
)

// native is a native histogram as both versions of the protocol have it.
type native struct {
	histogram.Native
	ms int64
}

// parse reads a Histogram, which is the same in both versions.
func (h *native) parse(msg []byte) error {
	h.Reset()
	h.ms = 0
	return protobuf.Each(msg, func(f *protobuf.Field) error {
		switch f.Key() {
		case protobuf.VarintKey(1):
			h.Count = float64(f.Value)
		case protobuf.Fixed64Key(2):
			h.Count = f.Float()
		case protobuf.Fixed64Key(3):
			h.Sum = f.Float()
		case protobuf.VarintKey(4):
			h.Schema = int32(f.Zigzag())
		case protobuf.Fixed64Key(5):
			h.ZeroThreshold = f.Float()
		case protobuf.VarintKey(6):
			h.ZeroCount = float64(f.Value)
		case protobuf.Fixed64Key(7):
			h.ZeroCount = f.Float()
		case protobuf.VarintKey(15):
			h.ms = int64(f.Value)
		}
		switch f.Number { // packed or not
		case 8, 9, 10:
			return parseSide(&h.Negative, f, f.Number-8)
		case 11, 12, 13:
			return parseSide(&h.Positive, f, f.Number-11)
		case 16:
			return protobuf.PackedFloats(f, func(v float64) { h.Custom = append(h.Custom, v) })
		}
		return nil
	})
}

// parseSide reads a field of the buckets of one sign: 0 is a span, 1 differences, 2 counts.
func parseSide(b *histogram.Side, f *protobuf.Field, which int) error {
	switch which {
	case 0:
		var s histogram.Span
		err := protobuf.Each(f.Data, func(f *protobuf.Field) error {
			switch f.Key() {
			case protobuf.VarintKey(1):
				s.Offset = int32(f.Zigzag())
			case protobuf.VarintKey(2):
				s.Length = uint32(f.Value)
			}
			return nil
		})
		b.Spans = append(b.Spans, s)
		return err
	case 1:
		return protobuf.Packed(f, func(v uint64) { b.Deltas = append(b.Deltas, protobuf.Unzigzag(v)) })
	}
	return protobuf.PackedFloats(f, func(v float64) { b.Counts = append(b.Counts, v) })
}
