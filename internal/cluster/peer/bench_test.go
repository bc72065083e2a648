package peer

import (
	"runtime"
	"sync/atomic"
	"testing"

	"dalmatiner/internal/cluster/ring"
)

// BenchmarkSend carries frames of 4 KiB over loopback, from Send to the handler.
func BenchmarkSend(b *testing.B) {
	for _, name := range []string{"plain", "tls"} {
		b.Run(name, func(b *testing.B) {
			var received atomic.Int64
			one, two := settings(1), settings(2)
			two.Handler = func(ring.ID, uint16, []byte) { received.Add(1) }
			if name == "tls" {
				config := certificate(b)
				one.ClientTLS, two.ServerTLS = toAny(config), config
			}
			sender, receiver := tcpPair(b, one, two)
			defer receiver.Close()
			defer sender.Close()
			connect(b, sender, 2)
			waitFor(b, "connected", func() bool { return statsOf(sender, 2).Connected })
			frame := make([]byte, 4<<10)
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				for !sender.Send(nodeID(2), 1, frame) {
					runtime.Gosched() // the queue is full
				}
			}
			waitFor(b, "arrived", func() bool { return received.Load() == int64(b.N) })
		})
	}
}
