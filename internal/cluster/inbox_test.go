package cluster

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"dalmatiner/internal/cluster/message"
	"dalmatiner/internal/cluster/names"
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/model/metric"
)

// TestCallsDoNotWaitForTheProtocol: while the protocol is busy, the calls behind a message are
// handled. Messages come to it in their order, and the connection waits where too many do.
func TestCallsDoNotWaitForTheProtocol(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := names.New(func(metric.SeriesID) (uint64, []byte, bool) {
			return 0, nil, false
		}, 1<<20, func() int64 { return 0 })
		encoder := message.NewEncoder(registry, func(uint64) (replication.Bucket, bool) {
			return replication.Bucket{}, false
		}, 1, maxFrame)
		frame := func(m replication.Message) []byte {
			b, err := encoder.Append([]byte{channelMessage}, m)
			if err != nil {
				t.Fatal(err)
			}
			encoder.ConfirmSent(true)
			return b
		}
		busy := make(chan struct{})
		var got []replication.Message
		var calls []string
		w := &wires{of: make(map[ring.ID]*line),
			log:        loglimit.New(slog.New(slog.DiscardHandler), time.Now),
			newDecoder: func() *message.Decoder { return message.NewDecoder(registry) },
			newEncoder: func() *message.Encoder { return nil },
			receive: func(_ ring.ID, m replication.Message) {
				<-busy
				got = append(got, m)
			},
			call: func(_ ring.ID, b []byte) { calls = append(calls, string(b)) }}
		from := ring.ID{1}
		var want []replication.Message
		for i := range 5 {
			m := replication.Learn{After: metric.SeriesID{byte(i)}}
			want = append(want, m)
			w.handle(from, frame(m))
			w.handle(from, fmt.Appendf([]byte{channelCall}, "call %d", i))
		}
		synctest.Wait()
		if len(got) > 0 ||
			!slices.Equal(calls, []string{"call 0", "call 1", "call 2", "call 3", "call 4"}) {
			t.Fatalf("while the protocol is busy: %d messages and the calls %q, want none and five",
				len(got), calls)
		}

		close(busy)
		synctest.Wait()
		w.close()
		if !slices.Equal(got, want) {
			t.Fatalf("the protocol has got %v, want %v", got, want)
		}
	})
}

// TestAFullInboxMakesItsPeerWait: messages beyond its bound wait, though one may be longer than
// that, and none is lost.
func TestAFullInboxMakesItsPeerWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := make(chan struct{})
		var b inbox
		taken, received := 0, 0
		put := func(bytes int) {
			if b.put(arrival{replication.AskKeeps{}, bytes}) {
				go b.run(func(replication.Message) {
					<-busy
					received++
				})
			}
			taken++
		}
		put(2 * inboxBytes)
		synctest.Wait() // the protocol has it
		go func() {
			for _, bytes := range []int{3 * inboxBytes, 1, inboxBytes, 1} {
				put(bytes)
			}
		}()
		for step, want := range []struct{ taken, received int }{{2, 0}, {3, 1}, {4, 2}, {5, 3}, {5, 4},
			{5, 5}} {
			synctest.Wait()
			if taken != want.taken || received != want.received {
				t.Fatalf("step %d: %d messages are taken and %d received, want %d and %d", step, taken,
					received, want.taken, want.received)
			}
			if step < 5 {
				busy <- struct{}{}
			}
		}
		if b.running || b.bytes != 0 {
			t.Errorf("an empty inbox is running: %v, and holds %d bytes", b.running, b.bytes)
		}
	})
}
