package remotewrite

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"

	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/ingest/acked/ackedtest"
	"dalmatiner/internal/ingest/protobuf"
	"dalmatiner/internal/store"
)

const (
	benchSeries  = 200_000
	benchRequest = 2000 // series, as Prometheus' max_samples_per_send
)

// benchLabels returns the labels of a series as node_exporter behind Kubernetes has them.
func benchLabels(i int) []string {
	host := i / 1000
	return []string{"__name__", fmt.Sprintf("node_metric_%03d_total", i%100), "cluster", "eu-1",
		"container", "node-exporter", "cpu", fmt.Sprint(i % 1000 / 100), "endpoint", "metrics",
		"instance", fmt.Sprintf("10.2.%d.%d:9100", host/250, host%250), "job", "node",
		"namespace", "monitoring", "pod", fmt.Sprintf("node-exporter-%05d", host),
		"service", "node-exporter"}
}

// benchMessages returns requests with one sample a series, and where in each the values and
// times are.
func benchMessages(v Version) (list []message) {
	for from := 0; from < benchSeries; from += benchRequest {
		var m message
		table, refs := []string{""}, map[string]uint64{}
		ref := func(s string) uint64 {
			n, ok := refs[s]
			if !ok {
				n = uint64(len(table))
				table, refs[s] = append(table, s), n
			}
			return n
		}
		at := message(nil).Bytes(2, sample(1, 1_800_000_000_000))
		for i := range benchRequest {
			texts := benchLabels(from + i)
			if v == V1 {
				m = m.Bytes(1, append(series1(texts...), at...))
				continue
			}
			var numbers []uint64
			for _, s := range texts {
				numbers = append(numbers, ref(s))
			}
			m = m.Bytes(5, append(series2(numbers...), at...))
		}
		if v == V2 {
			m = append(symbols(table...), m...)
		}
		list = append(list, m)
	}
	return list
}

// setSamples writes a time, and other values, into the samples of a message.
func setSamples(msg message, v Version, ms int64, rnd *uint64) {
	n := fieldNumbers[v]
	_ = protobuf.Each(msg, func(f *protobuf.Field) error {
		if f.Number != n.series || f.Wire != protobuf.Bytes {
			return nil
		}
		return protobuf.Each(f.Data, func(f *protobuf.Field) error {
			if f.Number == n.samples {
				*rnd = *rnd*6364136223846793005 + 1442695040888963407
				binary.LittleEndian.PutUint64(f.Data[1:], math.Float64bits(float64(*rnd>>33%1000)))
				binary.PutUvarint(f.Data[10:], uint64(ms))
			}
			return nil
		})
	})
}

// BenchmarkWrite is the processor time of a sample of known series, from the compressed body to
// the log, that of the flushes that follow included.
func BenchmarkWrite(b *testing.B) {
	for _, v := range []Version{V1, V2} {
		b.Run(fmt.Sprint("version", v), func(b *testing.B) {
			o := store.DefaultOptions(b.TempDir())
			o.WALSync = wal.Off // no request waits for a tick
			_, server := newServer(b, o)
			msgs, rnd := benchMessages(v), uint64(1)
			ms := time.Now().UnixMilli() - 3600_000
			round := func() (took time.Duration) {
				ms += 15_000
				for _, m := range msgs {
					setSamples(m, v, ms+int64(rnd>>40%1000), &rnd)
					body := s2.EncodeSnappy(nil, m)
					start := ackedtest.ProcessorTime()
					msg, err := s2.Decode(nil, body)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := server.Write(b.Context(), "b", netip.AddrPort{}, v, msg); err != nil {
						b.Fatal(err)
					}
					took += ackedtest.ProcessorTime() - start
				}
				return took
			}
			round()
			var took time.Duration
			for b.Loop() {
				took += round()
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(b.N)/benchSeries, "cpu-ns/point")
		})
	}
}
