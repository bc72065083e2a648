package opentsdb

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/acked/ackedtest"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/storetest"
)

// newServer returns a server that stores into a store.
func newServer(tb testing.TB, o store.Options) (*store.Store, *Server) {
	tb.Helper()
	st, ws := ackedtest.Open(tb, Listener, o)
	return st, New(ws)
}

// shown prints a point in its parts.
func (d *datapoint) shown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s", d.metric, d.time, d.value)
	for _, t := range d.tags {
		fmt.Fprintf(&b, " %q:%q", t.Name, t.Value)
	}
	return b.String()
}

// The first two are examples of OpenTSDB's own page of /api/put.
func TestJSON(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{`{"metric": "sys.cpu.nice", "timestamp": 1346846400, "value": 18,
			"tags": {"host": "web01", "dc": "lga"}}`,
			`sys.cpu.nice 1346846400 18 "host":"web01" "dc":"lga"`},
		{`{"metric":"sys.cpu.nice","timestamp":1346846400,"value":9,"tags":{"host":"web02"}}`,
			`sys.cpu.nice 1346846400 9 "host":"web02"`},
		{`{"value":"1.5","timestamp":"7","metric":"a"}`, `a 7 1.5`},
		{`{"metric":"a","timestamp":1,"value":-1e3,"tags":null,"x":[{"y":[]},true,false,null]}`,
			`a 1 -1e3`},
		{`{"metric":"\u00e9\ud83d\ude00\"\\\/\n","timestamp":1,"value":1,"tags":{"a\tb":"c\ud800"}}`,
			"é😀\"\\/\n 1 1 \"a\\tb\":\"c\ufffd\""},
		{`{}`, "  "},
		{`{"metric":1,"timestamp":1,"value":1}`, errType.Error()},
		{`{"metric":"a","timestamp":1,"value":true}`, errType.Error()},
		{`{"metric":"a","timestamp":[],"value":1}`, errType.Error()},
		{`{"metric":"a","timestamp":1,"value":1,"tags":[1]}`, errType.Error()},
		{`{"metric":"a","timestamp":1,"value":1,"tags":{"a":""}}`, errTag.Error()},
		{`7`, errType.Error()},
		{`{"metric"}`, "at byte 9"},
		{`{"metric":"a`, "at byte 12"},
		{`{"metric":"\x"}`, "is no escape"},
		{`{"metric":"\u12"}`, "is no escape"},
		{`{"metric":nul}`, "want a value"},
		{`{"a":1 "b":2}`, "want ','"},
		{`{"a":` + strings.Repeat("[", 65), "nested deeper"},
	} {
		s, d := scanner{src: []byte(c.src)}, datapoint{}
		bad, err := s.datapoint(&d)
		if err = errors.Join(bad, err); err == nil {
			err = errors.New(d.shown())
		}
		if got := err.Error(); got != c.want && !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.src, got, c.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": point.FromInt(0), "42": point.FromInt(42), "-7": point.FromInt(-7),
		"+7": point.FromInt(7), "4.0": point.FromInt(4), "0.5": point.FromFloat(0.5),
		"9223372036854775807":  point.FromInt(1<<63 - 1),
		"18446744073709551616": acked.Word(1 << 64), "1e400": 0, "": 0, "0x10": 0, "1_0": 0, "inf": 0,
		"nan": 0, "1-2": 0,
	} {
		if got, ok := number([]byte(text)); ok != (want != 0) || ok && got != want {
			t.Errorf("%q is %x, %v, want %x", text, got, ok, want)
		}
	}
	for text, want := range map[string]int64{
		"1": 1e9, "1346846400": 1346846400e9, "4294967295": 4294967295e9, "4294967296": 4294967296e6,
		"1346846400123": 1346846400123e6, "1364410924.250": 1364410924250e6, "1.5": 15e8, "0": 0, "-1": 0,
		"": 0, "9223372036855": 0, "1346846400123.5": 0, "1.": 0, "1.1234567890": 0, "1e3": 0,
	} {
		if got, ok := nanoseconds([]byte(text)); ok != (want != 0) || ok && got != want {
			t.Errorf("time %q is %d, %v, want %d", text, got, ok, want)
		}
	}
}

// Each point counts once: as stored, or as bad, by its number.
func TestEveryPointCounts(t *testing.T) {
	st, s := newServer(t, storetest.Options())
	now := time.Now().Unix()
	var list []string
	for i := range 1000 {
		value, tag := fmt.Sprint(i), "h"
		switch i % 100 {
		case 50:
			value = `"x"`
		case 51:
			tag = ""
		case 52:
			value = `null`
		}
		list = append(list, fmt.Sprintf(
			`{"metric":"a.b","timestamp":%d,"value":%s,"tags":{"host":"%s","n":"%d"}}`, now, value, tag, i))
	}
	w, err := s.Put(t.Context(), "b", netip.AddrPort{}, []byte("["+strings.Join(list, ",\n")+"]"))
	if !errors.As(err, new(*PartialError)) || w.Good != 970 || w.Bad != 30 ||
		w.Counts.Accepted != 970 ||
		!strings.HasPrefix(err.Error(), "point 51: unable to parse value to a number; point 52: ") ||
		!strings.HasSuffix(err.Error(), "and 25 more") {
		t.Errorf("%+v, %v", w.Counts, err)
	}
	cut := strings.Join(list[:40], ",")
	w, err = s.Put(t.Context(), "b", netip.AddrPort{}, []byte("["+cut))
	if !errors.As(err, new(*SyntaxError)) || w.Good != 40 || w.Counts.Duplicate != 40 {
		t.Errorf("%+v, %v", w, err)
	}
	requests := st.Account().Requests()
	if requests["opentsdb_bad_point"] != 30 || requests["opentsdb_bad_json"] != 1 {
		t.Errorf("%v", requests)
	}
}

// FuzzJSON: whatever is JSON is taken apart, and whatever is taken apart ends where JSON does.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"metric":"a","timestamp":1,"value":1.5,"tags":{"a\u0041":"b"},"x":[1,{}]}`))
	f.Add([]byte(`{"metric":"\ud83d\ude00","value":null}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		s, d := scanner{src: src}, datapoint{}
		_, err := s.datapoint(&d)
		if err == nil {
			err = s.end()
		}
		if err != nil && json.Valid(src) && !strings.Contains(err.Error(), "nested") {
			t.Errorf("%q: %v", src, err)
		}
		if s.at > len(src) {
			t.Errorf("%q: ends at %d", src, s.at)
		}
		var known struct{ Metric, Timestamp any }
		if err != nil || json.Unmarshal(src, &known) != nil {
			return
		}
		var first map[string]any
		if json.Unmarshal(src, &first) != nil {
			return
		}
		if text, ok := first["metric"].(string); ok && len(d.metric) > 0 &&
			strings.ToValidUTF8(string(d.metric), "") == string(d.metric) && text != string(d.metric) {
			t.Errorf("%q: metric %q, want %q", src, d.metric, text)
		}
	})
}
