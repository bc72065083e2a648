package httpapi

import (
	"bufio"
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"dalmatiner/internal/query"
)

// The leading bytes of the msgpack format that results need.
const (
	mpNil     = 0xc0
	mpFalse   = 0xc2
	mpTrue    = 0xc3
	mpFloat64 = 0xcb
	mpInt64   = 0xd3
	mpStr32   = 0xdb
	mpArray32 = 0xdd
	mpMap32   = 0xdf
)

func mpString(dst []byte, s string) []byte {
	if len(s) < 32 {
		return append(append(dst, 0xa0|byte(len(s))), s...)
	}
	dst = binary.BigEndian.AppendUint32(append(dst, mpStr32), uint32(len(s)))
	return append(dst, s...)
}

func mpInt(dst []byte, v int64) []byte {
	if v >= 0 && v < 128 {
		return append(dst, byte(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, mpInt64), uint64(v))
}

func mpFloat(dst []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, mpFloat64), math.Float64bits(v))
}

func mpHead(dst []byte, kind byte, n int) []byte {
	return binary.BigEndian.AppendUint32(append(dst, kind), uint32(n))
}

// encodeMsgpack writes a result with the keys of the JSON form. Values are
// float64; NaN and the infinities, which JSON cannot have, are themselves.
func encodeMsgpack(w *bufio.Writer, r *query.Result) error {
	entries := 3
	if r.Plan != nil {
		entries++
	}
	buf := mpHead(w.AvailableBuffer(), mpMap32, entries)
	if r.Plan != nil {
		buf = mpString(mpString(buf, "plan_text"), r.Plan.String())
	}
	buf = mpInt(mpString(buf, "start"), r.Start)
	buf = mpInt(mpString(buf, "query_time"), r.QueryTime.Microseconds())
	buf = mpHead(mpString(buf, "results"), mpArray32, len(r.Series))
	for i := range r.Series {
		s := &r.Series[i]
		all := lists(s)
		buf = mpHead(buf, mpMap32, 5+len(all))
		buf = mpString(mpString(buf, "type"), "metrics")
		buf = mpString(mpString(buf, "name"), s.Name)
		buf = mpInt(mpString(buf, "resolution"), s.Resolution)
		buf = mpFloat(mpString(buf, "coverage"), s.Coverage)
		buf = mpMetadata(mpString(buf, "metadata"), s.Metadata)
		for _, list := range all {
			buf = mpHead(mpString(buf, list.name), mpArray32, len(list.values))
			for i, v := range list.values {
				if s.Confidence != nil && s.Confidence[i] == 0 {
					buf = append(buf, mpNil)
				} else {
					buf = mpFloat(buf, v)
				}
				if len(buf) >= pieceSize {
					var err error
					if buf, err = encoded(w, buf); err != nil {
						return err
					}
				}
			}
		}
	}
	_, err := w.Write(buf)
	return err
}

func mpMetadata(dst []byte, metadata map[string]any) []byte {
	dst = mpHead(dst, mpMap32, len(metadata))
	for _, k := range slices.Sorted(maps.Keys(metadata)) {
		dst = mpString(dst, validText(k))
		switch v := metadata[k].(type) {
		case string:
			dst = mpString(dst, validText(v))
		case float64:
			dst = mpFloat(dst, v)
		default:
			dst = append(dst, mpNil)
		}
	}
	return dst
}

// mpValue appends what encoding/json makes of a JSON text. Whole numbers are
// integers.
func mpValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return mpString(dst, v)
	case float64:
		if n := int64(v); float64(n) == v && math.Abs(v) < 1<<53 {
			return mpInt(dst, n)
		}
		return mpFloat(dst, v)
	case bool:
		if v {
			return append(dst, mpTrue)
		}
		return append(dst, mpFalse)
	case []any:
		dst = mpHead(dst, mpArray32, len(v))
		for _, e := range v {
			dst = mpValue(dst, e)
		}
		return dst
	case map[string]any:
		dst = mpHead(dst, mpMap32, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			dst = mpValue(mpString(dst, k), v[k])
		}
		return dst
	}
	return append(dst, mpNil)
}
