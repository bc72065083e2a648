package otlp

import (
	"encoding/binary"
	"math"
	"slices"

	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/histogram"
	"dalmatiner/internal/ingest/labels"
	"dalmatiner/internal/ingest/protobuf"
)

// staleMarker is Prometheus' stale marker, which acked.Word knows.
var staleMarker = math.Float64frombits(acked.StaleNaN)

// fixed64s calls fn with every number of a repeated field of fixed64, packed or not.
func fixed64s(f *protobuf.Field, fn func(v uint64)) error {
	if f.Wire == protobuf.Fixed64 {
		fn(f.Value)
		return nil
	}
	if f.Wire != protobuf.Bytes || len(f.Data)%8 != 0 {
		return errMalformed
	}
	for data := f.Data; len(data) > 0; data = data[8:] {
		fn(binary.LittleEndian.Uint64(data))
	}
	return nil
}

// store stores a histogram as the series of a classic one.
func (d *decoder) store(ns int64, count, sum float64, list []histogram.Boundary,
	stale bool) error {
	if stale {
		count, sum = staleMarker, staleMarker
		list = []histogram.Boundary{{LE: math.Inf(1), Count: staleMarker}}
	}
	whole := histogram.Labelled{Name: d.name, Labels: d.list, Count: count, Sum: sum,
		Boundaries: list}
	return d.classic.Store(d.to.Appender, &whole, func(word uint64) { d.to.PointAt(ns, word) })
}

// explicit stores a HistogramDataPoint. A sum that is not sent, because values may be negative, is
// 0.
func (d *decoder) explicit(msg []byte, ns int64, stale bool) error {
	var (
		count  uint64
		sum    float64
		counts []uint64
		bounds []float64
	)
	err := protobuf.Each(msg, func(f *protobuf.Field) error {
		switch f.Key() {
		case protobuf.Fixed64Key(4):
			count = f.Value
		case protobuf.Fixed64Key(5):
			sum = f.Float()
		}
		switch f.Number {
		case 6:
			return fixed64s(f, func(v uint64) { counts = append(counts, v) })
		case 7:
			return protobuf.PackedFloats(f, func(v float64) { bounds = append(bounds, v) })
		}
		return nil
	})
	switch {
	case err != nil:
		return errMalformed
	case len(counts) > histogram.MaxBuckets || !slices.IsSorted(bounds),
		len(counts) != len(bounds)+1 && len(counts)+len(bounds) > 0:
		return errBounds
	}
	list := make([]histogram.Boundary, 0, len(counts)+1)
	total := uint64(0)
	for i, bound := range bounds {
		total += counts[i]
		list = append(list, histogram.Boundary{LE: bound, Count: float64(total)})
	}
	list = append(list, histogram.Boundary{LE: math.Inf(1), Count: float64(count)})
	return d.store(ns, float64(count), sum, list, stale)
}

// side is the buckets of one sign: of consecutive indexes from an offset on.
type side struct {
	offset int64
	counts []uint64
}

func (s *side) parse(msg []byte) error {
	return protobuf.Each(msg, func(f *protobuf.Field) error {
		if f.Key() == protobuf.VarintKey(1) {
			s.offset = f.Zigzag()
		}
		if f.Number == 2 {
			return protobuf.Packed(f, func(v uint64) { s.counts = append(s.counts, v) })
		}
		return nil
	})
}

// The scales that OpenTelemetry has.
const minScale, maxScale = -10, 20

// exponential stores an ExponentialHistogramDataPoint. The bucket of an index has the values above
// 2^(index/2^scale) and up to the next one. Buckets without a value become no series.
func (d *decoder) exponential(msg []byte, ns int64, stale bool) error {
	var (
		count, zeros       uint64
		sum, threshold     float64
		scale              int64
		positive, negative side
	)
	err := protobuf.Each(msg, func(f *protobuf.Field) error {
		switch f.Key() {
		case protobuf.Fixed64Key(4):
			count = f.Value
		case protobuf.Fixed64Key(5):
			sum = f.Float()
		case protobuf.VarintKey(6):
			scale = f.Zigzag()
		case protobuf.Fixed64Key(7):
			zeros = f.Value
		case protobuf.BytesKey(8):
			return positive.parse(f.Data)
		case protobuf.BytesKey(9):
			return negative.parse(f.Data)
		case protobuf.Fixed64Key(14):
			threshold = f.Float()
		}
		return nil
	})
	switch {
	case err != nil:
		return errMalformed
	case scale < minScale || scale > maxScale:
		return errScale
	case len(positive.counts)+len(negative.counts) > histogram.MaxBuckets:
		return errBounds
	}
	d.buckets = d.buckets[:0]
	for i, n := range slices.Backward(negative.counts) {
		if n > 0 {
			d.buckets = append(d.buckets, bucketOf(negative.offset+int64(i), int32(scale), n).Negative())
		}
	}
	if zeros > 0 || threshold > 0 {
		d.buckets = append(d.buckets, histogram.Zero(threshold, float64(zeros)))
	}
	for i, n := range positive.counts {
		if n > 0 {
			d.buckets = append(d.buckets, bucketOf(positive.offset+int64(i), int32(scale), n))
		}
	}
	return d.store(ns, float64(count), sum, histogram.Classic(nil, d.buckets, float64(count)), stale)
}

// bucketOf returns the bucket of an index.
func bucketOf(index int64, scale int32, n uint64) histogram.Bucket {
	return histogram.Bucket{Lower: histogram.Exponential(index, scale),
		Upper: histogram.Exponential(index+1, scale), Count: float64(n)}
}

// summary stores a SummaryDataPoint: name_count, name_sum, and the name itself for each quantile,
// with the label quantile.
func (d *decoder) summary(msg []byte, ns int64, stale bool) error {
	count, sum := 0.0, 0.0
	store := func(name []byte, list []labels.Label, v float64) error {
		if stale {
			v = staleMarker
		}
		if err := d.to.Series(list, name); err != nil {
			return err
		}
		d.to.PointAt(ns, acked.Word(v))
		return nil
	}
	var err error
	malformed := protobuf.Each(msg, func(f *protobuf.Field) error {
		switch f.Key() {
		case protobuf.Fixed64Key(4):
			count = float64(f.Value)
		case protobuf.Fixed64Key(5):
			sum = f.Float()
		case protobuf.BytesKey(6):
			quantile, value := 0.0, 0.0
			bad := protobuf.Each(f.Data, func(f *protobuf.Field) error {
				switch f.Key() {
				case protobuf.Fixed64Key(1):
					quantile = f.Float()
				case protobuf.Fixed64Key(2):
					value = f.Float()
				}
				return nil
			})
			if bad != nil {
				return bad
			}
			if err == nil {
				list := append(slices.Clone(d.list), labels.Label{Name: []byte("quantile"),
					Value: histogram.AppendBound(nil, quantile)})
				err = store(d.name, list, value)
			}
		}
		return nil
	})
	if malformed != nil {
		return errMalformed
	}
	for suffix, v := range map[string]float64{"_count": count, "_sum": sum} {
		if err == nil {
			err = store(slices.Concat(d.name, []byte(suffix)), slices.Clone(d.list), v)
		}
	}
	return err
}
