package ddbtcp

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/eventstest"
	"dalmatiner/internal/wire"
)

// roomFixture has a node whose memory is limited. The clock of its memory stands still, so nobody
// is cut off, or refused for having waited: what is not admitted in its turn waits for ever.
func roomFixture(t *testing.T, limit int64) (*fixture, *memory.Budget) {
	b := memory.New(limit, func() time.Time { return time.Unix(1, 0) }, nil)
	f := newFixture(t, func(so *store.Options, o *Options) {
		o.Events, o.MaxFrame, so.Memory, so.UnknownBuckets.Create = new(eventstest.Store), 17<<20, b, true
	})
	return f, b
}

func usage(b *memory.Budget, name string) memory.Usage {
	for _, p := range b.Pools() {
		if p.Name == name {
			return p
		}
	}
	return memory.Usage{}
}

// eventsFrame is a frame of EVENTS whose list has about so many bytes, which cannot be compressed.
func eventsFrame(t *testing.T, bytes int) []byte {
	t.Helper()
	r := rand.New(rand.NewPCG(1, uint64(bytes)))
	var list []byte
	for i := uint64(1); len(list) < bytes; i++ {
		body := make([]byte, 1000)
		for j := range body {
			body[j] = byte(r.Uint32())
		}
		term := append([]byte("\x83m\x00\x00\x03\xe8"), body...)
		list = wire.AppendEvent(list, wire.Event{Time: i, Term: term})
	}
	payload, err := wire.AppendRequest(nil, &wire.Request{Op: wire.OpEvents, Bucket: []byte("b"),
		Coded: wire.CodeEvents(nil, list)})
	if err != nil {
		t.Fatal(err)
	}
	return wire.AppendFrame(nil, payload)
}

// sendEvents sends a frame and returns why it was refused, "" where it was stored.
func sendEvents(f *fixture, frame []byte) string {
	c := f.dial()
	defer func() { _ = c.Close() }()
	if _, err := c.Write(frame); err != nil {
		return err.Error()
	}
	if _, err := c.Write(wire.AppendFrame(nil, []byte{byte(wire.OpBuckets)})); err != nil {
		return err.Error()
	}
	got, err := wire.ReadFrame(c, nil, 1<<20)
	if err != nil {
		return err.Error()
	}
	if msg, ok := wire.ParseError(got); ok {
		return msg
	}
	return ""
}

// TestAFrameOfEventsLeavesThePoolWhole: whatever is sent, one frame or many at a time, what is lent
// for it comes back, and who sends afterwards is served.
func TestAFrameOfEventsLeavesThePoolWhole(t *testing.T) {
	for _, c := range []struct {
		name           string
		limit          int64
		bytes, senders int
		refused        string // "": every frame is stored
	}{
		{"one of 2.5 MiB", 256 << 20, 5 << 19, 1, ""},
		{"one that does not fit", 64 << 20, 5 << 19, 1, "memory.limit"},
		{"eight of 1 MiB", 256 << 20, 1 << 20, 8, ""},
		{"32 of 1 MiB", 256 << 20, 1 << 20, 32, ""},
		{"eight of 2.5 MiB", 256 << 20, 5 << 19, 8, ""},
		{"one of 16 MiB", 640 << 20, wire.MaxEvents - 2000, 1, ""},
		{"one of 16 MiB in little memory", 256 << 20, wire.MaxEvents - 2000, 1,
			"the limit of all tcp-unfinished together is 16 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, b := roomFixture(t, c.limit)
			frame := eventsFrame(t, c.bytes)
			var all sync.WaitGroup
			for range c.senders {
				all.Go(func() {
					got := sendEvents(f, frame)
					if c.refused == "" && got != "" || !strings.Contains(got, c.refused) {
						t.Errorf("the frame got %q, want %q", got, c.refused)
					}
				})
			}
			all.Wait()
			f.eventually("everything comes back", func() bool {
				p := usage(b, "tcp-unfinished")
				return p.Use == 0 && p.Leases.Waiting == 0
			})
			if got := sendEvents(f, eventsFrame(t, 300<<10)); got != "" {
				t.Errorf("a frame afterwards: %s", got)
			}
		})
	}
}

// TestFramesWhoseSendersAreGoneGiveEverythingBack: many large frames come short of their last byte,
// more than the pool has room for, so those who wait hold what the others wait for. Then their
// senders leave. The clock stands still, so no time helps: everything has to come back by itself.
func TestFramesWhoseSendersAreGoneGiveEverythingBack(t *testing.T) {
	for _, size := range []int{1 << 20, 6 << 20, 7 << 20, 16 << 20} {
		t.Run(fmt.Sprintf("%d MiB", size>>20), func(t *testing.T) {
			f, b := roomFixture(t, 256<<20)
			var senders sync.WaitGroup
			conns := make([]net.Conn, 100)
			for i := range conns {
				conns[i] = f.dial()
				senders.Go(func() {
					frame := make([]byte, 4+size-1)
					binary.BigEndian.PutUint32(frame, uint32(size))
					_, _ = conns[i].Write(frame) // the node need not take all of it
				})
			}
			f.eventually("some wait", func() bool {
				return f.srv.stats.BytesRead.Load() > 20<<20 || usage(b, "tcp-unfinished").Leases.Waiting > 0
			})
			for _, c := range conns {
				_ = c.Close()
			}
			senders.Wait()
			f.eventually("everything comes back", func() bool {
				p := usage(b, "tcp-unfinished")
				return p.Use == 0 && p.Leases.Waiting == 0 && usage(b, "tcp-buffers").Use == 0
			})
		})
	}
}
