package test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/wire"
)

// exactValues are floats of which half lose their lowest bit in the words of the
// original: 1,000 of two decimals and the edges of the doubles.
func exactValues() (list []float64) {
	for k := range 1000 {
		list = append(list, float64(k)/100)
	}
	for _, v := range []float64{0.3, 1.0 / 3, math.Pi, 9007199254740993, 0x1p-895,
		math.SmallestNonzeroFloat64, math.MaxFloat64} {
		for _, near := range []float64{math.Nextafter(v, 0), v, math.Nextafter(v, math.Inf(1))} {
			list = append(list, near, -near)
		}
	}
	return append(list, math.Copysign(0, -1))
}

// exactSeries is a series of a test and the words that it holds from a slot on.
type exactSeries struct {
	bucket, name string
	slot         int64
	words        []uint64
}

// TestExactNumbers: every double and every integer of 56 bits comes back as it was sent, in
// every form, from memory, log and files. GET without the option drops the lowest bit.
func TestExactNumbers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := startNode(t, dir, "--set", "graphite.addr=127.0.0.1:0", "--set", "wal.sync=always")
	base := past(time.Hour)
	stream := exactSeries{"exact", "stream", base, nil}
	for _, v := range append(exactValues(), math.Inf(1), math.Inf(-1), math.NaN()) {
		stream.words = append(stream.words, point.FromFloat(v))
	}
	text := exactSeries{"graphite", "text", base, nil}
	var lines bytes.Buffer
	line := func(value string, word uint64) {
		fmt.Fprintf(&lines, "text %s %d\n", value, base+int64(len(text.words)))
		text.words = append(text.words, word)
	}
	for _, v := range exactValues() {
		if s := strconv.FormatFloat(v, 'g', -1, 64); math.Trunc(v) != v {
			line(s, point.FromFloat(v))
		}
	}
	for _, v := range []int64{0, 1, -1, 9007199254740993, -9007199254740993, point.MaxInt,
		point.MinInt} {
		stream.words = append(stream.words, point.FromInt(v))
		line(strconv.FormatInt(v, 10), point.FromInt(v))
	}
	line("9007199254740993.0", point.FromInt(9007199254740993))
	line("36028797018963969", point.FromFloat(36028797018963968)) // the nearest double
	send(t, n, stream.bucket, key(t, stream.name), base, stream.words...)
	put(t, n.to("tcp", n.listener("graphite lines")), lines.Bytes())
	eventually(t, "all lines are stored", func() bool {
		return int(stored(n.account("graphite"))) == len(text.words)
	})
	all := []exactSeries{stream, text}
	for _, s := range all {
		s.check(t, n)
		s.checkOldClient(t, n)
	}
	if _, err := n.admin().Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		s.check(t, n)
	}
	n.kill()
	n = startNode(t, dir)
	for _, s := range all {
		s.check(t, n)
	}
}

// check reads the series in every form.
func (s *exactSeries) check(t *testing.T, n *node) {
	t.Helper()
	for i, w := range get(t, n.dial(), s.bucket, key(t, s.name), s.slot, len(s.words)) {
		if w != s.words[i] {
			t.Fatalf("%s %d: GET has %016x, want %016x", s.name, i, w, s.words[i])
		}
	}
	text := fmt.Sprintf("SELECT %s BUCKET %s AFTER %d FOR %ds", s.name, s.bucket, s.slot*1000,
		len(s.words))
	forms := map[string][]string{"JSON": nil, "msgpack": msgpackValues(t, n, text),
		"CLI": tableValues(t, n, text)}
	series := ask(t, n, text, url.Values{}).Results[0]
	for i, v := range series.Values {
		switch exact, ok := series.Exact[i]; {
		case ok:
			forms["JSON"] = append(forms["JSON"], strconv.FormatInt(exact, 10))
		case v == nil:
			forms["JSON"] = append(forms["JSON"], "-")
		default:
			forms["JSON"] = append(forms["JSON"], strconv.FormatFloat(*v, 'g', -1, 64))
		}
	}
	for form, values := range forms {
		if len(values) != len(s.words) {
			t.Fatalf("%s: %d values as %s, want %d", s.name, len(values), form, len(s.words))
		}
		for i, text := range values {
			if w := s.words[i]; point.KindOf(w) == point.KindInt {
				want := strconv.FormatInt(point.Int(w), 10)
				if got, _ := strconv.ParseFloat(text, 64); text != want &&
					(got != point.Float(w) || int64(got) != point.Int(w)) {
					t.Fatalf("%s %d: %s has %s, want %s", s.name, i, form, text, want)
				}
				continue
			}
			want := point.Float(s.words[i])
			got, err := strconv.ParseFloat(text, 64)
			// A NaN is a gap, and JSON has no number for the infinities.
			if text == "-" && (math.IsNaN(want) || form != "msgpack" && math.IsInf(want, 0)) {
				continue
			}
			if err != nil || math.Float64bits(got) != math.Float64bits(want) {
				t.Fatalf("%s %d: %s has %s, want %v", s.name, i, form, text, want)
			}
		}
	}
}

// msgpackValues returns the numbers of the list of values.
func msgpackValues(t *testing.T, n *node, text string) (values []string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+n.http+"/?"+url.Values{"q": {text}}.Encode(),
		nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/msgpack")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := bytes.Cut(body, []byte("values\xdd"))
	if !found {
		t.Fatalf("%s: no list of values in %.100q", resp.Status, body)
	}
	for list = list[4:]; len(list) > 0; {
		switch {
		case list[0] == 0xc0: // NaN is a gap
			values, list = append(values, "-"), list[1:]
		case list[0] == 0xd3 && len(list) > 8: // an integer that doubles do not hold
			v := int64(binary.BigEndian.Uint64(list[1:]))
			values, list = append(values, strconv.FormatInt(v, 10)), list[9:]
		case list[0] == 0xcb && len(list) > 8:
			v := math.Float64frombits(binary.BigEndian.Uint64(list[1:]))
			values, list = append(values, strconv.FormatFloat(v, 'g', -1, 64)), list[9:]
		default:
			return values
		}
	}
	return values
}

// tableValues returns the values of the table that ddb prints.
func tableValues(t *testing.T, n *node, text string) (values []string) {
	t.Helper()
	r := run(t, "ddb", "query", "--addr", n.http, text)
	if r.code != 0 {
		t.Fatalf("ddb query ended with %d:\n%s", r.code, r.errOut)
	}
	row := regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d.*\s(\S+)$`)
	for _, m := range row.FindAllStringSubmatch(strings.ReplaceAll(r.out, " \n", "\n"), -1) {
		values = append(values, m[1])
	}
	return values
}

// checkOldClient reads the series as clients of the original do.
func (s *exactSeries) checkOldClient(t *testing.T, n *node) {
	t.Helper()
	words := oldGet(t, n, s.bucket, key(t, s.name), s.slot, len(s.words))
	for i, w := range words {
		if w != point.EvenWord(s.words[i]) || w>>63 == 0 && w>>56 != 1 {
			t.Fatalf("%s %d: old clients get %016x, want %016x", s.name, i, w, point.EvenWord(s.words[i]))
		}
	}
	if len(words) != len(s.words) {
		t.Fatalf("%s: old clients get %d words, want %d", s.name, len(words), len(s.words))
	}
}

// oldGet returns slots of a series as clients of the original get them.
func oldGet(t *testing.T, n *node, bucket string, key []byte, slot int64,
	count int) (words []uint64) {
	t.Helper()
	conn := n.to("tcp", n.tcp)
	request, err := wire.AppendRequest(nil, &wire.Request{Op: wire.OpGet, Bucket: []byte(bucket),
		Key: key, Slot: uint64(slot), Count: uint32(count)})
	if err != nil {
		t.Fatal(err)
	}
	put(t, conn, wire.AppendFrame(nil, request))
	var d wire.Decoder
	for f := (wire.GetFrame{}); f.Kind != wire.GetEnd; {
		var head [4]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			t.Fatal(err)
		}
		payload := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(conn, payload); err != nil {
			t.Fatal(err)
		}
		if f, err = wire.ParseGetFrame(payload); err != nil {
			t.Fatal(err)
		}
		if f.Kind == wire.GetData {
			if words, err = d.AppendWords(words, f, count); err != nil {
				t.Fatal(err)
			}
		}
	}
	return words
}
