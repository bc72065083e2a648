package node

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/host/config"
	"dalmatiner/internal/host/monitor"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/storetest"
)

const (
	daySeconds  = 86400
	benchSeries = 7
)

// benchQueries are those of the published figures: the maximum of each minute of
// an hour, and of each hour of a day of seven series, up to end.
func benchQueries(end int64) map[string]string {
	before := fmt.Sprintf("BEFORE %q FOR ", time.Unix(end, 0).UTC().Format(time.DateTime))
	var seven []string
	for i := range benchSeries {
		seven = append(seven, fmt.Sprintf("max('series'.'%d' BUCKET b, 1h)", i))
	}
	return map[string]string{
		"hour":         "SELECT max('series'.'3' BUCKET b, 1m) " + before + "1h",
		"day-of-seven": "SELECT " + strings.Join(seven, ", ") + " " + before + "1d",
	}
}

// BenchmarkQuery asks a node over one connection, as a chart does that is drawn
// again. The answers come from merged windows in the page cache. What it counts
// is both sides of the connection, and "health" is the least that they take.
func BenchmarkQuery(b *testing.B) {
	dir := b.TempDir()
	end := loadDay(b, dir)
	n := start(b, dir, "bench")
	defer n.end(b)
	b.Run("health", func(b *testing.B) { benchPath(b, n.http, "/health") })
	for name, text := range benchQueries(end) {
		b.Run(name, func(b *testing.B) { benchPath(b, n.http, "/?q="+url.QueryEscape(text)) })
	}
}

// BenchmarkEngine is the part of BenchmarkQuery that the engine and the store have.
func BenchmarkEngine(b *testing.B) {
	dir := b.TempDir()
	end := loadDay(b, dir)
	s := storetest.Open(b, benchOptions(dir))
	n := &node{cfg: config.Default(), rec: monitor.New(), store: s}
	engine := n.engine()
	for name, text := range benchQueries(end) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := engine.Query(b.Context(), text, query.Options{})
				if err != nil || r.Series[0].Coverage != 1 {
					b.Fatal(r, err)
				}
			}
		})
	}
}

func benchOptions(dir string) store.Options {
	o := store.DefaultOptions(dir)
	o.Logger, o.MinFree, o.BackgroundMerge = slog.New(slog.DiscardHandler), 0, false
	return o
}

// loadDay writes a day of some series into a directory, merges it, and returns
// where it ends, in Unix seconds.
func loadDay(b *testing.B, dir string) int64 {
	return loadSlots(b, dir, benchSeries, daySeconds, 3600, func(slot, series int64) int64 {
		return slot*7919%1000 + series
	})
}

// loadSlots writes that many slots of that many series into a directory, step slots of a series at
// a time, with what value says of each, and merges them. It returns where they end, in Unix
// seconds.
func loadSlots(b *testing.B, dir string, series, slots, step int64,
	value func(slot, series int64) int64) int64 {
	b.Helper()
	s, err := store.Open(benchOptions(dir))
	if err != nil {
		b.Fatal(err)
	}
	info, err := s.EnsureBucket("b")
	if err != nil {
		b.Fatal(err)
	}
	x, err := s.NewSession(info)
	if err != nil {
		b.Fatal(err)
	}
	from := time.Now().Unix()/daySeconds*daySeconds - 2*daySeconds
	var data []byte
	for at := from; at < from+slots; at += step {
		for i := range series {
			data = data[:0]
			for j := range step {
				data = point.Append(data, point.FromInt(value(at+j, i)))
			}
			key, err := metric.Key("series", fmt.Sprint(i))
			if err != nil {
				b.Fatal(err)
			}
			x.Points(key, uint64(at), data)
		}
	}
	// the window is over
	x.Point([]byte("\x05later"), uint64(from+daySeconds+8*3600), point.FromInt(1))
	if err := x.Close(); err != nil {
		b.Fatal(err)
	}
	if _, err := s.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	if m, err := s.Merge(b.Context()); err != nil || m.Windows == 0 {
		b.Fatal(m, err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return from + slots
}

func benchPath(b *testing.B, addr, path string) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	request := []byte("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n")
	var body bytes.Buffer
	b.ReportAllocs()
	for b.Loop() {
		if _, err := conn.Write(request); err != nil {
			b.Fatal(err)
		}
		length, err := skipHead(r)
		if err != nil {
			b.Fatal(err)
		}
		body.Reset()
		if _, err := io.CopyN(&body, r, length); err != nil {
			b.Fatal(err)
		}
	}
	if path != "/health" && !bytes.Contains(body.Bytes(), []byte(`"coverage":1,`)) {
		b.Fatalf("%.300s", body.Bytes())
	}
}

// skipHead reads the head of a short answer and returns the length of its body.
func skipHead(r *bufio.Reader) (length int64, err error) {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil || len(line) <= 2 {
			return length, err
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			_, err = fmt.Sscan(string(value), &length)
		} else if bytes.HasPrefix(line, []byte("HTTP/1.1 ")) &&
			!bytes.Contains(line, []byte(http.StatusText(http.StatusOK))) {
			err = fmt.Errorf("%s", line)
		}
		if err != nil {
			return 0, err
		}
	}
}
