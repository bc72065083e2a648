package httpapi

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
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

// encodeMsgpack writes a result with the keys of the JSON form. Values are float64, integers where
// those are not exact, nil for gaps; the infinities, which JSON cannot have, are themselves.
func encodeMsgpack(_ context.Context, w *bufio.Writer, r *query.Result) error {
	entries := 3
	if r.Plan != nil {
		entries++
	}
	if len(r.Missing) > 0 {
		entries++
	}
	if len(r.Unmatched) > 0 {
		entries++
	}
	if r.Older {
		entries++
	}
	buf := mpHead(w.AvailableBuffer(), mpMap32, entries)
	if r.Plan != nil {
		buf = mpString(mpString(buf, "plan_text"), r.Plan.String())
	}
	buf = mpInt(mpString(buf, "start"), r.Start)
	buf = mpInt(mpString(buf, "query_time"), r.QueryTime.Microseconds())
	if r.Older {
		buf = mpString(mpString(buf, "damaged"), "shown")
	}
	if len(r.Missing) > 0 {
		buf = mpMissing(mpString(buf, "missing"), r)
	}
	if len(r.Unmatched) > 0 {
		buf = mpUnmatched(mpString(buf, "unmatched"), r)
	}
	buf = mpHead(mpString(buf, "results"), mpArray32, len(r.Series)+len(r.Events))
	for i := range r.Series {
		s := &r.Series[i]
		all := lists(s)
		buf = mpHead(buf, mpMap32, 5+len(all)+aboutEntries(r, s))
		buf = mpString(mpString(buf, "type"), "metrics")
		buf = mpString(mpString(buf, "name"), s.Name)
		buf = mpInt(mpString(buf, "resolution"), s.Resolution)
		buf = mpFloat(mpString(buf, "coverage"), s.Coverage)
		buf = mpMetadata(mpString(buf, "metadata"), s.Metadata)
		buf = mpAbout(buf, r, s)
		for _, list := range all {
			var err error
			if buf, err = mpList(w, buf, r, s, list); err != nil {
				return err
			}
		}
	}
	for i := range r.Events {
		var err error
		if buf, err = mpEvents(w, buf, &r.Events[i]); err != nil {
			return err
		}
	}
	_, err := w.Write(buf)
	return err
}

// mpList appends a list of numbers of a series to buf, which it writes out in pieces.
func mpList(w *bufio.Writer, buf []byte, r *query.Result, s *query.Series,
	list namedList) ([]byte, error) {
	buf = mpHead(mpString(buf, list.name), mpArray32, len(list.values))
	exact := list.exact
	for i, v := range list.values {
		switch {
		case gap(r, s, i, v):
			buf = append(buf, mpNil)
		case len(exact) > 0 && exact[0].At == i:
			buf = mpInt(buf, exact[0].Int)
			exact = exact[1:]
		default:
			buf = mpFloat(buf, v)
		}
		if len(buf) >= pieceSize {
			var err error
			if buf, err = encoded(w, buf); err != nil {
				return nil, err
			}
		}
	}
	return buf, nil
}

// aboutEntries is how many keys mpAbout appends.
func aboutEntries(r *query.Result, s *query.Series) int {
	if r.Compat {
		return 0
	}
	n := 6
	if s.Points > 0 {
		n++
	}
	if r.Ended(s) {
		n++
	}
	if startsApart(r, s) {
		n++
	}
	if s.Times != nil {
		n++
	}
	if s.Unknown != nil {
		n++
	}
	return n
}

// mpAbout appends what our answers say of a series and the original's do not.
func mpAbout(dst []byte, r *query.Result, s *query.Series) []byte {
	if r.Compat {
		return dst
	}
	if startsApart(r, s) {
		dst = mpInt(mpString(dst, "start"), s.Start)
	}
	if s.Times != nil {
		dst = mpHead(mpString(dst, "times"), mpArray32, len(s.Times))
		for _, ms := range s.Times {
			dst = mpInt(dst, ms)
		}
	}
	dst = mpInt(mpString(dst, "points"), s.Points)
	if s.Points > 0 {
		dst = mpInt(mpString(dst, "last_point"), s.LastPoint)
	}
	if r.Ended(s) {
		dst = append(mpString(dst, "ended"), mpTrue)
	}
	dst = mpUnknown(dst, s.Unknown)
	dst = mpInt(mpString(dst, "bucket_resolution"), s.BucketResolution)
	dst = mpString(dst, "interval")
	if s.Interval > 0 {
		dst = mpInt(dst, s.Interval)
	} else {
		dst = append(dst, mpNil)
	}
	if s.Metric == nil {
		dst = append(mpString(dst, "bucket"), mpNil)
		dst = append(mpString(dst, "metric"), mpNil)
	} else {
		dst = mpString(mpString(dst, "bucket"), validText(s.Bucket))
		dst = mpStrings(mpString(dst, "metric"), partTexts(s.Metric))
	}
	return mpStrings(mpString(dst, "stars"), s.Stars)
}

// mpUnknown appends the slots of a series that damage took, if there are any.
func mpUnknown(dst []byte, h *query.Holes) []byte {
	if h == nil {
		return dst
	}
	entries := 3
	if h.More > 0 {
		entries++
	}
	dst = mpHead(mpString(dst, "unknown"), mpMap32, entries)
	dst = mpInt(mpString(dst, "slots"), h.Slots)
	dst = mpHead(mpString(dst, "ranges"), mpArray32, len(h.Ranges))
	for _, r := range h.Ranges {
		dst = mpInt(mpInt(mpHead(dst, mpArray32, 2), r[0]), r[1])
	}
	if h.More > 0 {
		dst = mpInt(mpString(dst, "more"), h.More)
	}
	return mpStrings(mpString(dst, "why"), h.Why)
}

// mpStrings appends a list of texts, each of which becomes UTF-8.
func mpStrings(dst []byte, list []string) []byte {
	dst = mpHead(dst, mpArray32, len(list))
	for _, text := range list {
		dst = mpString(dst, validText(text))
	}
	return dst
}

func mpMissing(dst []byte, r *query.Result) []byte {
	dst = mpHead(dst, mpArray32, len(r.Missing))
	for _, m := range r.Missing {
		dst = mpString(mpString(mpHead(dst, mpMap32, 4), "selector"), m.Selector)
		dst = mpInt(mpString(dst, "offset"), int64(m.Pos))
		dst = mpString(mpString(dst, "message"), m.Reason)
		dst = mpStrings(mpString(dst, "near"), m.Near)
	}
	return dst
}

func mpUnmatched(dst []byte, r *query.Result) []byte {
	dst = mpHead(dst, mpArray32, len(r.Unmatched))
	for _, u := range r.Unmatched {
		dst = mpString(mpString(mpHead(dst, mpMap32, 4), "selector"), u.Selector)
		dst = mpInt(mpString(dst, "offset"), int64(u.Pos))
		dst = mpStrings(mpString(dst, "series"), u.Series)
		dst = mpInt(mpString(dst, "more"), int64(u.More))
	}
	return dst
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
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return mpInt(dst, n)
		}
		f, _ := v.Float64() // ±Inf where it is beyond float64
		return mpFloat(dst, f)
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
