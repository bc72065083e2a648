package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query"
)

// encodeJSON writes a result as the original's frontend did, with the fields of
// DESIGN.md beside, such as "coverage".
func encodeJSON(ctx context.Context, w *bufio.Writer, r *query.Result) error {
	buf := append(w.AvailableBuffer(), `{"start":`...)
	buf = strconv.AppendInt(buf, r.Start, 10)
	buf = append(buf, `,"query_time":`...)
	buf = strconv.AppendInt(buf, r.QueryTime.Microseconds(), 10)
	buf = append(buf, `,"results":[`...)
	for i := range r.Series {
		if i > 0 {
			buf = append(buf, ',')
		}
		var err error
		if buf, err = encodeSeries(w, buf, r, &r.Series[i]); err != nil {
			return err
		}
	}
	for i := range r.Events {
		if i > 0 || len(r.Series) > 0 {
			buf = append(buf, ',')
		}
		var err error
		if buf, err = encodeEvents(ctx, w, buf, &r.Events[i]); err != nil {
			return err
		}
	}
	buf = append(buf, ']')
	if r.Older {
		buf = append(buf, `,"damaged":"shown"`...)
	}
	if len(r.Missing) > 0 {
		missing, err := json.Marshal(r.Missing)
		if err != nil {
			return fmt.Errorf("encoding what is missing: %w", err)
		}
		buf = append(append(buf, `,"missing":`...), missing...)
	}
	if len(r.Unmatched) > 0 {
		unmatched, err := json.Marshal(r.Unmatched)
		if err != nil {
			return fmt.Errorf("encoding what is unmatched: %w", err)
		}
		buf = append(append(buf, `,"unmatched":`...), unmatched...)
	}
	if r.Plan != nil {
		plan, err := json.Marshal(r.Plan)
		if err != nil {
			return fmt.Errorf("encoding the plan: %w", err)
		}
		buf = append(append(buf, `,"plan":`...), plan...)
		buf = appendString(append(buf, `,"plan_text":`...), r.Plan.String())
	}
	_, err := w.Write(append(buf, "}\n"...))
	return err
}

// encodeSeries appends one series to buf, which it writes out in pieces.
func encodeSeries(w *bufio.Writer, buf []byte, r *query.Result, s *query.Series) ([]byte, error) {
	buf = append(buf, `{"type":"metrics","name":`...)
	buf = appendString(buf, s.Name)
	buf = append(buf, `,"resolution":`...)
	buf = strconv.AppendInt(buf, s.Resolution, 10)
	if startsApart(r, s) {
		buf = strconv.AppendInt(append(buf, `,"start":`...), s.Start, 10)
	}
	if s.Times != nil {
		buf = appendInts(append(buf, `,"times":`...), s.Times)
	}
	for _, list := range lists(s) {
		exact := list.exact
		buf = append(append(append(buf, `,"`...), list.name...), `":[`...)
		for i, v := range list.values {
			if i > 0 {
				buf = append(buf, ',')
			}
			switch {
			case gap(r, s, i, v):
				buf = append(buf, "null"...)
			case len(exact) > 0 && exact[0].At == i:
				buf = strconv.AppendInt(buf, exact[0].Int, 10)
				exact = exact[1:]
			default:
				buf = appendFloat(buf, v)
			}
			if len(buf) >= pieceSize {
				var err error
				if buf, err = encoded(w, buf); err != nil {
					return nil, err
				}
			}
		}
		buf = append(buf, ']')
	}
	buf = append(buf, `,"coverage":`...)
	buf = appendFloat(buf, s.Coverage)
	if !r.Compat {
		buf = appendAbout(buf, r, s)
		buf = appendUnknown(buf, s.Unknown)
	}
	buf = append(buf, `,"metadata":`...)
	if len(s.Metadata) == 0 {
		return append(buf, "{}}"...), nil
	}
	metadata, err := json.Marshal(readable(s.Metadata))
	if err != nil {
		return buf, fmt.Errorf("metadata of %s: %w", s.Name, err)
	}
	buf = append(buf, metadata...)
	return append(buf, '}'), nil
}

// appendAbout appends what our answers say of a series and the original's do
// not.
func appendAbout(buf []byte, r *query.Result, s *query.Series) []byte {
	buf = strconv.AppendInt(append(buf, `,"points":`...), s.Points, 10)
	if s.Points > 0 {
		buf = strconv.AppendInt(append(buf, `,"last_point":`...), s.LastPoint, 10)
	}
	if r.Ended(s) {
		buf = append(buf, `,"ended":true`...)
	}
	buf = strconv.AppendInt(append(buf, `,"bucket_resolution":`...), s.BucketResolution, 10)
	buf = append(buf, `,"interval":`...)
	if s.Interval > 0 {
		buf = strconv.AppendInt(buf, s.Interval, 10)
	} else {
		buf = append(buf, "null"...)
	}
	if s.Metric == nil {
		buf = append(buf, `,"bucket":null,"metric":null`...)
	} else {
		buf = appendString(append(buf, `,"bucket":`...), s.Bucket)
		buf = appendStrings(append(buf, `,"metric":`...), partTexts(s.Metric))
	}
	return appendStrings(append(buf, `,"stars":`...), s.Stars)
}

// startsApart reports whether an answer says of a series when its values begin.
func startsApart(r *query.Result, s *query.Series) bool {
	return !r.Compat && (s.Min != nil || s.Start != r.Start)
}

// appendUnknown appends the slots of a series that damage took, if there are any.
func appendUnknown(buf []byte, h *query.Holes) []byte {
	if h == nil {
		return buf
	}
	buf = strconv.AppendInt(append(buf, `,"unknown":{"slots":`...), h.Slots, 10)
	buf = append(buf, `,"ranges":[`...)
	for i, r := range h.Ranges {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = strconv.AppendInt(append(buf, '['), r[0], 10)
		buf = append(strconv.AppendInt(append(buf, ','), r[1], 10), ']')
	}
	buf = append(buf, ']')
	if h.More > 0 {
		buf = strconv.AppendInt(append(buf, `,"more":`...), h.More, 10)
	}
	return append(appendStrings(append(buf, `,"why":`...), h.Why), '}')
}

func appendInts(buf []byte, list []int64) []byte {
	buf = append(buf, '[')
	for i, n := range list {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = strconv.AppendInt(buf, n, 10)
	}
	return append(buf, ']')
}

func appendStrings(buf []byte, list []string) []byte {
	buf = append(buf, '[')
	for i, text := range list {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = appendString(buf, text)
	}
	return append(buf, ']')
}

// partTexts returns the parts of a key as texts that are UTF-8; a key that is no
// list of parts is one.
func partTexts(key []byte) []string {
	parts, ok := metric.Parts(key)
	if !ok {
		text := metric.Text(key)
		return []string{text[1 : len(text)-1]}
	}
	list := make([]string, len(parts))
	for i, p := range parts {
		list[i] = validText(string(p))
	}
	return list
}

// gap reports whether value i of a series, v, goes out as null. Answers of the original tell
// gaps by their confidence, and only those who ask for it.
func gap(r *query.Result, s *query.Series, i int, v float64) bool {
	if r.Compat {
		return s.Confidence != nil && s.Confidence[i] == 0
	}
	return v != v
}

// lists returns the lists of numbers of a series by their keys.
func lists(s *query.Series) []namedList {
	if s.Min == nil {
		return []namedList{{"values", s.Values, s.Exact}}
	}
	return []namedList{{"values", s.Values, s.Exact}, {"min", s.Min, nil}, {"max", s.Max, nil}}
}

type namedList struct {
	name   string
	values []float64
	exact  []query.Exact
}

// readable returns metadata in which names of any bytes are escaped text, and
// NaN and the infinities null.
func readable(metadata map[string]any) map[string]any {
	out := make(map[string]any, len(metadata))
	for k, v := range metadata {
		switch x := v.(type) {
		case string:
			v = validText(x)
		case float64:
			if math.IsNaN(x) || math.IsInf(x, 0) {
				v = nil
			}
		}
		out[validText(k)] = v
	}
	return out
}
