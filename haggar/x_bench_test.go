package haggar

import "testing"

// benchSend measures making and encoding rows; what they are written to costs
// nothing.
func benchSend(b *testing.B, c Config, rows int) {
	t, src := newTemplate(&c, 3, rows), newSource(c.Data, 3, c.Metrics)
	points, slot := 0, Origin
	discard := func([]byte) error { return nil }
	tail := []byte{6}
	b.ReportAllocs()
	for b.Loop() {
		if err := t.send(src, slot, 1, t.rows, tail, discard); err != nil {
			b.Fatal(err)
		}
		points += t.rows * c.Metrics
		slot += int64(t.rows)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(points), "ns/point")
}

func BenchmarkSendUniformBatch(b *testing.B) { benchSend(b, Config{Metrics: 1250, Batch: true}, 0) }

func BenchmarkSendUniformBatchWide(b *testing.B) {
	benchSend(b, Config{Metrics: 125_000, Batch: true}, 0)
}

func BenchmarkSendUniformEntries(b *testing.B) { benchSend(b, Config{Metrics: 1250}, 0) }

func BenchmarkSendMixBatch(b *testing.B) {
	benchSend(b, Config{Metrics: 1250, Batch: true, Data: Data{Walk: true}}, 0)
}

func BenchmarkSendMixBatchWide(b *testing.B) {
	benchSend(b, Config{Metrics: 125_000, Batch: true, Data: Data{Walk: true}}, 0)
}

func BenchmarkValueAtOnce(b *testing.B) {
	it := Series(Counter, 1, 2, 3)
	slot := Origin
	for b.Loop() {
		slot += 100_003
		it.At(slot)
	}
}
