package ddbtcp

import (
	"encoding/binary"
	"fmt"
	"testing"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/wire"
)

// benchStore is a store on a real disk.
func benchStore(b *testing.B) *store.Store {
	return storetest.Open(b, store.DefaultOptions(b.TempDir()))
}

// BenchmarkIngest is one point of a batch stream without the socket: parsed,
// predicted, stored, logged, sealed and flushed.
func BenchmarkIngest(b *testing.B) {
	for _, series := range []int{10_000, 200_000} {
		b.Run(fmt.Sprintf("series=%d", series), func(b *testing.B) {
			s := benchStore(b)
			info, err := s.EnsureBucket("bench")
			if err != nil {
				b.Fatal(err)
			}
			x, err := s.NewSession(info)
			if err != nil {
				b.Fatal(err)
			}
			open := wire.Request{Op: wire.OpStream, Bucket: []byte("bench"), Delay: 1}
			p := wire.NewStreamParser(&open, defaultMaxMessage)
			keys := make([][]byte, series)
			for i := range keys {
				keys[i], _ = metric.Key("agent", fmt.Sprintf("%6d", i/1000), "metrics",
					fmt.Sprintf("%6d", i%1000))
			}
			// Eight rows of random values in turn; only the slot is patched.
			rnd := uint64(1)
			var rows [8][]byte
			for i := range rows {
				buf := wire.AppendBatchStart(nil, 0)
				for _, k := range keys {
					rnd = rnd*6364136223846793005 + 1442695040888963407
					buf = wire.AppendBatchPoint(buf, k, point.FromInt(int64(rnd>>33)%1000))
				}
				rows[i] = wire.AppendFlush(wire.AppendBatchEnd(buf))
			}
			slot := uint64(s.Now().Unix() - 86400*30)
			feed := func() {
				buf := rows[slot%8]
				binary.BigEndian.PutUint64(buf[1:], slot)
				slot++
				if n, err := p.Parse(buf, x, flushes{x}); err != nil || n != len(buf) {
					b.Fatal(n, err)
				}
			}
			feed() // the series are created
			b.SetBytes(int64(len(rows[0]) / series))
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += series {
				feed()
			}
			b.StopTimer()
			if err := x.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
