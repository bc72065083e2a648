package test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/admin"
	"dalmatiner/test/overload"
)

// offer runs an experiment of a few seconds against a node that has one
// processor. bench has the same over minutes, with figures.
func offer(t *testing.T, n *node, senders []overload.Sender, stored func() (uint64, error)) overload.Report {
	t.Helper()
	probe, err := overload.NewProbe(t.Context(), n.tcp)
	if err != nil {
		t.Fatal(err)
	}
	plan := overload.Plan{
		Senders: senders, Probe: probe, Stored: stored, CPU: n.cpuTime,
		Warm: 2 * time.Second, Measure: 2 * time.Second, Overload: 4 * time.Second, Patience: 30 * time.Second,
	}
	r, err := plan.Run(t.Context())
	t.Logf("%+v", r)
	if err != nil {
		t.Fatal(err)
	}
	if err := probe.Close(); err != nil {
		t.Error(err)
	}
	return r
}

// cpuTime returns the processor time that the node has used.
func (n *node) cpuTime() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	// The name in parentheses may hold anything; utime and stime are the 12th
	// and 13th field behind it, in hundredths of a second.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond, err
}

func accepted(n *node, bucket string) func() (uint64, error) {
	return func() (uint64, error) {
		a, err := n.admin().Account(context.Background(), "", 0)
		for _, row := range a.Rows {
			if row.Bucket == bucket {
				return stored(row), err
			}
		}
		return 0, err
	}
}

// TestOverloadOverTCP: senders that offer three times what the node can take are
// slowed down; it goes on storing, refuses nothing, and is itself again at once.
func TestOverloadOverTCP(t *testing.T) {
	t.Setenv("GOMAXPROCS", "1")
	// Without merges, of which a second of load has some and another has not.
	n := startNode(t, t.TempDir(), "--set", "storage.min_free=0", "--set", "memory.limit=256MB", "--set", "merge.background=off")
	peak := watchMemory(t, n)
	var senders []overload.Sender
	var streams []*overload.Stream
	for i := range 2 {
		s, err := overload.NewStream(t.Context(), n.tcp, "load", i, past(7*24*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		senders, streams = append(senders, s), append(streams, s)
	}
	r := offer(t, n, senders, accepted(n, "load"))
	if max(r.Goodput, r.PerCPU) < 0.9 { // by the clock, or by the processor where others have it
		t.Errorf("under overload it stored %.2f of its capacity, %.2f by processor time", r.Goodput, r.PerCPU)
	}
	for _, s := range streams {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	sent := uint64(r.Messages) * uint64(senders[0].Points())
	var row admin.AccountRow
	eventually(t, "everything sent is in the account", func() bool { row = n.account("load"); return row.Received >= sent })
	if row.Received != sent || row.RefusedTotal() != 0 {
		t.Errorf("%d points were sent: %+v", sent, row)
	}
	if most := peak(); most > testMemory/10*11 {
		t.Errorf("the process had %d bytes of its own, the limit is %d", most, testMemory)
	}
	n.stop()
}

// TestOverloadOverUDP: datagrams that come three times as fast as the node reads
// are dropped by the kernel and counted; those that are read are stored, and
// when fewer come none is dropped any more.
func TestOverloadOverUDP(t *testing.T) {
	t.Setenv("GOMAXPROCS", "1")
	n := startNode(t, t.TempDir(), "--set", "storage.min_free=0", "--set", "memory.limit=256MB", "--set", "graphite.addr=127.0.0.1:0")
	addr := n.door("graphite lines")
	var senders []overload.Sender
	for i := range 2 {
		s, err := overload.NewLines(t.Context(), addr, i, past(7*24*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		senders = append(senders, s)
	}
	r := offer(t, n, senders, accepted(n, "graphite"))
	if max(r.Goodput, r.PerCPU) < 0.9 { // by the clock, or by the processor where others have it
		t.Errorf("under overload it stored %.2f of its capacity, %.2f by processor time", r.Goodput, r.PerCPU)
	}
	var read, dropped float64
	eventually(t, "every datagram was read or dropped", func() bool {
		read, dropped = n.figure("graphite_datagrams_total"), n.figure("graphite_udp_kernel_drop_total")
		return int64(read+dropped) >= r.Messages
	})
	row := n.account("graphite")
	if int64(read+dropped) != r.Messages || dropped == 0 || row.Received != uint64(read)*uint64(senders[0].Points()) || row.RefusedTotal() != 0 {
		t.Errorf("%d datagrams were sent, %v read, %v dropped: %+v", r.Messages, read, dropped, row)
	}
	eventually(t, "the drops are in the account", func() bool { return n.refusals("graphite_udp_kernel_drop") == int(dropped) })
	n.stop()
}
