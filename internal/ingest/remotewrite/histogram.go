package remotewrite

import (
	"errors"
	"math"
	"strconv"
)

// histogram is a native histogram as both versions of the protocol have it.
type histogram struct {
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

	// maxBuckets bounds the series that one histogram becomes.
	maxBuckets = 1000
)

var (
	errSchema  = errors.New("a native histogram of an unknown schema")
	errBuckets = errors.New("a native histogram whose spans and counts do not agree, or with more " +
		"than 1000 buckets")
)

func (h *histogram) reset() {
	*h = histogram{custom: h.custom[:0], negative: h.negative.empty(), positive: h.positive.empty()}
}

func (b side) empty() side {
	return side{b.spans[:0], b.deltas[:0], b.counts[:0]}
}

// parse reads a Histogram, which is the same in both versions.
func (h *histogram) parse(msg []byte) error {
	h.reset()
	return fields(msg, func(f *field) error {
		switch f.key() {
		case varintField(1):
			h.count = float64(f.value)
		case floatField(2):
			h.count = f.float()
		case floatField(3):
			h.sum = f.float()
		case varintField(4):
			h.schema = int32(f.zigzag())
		case floatField(5):
			h.zeroThreshold = f.float()
		case varintField(6):
			h.zeroCount = float64(f.value)
		case floatField(7):
			h.zeroCount = f.float()
		case varintField(15):
			h.ms = int64(f.value)
		}
		switch f.number { // packed or not
		case 8, 9, 10:
			return h.negative.parse(f, f.number-8)
		case 11, 12, 13:
			return h.positive.parse(f, f.number-11)
		case 16:
			return packedFloats(f, func(v float64) { h.custom = append(h.custom, v) })
		}
		return nil
	})
}

// parse reads a field of the buckets of one sign: 0 is a span, 1 differences, 2 counts.
func (b *side) parse(f *field, which int) error {
	switch which {
	case 0:
		var s span
		err := fields(f.data, func(f *field) error {
			switch f.key() {
			case varintField(1):
				s.offset = int32(f.zigzag())
			case varintField(2):
				s.length = uint32(f.value)
			}
			return nil
		})
		b.spans = append(b.spans, s)
		return err
	case 1:
		return packed(f, func(v uint64) { b.deltas = append(b.deltas, unzigzag(v)) })
	}
	return packedFloats(f, func(v float64) { b.counts = append(b.counts, v) })
}

// bucket is one bucket: how many values it has, from lower to upper.
type bucket struct {
	lower, upper float64
	count        float64
}

// list returns the buckets in the order of their index, with the bounds that the schema has.
func (b *side) list(h *histogram) ([]bucket, error) {
	n := 0
	for _, s := range b.spans {
		n += int(min(s.length, maxBuckets+1))
		if n > maxBuckets {
			return nil, errBuckets
		}
	}
	if n != max(len(b.deltas), len(b.counts)) || len(b.deltas) > 0 && len(b.counts) > 0 {
		return nil, errBuckets
	}
	out := make([]bucket, 0, n)
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
			out = append(out, bucket{lower, upper, c})
			index++
		}
	}
	return out, nil
}

// bounds returns the bounds of the bucket of an index. That of an exponential schema s has the
// values above 2^((i-1)/2^s) and up to 2^(i/2^s), of a custom one those above the bound before.
func (h *histogram) bounds(i int64) (lower, upper float64, err error) {
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
	return exponential(i-1, h.schema), exponential(i, h.schema), nil
}

// exponential returns 2^(i/2^schema), at most the largest double: above it there is no value but
// the infinity, which has the next bucket.
func exponential(i int64, schema int32) float64 {
	if schema <= 0 {
		e := i << -schema
		if e > 1023 {
			return math.MaxFloat64
		}
		return math.Ldexp(1, int(max(e, -2000)))
	}
	whole, part := i>>schema, i&(1<<schema-1)
	if whole > 1023 {
		return math.MaxFloat64
	}
	return math.Ldexp(math.Exp2(float64(part)/float64(int64(1)<<schema)), int(max(whole, -2000)))
}

// boundary is a point of the classic form: how many values are at most le.
type boundary struct {
	le    float64
	count float64
}

// classic returns the cumulative counts of the classic form of a histogram, by rising le. The
// last one is that of +Inf. Between two neighbours that are apart, there is one with the count
// of the lower one: a reader would else spread the values over the gap.
func (h *histogram) classic() ([]boundary, error) {
	negative, err := h.negative.list(h)
	if err != nil {
		return nil, err
	}
	positive, err := h.positive.list(h)
	if err != nil {
		return nil, err
	}
	all := make([]bucket, 0, len(negative)+len(positive)+1)
	for i := len(negative) - 1; i >= 0; i-- {
		b := negative[i]
		all = append(all, bucket{-b.upper, -b.lower, b.count})
	}
	if h.schema != customSchema && (h.zeroCount != 0 || h.zeroThreshold != 0) {
		all = append(all, bucket{-h.zeroThreshold, h.zeroThreshold, h.zeroCount})
	}
	all = append(all, positive...)
	out := make([]boundary, 0, 2*len(all)+1)
	sum := 0.0
	for _, b := range all {
		apart := len(out) == 0 || out[len(out)-1].le < b.lower
		if apart && b.lower < b.upper && !math.IsInf(b.lower, -1) {
			out = append(out, boundary{b.lower, sum})
		}
		sum += b.count
		switch n := len(out); {
		case n > 0 && b.upper <= out[n-1].le:
			out[n-1].count = sum // a bucket within the one of zero
		case !math.IsInf(b.upper, 1):
			out = append(out, boundary{b.upper, sum})
		}
	}
	return append(out, boundary{math.Inf(1), h.count}), nil
}

// appendBound appends a bound as the label le has it.
func appendBound(dst []byte, le float64) []byte {
	if math.IsInf(le, 1) {
		return append(dst, "+Inf"...)
	}
	return strconv.AppendFloat(dst, le, 'g', -1, 64)
}
