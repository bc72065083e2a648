package wire

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"dalmatiner/internal/codec/point"
)

// vector is one line of testdata/vectors.txt.
type vector struct {
	number, kind string
	bytes        []byte
	text         string
}

func vectors(t testing.TB) []vector {
	t.Helper()
	f, err := os.Open("testdata/vectors.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []vector
	for sc := bufio.NewScanner(f); sc.Scan(); {
		line := sc.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		left, text, ok := strings.Cut(line, " = ")
		fields := strings.Fields(left)
		if !ok || len(fields) != 3 {
			t.Fatalf("vectors.txt: %q is not `number kind hex = text`", line)
		}
		b, err := hex.DecodeString(fields[2])
		if err != nil {
			t.Fatalf("vectors.txt: %q: %v", line, err)
		}
		out = append(out, vector{fields[0], fields[1], b, text})
	}
	return out
}

func TestVectors(t *testing.T) {
	codecs := map[string]func([]byte) (text string, again []byte, err error){
		"point": pointVector,
		"legacy": func(b []byte) (string, []byte, error) {
			s, _, err := pointVector(b)
			return s, b, err
		},
		"stamped": timestampedVector,
		"frame": func(b []byte) (string, []byte, error) {
			payload, rest, err := ParseFrame(b, 100)
			return hex.EncodeToString(payload), append(AppendFrame(nil, payload), rest...), err
		},
		"request": func(b []byte) (string, []byte, error) {
			q, err := ParseRequest(b)
			if err != nil {
				return "", nil, err
			}
			again, err := AppendRequest(nil, &q)
			return requestText(&q), again, err
		},
		"error": func(b []byte) (string, []byte, error) {
			msg, ok := ParseError(b)
			if !ok {
				return "", nil, fmt.Errorf("%x is no error", b)
			}
			return fmt.Sprintf("%q", msg), AppendError(nil, msg), nil
		},
		"names": namesVector,
		"info": func(b []byte) (string, []byte, error) {
			in, err := ParseInfo(b)
			return fmt.Sprintf("resolution %d ppf %d grace %d hpts %t ttl %d",
				in.Resolution, in.PointsPerFile, in.Grace, in.HPTS, in.TTL), AppendInfo(nil, in), err
		},
		"events": eventsVector,
		"get":    getVector,
		"getold": func(b []byte) (string, []byte, error) { s, _, err := getVector(b); return s, b, err },
		"getraw": func(b []byte) (string, []byte, error) { s, _, err := getVector(b); return s, b, err },
		"stream": func(b []byte) (string, []byte, error) { return streamVector(b, false, false) },
		"hbatch": func(b []byte) (string, []byte, error) { return streamVector(b, true, true) },
	}
	seen := map[string]bool{}
	for _, v := range vectors(t) {
		seen[v.number] = true
		text, again, err := codecs[v.kind](v.bytes)
		if err != nil || text != v.text {
			t.Errorf("vector %s %x:\n got %s, %v\nwant %s", v.number, v.bytes, text, err, v.text)
		}
		if !bytes.Equal(again, v.bytes) {
			t.Errorf("vector %s encoded again:\n got %x\nwant %x", v.number, again, v.bytes)
		}
	}
	for n := 1; n <= 57; n++ {
		if n != 18 && n != 19 && !seen[fmt.Sprint(n)] {
			t.Errorf("vector %d is missing", n)
		}
	}
}

func wordText(w uint64) string {
	switch point.KindOf(w) {
	case point.KindUnset:
		return "unset"
	case point.KindInt:
		return fmt.Sprintf("int %d", point.Int(w))
	}
	return fmt.Sprintf("float %v", point.Float(w))
}

func pointVector(b []byte) (string, []byte, error) {
	w, ok := point.Normalize(point.Get(b))
	if !ok {
		return "", nil, fmt.Errorf("%x is no point", b)
	}
	switch point.KindOf(w) {
	case point.KindInt:
		return wordText(w), point.Append(nil, point.FromInt(point.Int(w))), nil
	case point.KindFloat:
		return wordText(w), point.Append(nil, point.FromFloat(point.Float(w))), nil
	}
	if b[1] != 0 {
		// The bytes behind type 00 are ignored; they do not come back.
		return wordText(w), b, nil
	}
	return wordText(w), point.Append(nil, w), nil
}

func timestampedVector(b []byte) (string, []byte, error) {
	s, _, err := pointVector(b[:8])
	return fmt.Sprintf("%s at %d", s, point.Get(b[8:])), b, err
}

func requestText(q *Request) string {
	var b strings.Builder
	if q.Traced {
		fmt.Fprintf(&b, "traced %d %d ", q.TraceID, q.Parent)
	}
	names := map[Op]string{OpList: "list", OpGet: "get", OpBuckets: "buckets", OpStream: "stream",
		OpStream2:   "stream2",
		OpAckStream: "ackstream", OpInfo: "info", OpAdd: "add", OpDelete: "delete",
		OpListPrefix: "prefix", OpTTL: "ttl",
		OpEvents: "events", OpGetEvents: "getevents", OpGetEventsFiltered: "getevents"}
	b.WriteString(names[q.Op])
	if q.Op != OpBuckets {
		fmt.Fprintf(&b, " %q", q.Bucket)
	}
	switch q.Op {
	case OpListPrefix:
		fmt.Fprintf(&b, " %q", q.Key)
	case OpAdd:
		fmt.Fprintf(&b, " resolution %d ppf %d ttl %d", q.Resolution, q.PointsPerFile, q.TTL)
		if q.HPTS {
			b.WriteString(" hpts")
		}
	case OpTTL:
		fmt.Fprintf(&b, " %d", q.TTL)
	case OpEvents:
		text, _, err := eventsText(q.Coded)
		fmt.Fprintf(&b, " %s %v", text, err)
	case OpGetEvents:
		fmt.Fprintf(&b, " %d to %d", q.Start, q.End)
	case OpGetEventsFiltered:
		fmt.Fprintf(&b, " %d to %d filter %x", q.Start, q.End, q.Filter)
	case OpStream, OpAckStream:
		fmt.Fprintf(&b, " delay %d", q.Delay)
		if q.HPTS {
			b.WriteString(" hpts")
		}
	case OpStream2:
		fmt.Fprintf(&b, " delay %d hpts %t", q.Delay, q.HPTS)
	case OpGet:
		fmt.Fprintf(&b, " %q slot %d count %d", q.Key, q.Slot, q.Count)
		if o := q.Options; o.Form != OptionsNone {
			fmt.Fprintf(&b, " hpts %t rr %d r %d", o.HPTS, o.ReadRepair, o.R)
			if o.Exact {
				b.WriteString(" exact")
			}
			if o.Form == OptionsAggr {
				fmt.Fprintf(&b, " aggr %q %d", o.Aggr, o.AggrCount)
			}
		}
	}
	return b.String()
}

func namesVector(b []byte) (string, []byte, error) {
	names, err := ParseNames(b)
	again, mark := BeginNames(nil)
	var text []string
	for _, n := range names {
		text = append(text, fmt.Sprintf("%q", n))
		again = AppendName(again, n)
	}
	EndNames(again, mark)
	return strings.Join(text, " "), again, err
}

// eventsText returns the events of a compressed list, and the list compressed again.
func eventsText(coded []byte) (text string, again []byte, err error) {
	list, err := DecodeEvents(nil, coded)
	var out []byte
	for err == nil && len(list) > 0 {
		var e Event
		if e, list, err = NextEvent(list); err == nil {
			text += fmt.Sprintf("%d:%x ", e.Time, e.Term)
			out = AppendEvent(out, e)
		}
	}
	return strings.TrimSpace(text), CodeEvents(nil, out), err
}

func eventsVector(b []byte) (string, []byte, error) {
	coded, end, err := ParseReplyEvents(b)
	if err != nil || end {
		return "end", AppendEndEvents(nil), err
	}
	text, again, err := eventsText(coded)
	// Compression is free to choose: b comes back if the new frame holds the same events.
	if same, _, err := eventsText(again); err == nil && same == text {
		again = coded
	}
	return "[" + text + "]", append([]byte{byte(OpReplyEvents)}, again...), err
}

// getVector encodes a data frame again and, since compression is free to
// choose, returns b if the new frame decodes to the same points.
func getVector(b []byte) (string, []byte, error) {
	f, err := ParseGetFrame(b)
	if err != nil {
		return "", nil, err
	}
	switch {
	case f.Kind == GetEnd:
		return "end", AppendGetEnd(nil), nil
	case f.Kind == GetHeader && f.Aggr == nil:
		return "header", AppendGetHeader(nil), nil
	case f.Kind == GetHeader:
		return fmt.Sprintf("header aggr %q %d", f.Aggr, f.AggrCount),
			appendGetAggrHeader(nil, string(f.Aggr), f.AggrCount), nil
	}
	var d Decoder
	words, err := d.AppendWords(nil, f, 100)
	if err != nil {
		return "", nil, err
	}
	var e GetEncoder
	coded := e.AppendData(nil, words)
	f2, err := ParseGetFrame(coded)
	if err != nil || f2.Padding != f.Padding || coded[0] != b[0] {
		return dataText(words, f), coded, err
	}
	again, err := d.AppendWords(nil, f2, 100)
	if err != nil || fmt.Sprint(again) != fmt.Sprint(words) {
		return dataText(words, f), coded, err
	}
	return dataText(words, f), b, nil
}

func dataText(words []uint64, f GetFrame) string {
	var text []string
	for _, w := range words[:len(words)-int(f.Padding)] {
		if w == point.Unset {
			text = append(text, "_")
			continue
		}
		text = append(text, fmt.Sprint(point.Int(w)))
	}
	return fmt.Sprintf("data [%s] padding %d", strings.Join(text, " "), f.Padding)
}
