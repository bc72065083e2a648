package remotewrite

import (
	"errors"
	"math"
	"slices"

	"dalmatiner/internal/ingest/histogram"
	"dalmatiner/internal/ingest/protobuf"
)

// native is a native histogram as both versions of the protocol have it.
type native struct {
	count, zeroCount   float64
	sum, zeroThreshold float64
	schema             int32
	negative, positive side
	custom             []float64 // upper bounds of customSchema
	ms                 int64
}

// side is the buckets of one sign: spans of consecutive ones, with differences or counts.
type side struct {
	spans  []span
	deltas []int64
	counts []float64
}

type span struct {
	offset int32 // from the end of the span before; of the first from 0
	length uint32
}

const (
	customSchema = -53
	minSchema    = -4
	maxSchema    = 8
)

var (
	errSchema  = errors.New("a native histogram of an unknown schema")
	errBuckets = errors.New("a native histogram whose spans and counts do not agree, or with more " +
		"than 1000 buckets")
)

func (h *native) reset() {
	*h = native{custom: h.custom[:0], negative: h.negative.empty(), positive: h.positive.empty()}
}

func (b side) empty() side {
	return side{b.spans[:0], b.deltas[:0], b.counts[:0]}
}

// parse reads a Histogram, which is the same in both versions.
func (h *native) parse(msg []byte) error {
	h.reset()
	return protobuf.Each(msg, func(f *protobuf.Field) error {
		switch f.Key() {
		case protobuf.VarintKey(1):
			h.count = float64(f.Value)
		case protobuf.Fixed64Key(2):
			h.count = f.Float()
		case protobuf.Fixed64Key(3):
			h.sum = f.Float()
		case protobuf.VarintKey(4):
			h.schema = int32(f.Zigzag())
		case protobuf.Fixed64Key(5):
			h.zeroThreshold = f.Float()
		case protobuf.VarintKey(6):
			h.zeroCount = float64(f.Value)
		case protobuf.Fixed64Key(7):
			h.zeroCount = f.Float()
		case protobuf.VarintKey(15):
			h.ms = int64(f.Value)
		}
		switch f.Number { // packed or not
		case 8, 9, 10:
			return h.negative.parse(f, f.Number-8)
		case 11, 12, 13:
			return h.positive.parse(f, f.Number-11)
		case 16:
			return protobuf.PackedFloats(f, func(v float64) { h.custom = append(h.custom, v) })
		}
		return nil
	})
}

// parse reads a field of the buckets of one sign: 0 is a span, 1 differences, 2 counts.
func (b *side) parse(f *protobuf.Field, which int) error {
	switch which {
	case 0:
		var s span
		err := protobuf.Each(f.Data, func(f *protobuf.Field) error {
			switch f.Key() {
			case protobuf.VarintKey(1):
				s.offset = int32(f.Zigzag())
			case protobuf.VarintKey(2):
				s.length = uint32(f.Value)
			}
			return nil
		})
		b.spans = append(b.spans, s)
		return err
	case 1:
		return protobuf.Packed(f, func(v uint64) { b.deltas = append(b.deltas, protobuf.Unzigzag(v)) })
	}
	return protobuf.PackedFloats(f, func(v float64) { b.counts = append(b.counts, v) })
}

// list returns the buckets in the order of their index, with the bounds that the schema has.
func (b *side) list(h *native) ([]histogram.Bucket, error) {
	n := 0
	for _, s := range b.spans {
		n += int(min(s.length, histogram.MaxBuckets+1))
		if n > histogram.MaxBuckets {
			return nil, errBuckets
		}
	}
	if n != max(len(b.deltas), len(b.counts)) || len(b.deltas) > 0 && len(b.counts) > 0 {
		return nil, errBuckets
	}
	out := make([]histogram.Bucket, 0, n)
	index, sum := int64(0), int64(0)
	for i, s := range b.spans {
		if i > 0 && s.offset < 0 {
			return nil, errBuckets
		}
		index += int64(s.offset)
		for range s.length {
			var c float64
			if len(b.counts) > 0 {
				c = b.counts[len(out)]
			} else {
				sum += b.deltas[len(out)]
				c = float64(sum)
			}
			lower, upper, err := h.bounds(index)
			if err != nil {
				return nil, err
			}
			out = append(out, histogram.Bucket{Lower: lower, Upper: upper, Count: c})
			index++
		}
	}
	return out, nil
}

// bounds returns the bounds of the bucket of an index. That of an exponential schema s has the
// values above 2^((i-1)/2^s) and up to 2^(i/2^s), of a custom one those above the bound before.
func (h *native) bounds(i int64) (lower, upper float64, err error) {
	switch {
	case h.schema == customSchema:
		if i < 0 || i > int64(len(h.custom)) {
			return 0, 0, errBuckets
		}
		lower, upper = math.Inf(-1), math.Inf(1)
		if i > 0 {
			lower = h.custom[i-1]
		}
		if i < int64(len(h.custom)) {
			upper = h.custom[i]
		}
		return lower, upper, nil
	case h.schema < minSchema || h.schema > maxSchema:
		return 0, 0, errSchema
	}
	return histogram.Exponential(i-1, h.schema), histogram.Exponential(i, h.schema), nil
}

// classic returns the cumulative counts of the classic form of a histogram.
func (h *native) classic() ([]histogram.Boundary, error) {
	negative, err := h.negative.list(h)
	if err != nil {
		return nil, err
	}
	positive, err := h.positive.list(h)
	if err != nil {
		return nil, err
	}
	all := make([]histogram.Bucket, 0, len(negative)+len(positive)+1)
	for _, b := range slices.Backward(negative) {
		all = append(all, b.Negative())
	}
	if h.schema != customSchema && (h.zeroCount != 0 || h.zeroThreshold != 0) {
		all = append(all, histogram.Zero(h.zeroThreshold, h.zeroCount))
	}
	all = append(all, positive...)
	return histogram.Classic(nil, all, h.count), nil
}
