package test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/wire"
)

const (
	testMemory  = 256 << 20
	knownSeries = 20_000
	newSeries   = 2_000_000
)

// TestMemoryLimit: with 256 MiB, two million new series come beside 20,000 known
// ones. The process stays inside its limit, every point of the known series is
// taken, the new ones are refused and counted where there is no room, and after the
// last of them new series are taken again by themselves.
func TestMemoryLimit(t *testing.T) {
	n := startNode(t, t.TempDir(), "--set", "memory.limit=256MB", "--set", "storage.min_free=0")
	peak := watchMemory(t, n)
	known := newFlood(t, n, "known")
	known.send(0, knownSeries, time.Now().Unix())
	if known.refused != 0 {
		t.Fatalf("%d of the first points are refused", known.refused)
	}
	stop, served := make(chan struct{}), make(chan error, 1)
	go func() { served <- known.serve(stop) }()
	fresh := newFlood(t, n, "flood")
	for first := 0; first < newSeries; first += 10_000 {
		fresh.send(first, 10_000, time.Now().Unix())
	}
	if fresh.refused == 0 {
		t.Errorf("all of %d new series fit into %d bytes", newSeries, testMemory)
	}
	ended, refused, next := time.Now(), fresh.refused, newSeries
	eventually(t, "new series are taken again", func() bool {
		before := fresh.refused
		fresh.send(next, 1, time.Now().Unix())
		next++
		return fresh.refused == before
	})
	took := time.Since(ended)
	eventually(t, "the node is calm", func() bool { return n.figure("memory_level") == 0 })
	close(stop)
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	most := peak()
	t.Logf("%d of %d new series refused, taken again after %v, calm after %v; at most %d MiB; "+
		"known: %d points, slowest round %v",
		refused, newSeries, took.Round(time.Millisecond), time.Since(ended).Round(time.Millisecond),
		most>>20, known.sent, known.slowest)
	if most > testMemory/10*11 {
		t.Errorf("the process had %d bytes of its own, the limit is %d", most, testMemory)
	}
	if row := n.account("known"); row.Received != known.sent || row.RefusedTotal() != 0 ||
		known.refused != 0 {
		t.Errorf("%d points of known series were sent: %+v", known.sent, row)
	}
	if row := n.account("flood"); row.Received != uint64(next) ||
		row.Refused["memory"] != fresh.refused || row.RefusedTotal() != fresh.refused {
		t.Errorf("%d points of new series were sent, %d refused: %+v", next, fresh.refused, row)
	}
	n.stop()
}

// watchMemory looks at the anonymous memory of the node until the function it
// returns is called, which tells the most.
func watchMemory(t *testing.T, n *node) (most func() int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	found := make(chan int64, 1)
	go func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		var most int64
		for {
			select {
			case <-ctx.Done():
				found <- most
				return
			case <-tick.C:
				most = max(most, anonymous(n))
			}
		}
	}()
	t.Cleanup(cancel)
	return func() int64 {
		cancel()
		m := <-found
		if m == 0 {
			t.Fatal("the system does not tell the memory of a process")
		}
		return m
	}
}

// anonymous returns the resident memory of the node that is no file's.
func anonymous(n *node) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "RssAnon:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}

// flood is an acknowledged stream of points of numbered series.
type flood struct {
	ackStream
	key           []byte
	sent, refused uint64
	slowest       time.Duration // flush
}

func newFlood(t *testing.T, n *node, bucket string) *flood {
	t.Helper()
	return &flood{ackStream: openAcked(t, n, bucket)}
}

// round sends a point of each series and waits until they are durable.
func (f *flood) round(first, count int, slot int64) error {
	began := time.Now()
	if err := f.BatchStart(slot); err != nil {
		return err
	}
	for i := range count {
		f.key = metric.AppendPart(f.key[:0], "requests")
		f.key = metric.AppendPart(f.key, "host"+strconv.Itoa((first+i)/100))
		f.key = metric.AppendPart(f.key, strconv.Itoa((first+i)%100))
		if err := f.BatchPoint(f.key, point.FromInt(int64(i))); err != nil {
			return err
		}
	}
	if err := f.BatchEnd(); err != nil {
		return err
	}
	if _, err := f.FlushAck(); err != nil {
		return err
	}
	ack, err := f.ReadAck()
	f.count(ack)
	f.slowest = max(f.slowest, time.Since(began))
	return err
}

func (f *flood) count(ack wire.Ack) {
	f.sent += ack.Received
	f.refused += ack.Refused
}

func (f *flood) send(first, count int, slot int64) {
	f.t.Helper()
	if err := f.round(first, count, slot); err != nil {
		f.t.Fatal(err)
	}
}

// serve sends a round of the known series every half second.
func (f *flood) serve(stop <-chan struct{}) error {
	tick := time.NewTicker(time.Second / 2)
	defer tick.Stop()
	for slot := time.Now().Unix() + 1; ; slot++ {
		select {
		case <-stop:
			return nil
		case <-tick.C:
			if err := f.round(0, knownSeries, slot); err != nil {
				return err
			}
		}
	}
}
