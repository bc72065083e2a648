package graphite

import (
	"fmt"
	"log/slog"
	"net"
	"syscall"
	"testing"
	"time"

	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/store/tagstore"
)

const benchSeries = 200_000

// benchRows returns rows of one line for each series, as an agent of a
// thousand metrics per host sends them, and where in a row the times go.
func benchRows(rows int) (out [][]byte, timestamps [][]int) {
	rnd := uint64(1)
	for range rows {
		var row []byte
		var at []int
		for i := range benchSeries {
			rnd = rnd*6364136223846793005 + 1442695040888963407
			row = fmt.Appendf(row, "agent.host%04d.metrics.metric%04d %d", i/1000, i%1000, (rnd>>33)%1000)
			if i%4 == 0 {
				row = fmt.Appendf(row, ".%02d", (rnd>>40)%100)
			}
			row = append(row, ' ')
			at = append(at, len(row))
			row = append(row, "0000000000\n"...)
		}
		out, timestamps = append(out, row), append(timestamps, at)
	}
	return out, timestamps
}

// setTime writes a time into a row.
func setTime(row []byte, timestamps []int, seconds int64) {
	text := fmt.Sprintf("%010d", seconds)
	for _, at := range timestamps {
		copy(row[at:], text)
	}
}

func benchStore(b *testing.B) *store.Store {
	return storetest.Open(b, store.DefaultOptions(b.TempDir()))
}

func benchServer(b *testing.B) *Server {
	st := benchStore(b)
	return New(Options{
		Points: st.Intake(), Tags: tagstore.Tagger{Of: st.Tags()}, Memory: st.Memory(),
		Account: st.Account(), Now: st.Now, Logger: slog.New(slog.DiscardHandler),
	})
}

// BenchmarkLine is the decoder alone.
func BenchmarkLine(b *testing.B) {
	for _, line := range []string{
		"agent.host0001.metrics.metric0001 123 1500000000",
		"agent.host0001.metrics.metric0001 123.25 1500000000",
		"agent.host0001.metrics.metric0001 123.2500000000000123 1500000000.5",
		"agent.metrics;host=h1;dc=eu 123 1500000000",
	} {
		b.Run(line, func(b *testing.B) {
			d := newDecoder(1000)
			text := []byte(line)
			b.ReportAllocs()
			for b.Loop() {
				if d.line(text) != accepted {
					b.Fatal("refused")
				}
			}
		})
	}
}

// BenchmarkText is one line without the socket: decoded, predicted, stored,
// logged, sealed and flushed.
func BenchmarkText(b *testing.B) {
	s := benchServer(b)
	rows, timestamps := benchRows(4)
	a := s.newAppender(conns.PeerOf(&net.TCPConn{}))
	seconds := time.Now().Unix() - 86400
	feed := func() {
		row := rows[seconds%4]
		setTime(row, timestamps[seconds%4], seconds)
		seconds++
		for len(row) > 0 {
			if err := a.begin(); err != nil {
				b.Fatal(err)
			}
			row = row[a.text(row[:min(len(row), maxBuffer)], false):]
			if err := a.commit(); err != nil {
				b.Fatal(err)
			}
		}
	}
	feed() // the series are made
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += benchSeries {
		feed()
	}
	b.StopTimer()
	if err := a.bucket.Close(); err != nil {
		b.Fatal(err)
	}
}

// cpu returns the processor time of this process.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSocket sends lines over loopback and reports the processor time of
// both sides; the sender only writes bytes that are ready.
func BenchmarkSocket(b *testing.B) {
	s := benchServer(b)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.ServeText(ln) }()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	rows, timestamps := benchRows(4)
	seconds := time.Now().Unix() - 86400
	sent := int64(0)
	feed := func() {
		row := rows[seconds%4]
		setTime(row, timestamps[seconds%4], seconds)
		seconds++
		if _, err := c.Write(row); err != nil {
			b.Fatal(err)
		}
		sent += benchSeries
	}
	arrived := func() {
		for s.stats.Lines.Load() < sent {
			<-time.After(100 * time.Microsecond)
		}
	}
	feed()
	arrived()
	b.ResetTimer()
	start := cpu(b)
	n := 0
	for ; n < b.N; n += benchSeries {
		feed()
	}
	arrived()
	b.StopTimer()
	b.ReportMetric(float64(cpu(b)-start)/float64(n), "cpu-ns/line")
	_, _ = c.Close(), ln.Close()
	s.Shutdown()
	if err := <-served; err != nil {
		b.Fatal(err)
	}
}
