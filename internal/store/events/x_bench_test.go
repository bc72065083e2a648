package events

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"dalmatiner/internal/model/buckets"
)

// accessLog makes events that look like those of a web server: a term of some 180 bytes.
func accessLog(n int, from int64) []Event {
	random := rand.New(rand.NewPCG(3, 4))
	list := make([]Event, n)
	for i := range list {
		from += random.Int64N(200_000)
		list[i] = Event{Time: from,
			Body: fmt.Appendf(nil,
				"\x83t\x00\x00\x00\x05m\x00\x00\x00\x04hostm\x00\x00\x00\x05web%02dm\x00\x00\x00\x06statusb\x00\x00\x00\xc8"+
					"m\x00\x00\x00\x04pathm\x00\x00\x00\x18/api/v1/users/%06d/itemsm\x00\x00\x00\x05bytesb%04xm\x00\x00\x00\x05agentm\x00\x00\x00\x2cMozilla/5.0 (X11; Linux x86_64) Gecko/201001",
				random.IntN(20), random.IntN(50000), random.IntN(60000))}
	}
	return list
}

func (n *node) forget() { n.log = n.log[:0] }

// BenchmarkWrite stores events of 180 bytes, 100 at a time, with a flush after each 64 MiB.
func BenchmarkWrite(b *testing.B) {
	for _, own := range []bool{false, true} {
		b.Run(fmt.Sprintf("own-ids=%v", own), func(b *testing.B) {
			n := newNode(b, buckets.Info{Name: "a"})
			list := accessLog(100, now-1e12)
			b.SetBytes(int64(len(list[0].Body)))
			b.ResetTimer()
			for i := 0; i < b.N; i += len(list) {
				for j := range list {
					list[j].Time += 1e6
					list[j].ID = ID{}
					if own {
						list[j].ID = ID{byte(i >> 16), byte(i >> 8), byte(i), byte(j), 1}
					}
				}
				n.write("a", list)
				if n.forget(); n.pending > 64<<20 {
					n.flush(false)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

func filled(b *testing.B, events int) *node {
	n := newNode(b, buckets.Info{Name: "a"})
	list := accessLog(events, now-1e12)
	for i := 0; i < len(list); i += 1000 {
		n.write("a", list[i:min(i+1000, len(list))])
		n.forget()
	}
	n.flush(false)
	return n
}

// BenchmarkFlush writes 100,000 events of 180 bytes into a file.
func BenchmarkFlush(b *testing.B) {
	const events = 100_000
	var bytes int64
	for b.Loop() {
		b.StopTimer()
		n := newNode(b, buckets.Info{Name: "a"})
		n.write("a", accessLog(events, now-1e12))
		b.StartTimer()
		n.flush(false)
		bytes = n.s.Stats().FileBytes
	}
	b.ReportMetric(float64(bytes)/events, "bytes/event")
	b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkRead reads 100,000 events from a file.
func BenchmarkRead(b *testing.B) {
	const events = 100_000
	n := filled(b, events)
	for b.Loop() {
		seen := 0
		if _, err := n.s.Read(context.Background(), "a", 0, now, func(*Event) error {
			seen++
			return nil
		}); err != nil || seen != events {
			b.Fatal(seen, err)
		}
	}
	b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkCount counts 100,000 events of a file by steps of which one has many blocks, and of
// which a block has many.
func BenchmarkCount(b *testing.B) {
	const events = 100_000
	n := filled(b, events)
	for _, steps := range []int64{1, 1000} {
		b.Run(fmt.Sprintf("steps=%d", steps), func(b *testing.B) {
			for b.Loop() {
				if _, _, err := n.s.Count(context.Background(), "a", now-1e12, now-1e12+steps*(20e9/steps),
					20e9/steps); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
