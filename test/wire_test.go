package test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/wire"
)

// The names in internal/wire/testdata/vectors.txt, and a slot of their time.
const (
	fifo     = "fifo"
	fifoSlot = 1500000000
)

// fifoNode returns a node with the bucket, the metric and the three points of
// internal/wire/testdata/vectors.txt.
func fifoNode(t *testing.T) (n *node, dir string, metric []byte) {
	t.Helper()
	dir = t.TempDir()
	n = startNode(t, dir)
	metric = key(t, "my", "key")
	send(t, n, fifo, metric, 1000, point.FromInt(1), point.FromInt(2), point.FromInt(3))
	return n, dir, metric
}

// TestRequestsOverASocket: TCP cuts and joins as it likes.
func TestRequestsOverASocket(t *testing.T) {
	t.Parallel()
	n, _, metric := fifoNode(t)
	info := unhex(t, "00000000000003e8 0000000000093a80 0000000000000000 00")

	t.Run("a request byte by byte", func(t *testing.T) {
		s := n.socket()
		for _, b := range unhex(t, "00000006 07 04 6669666f") {
			s.send([]byte{b})
		}
		if got := s.reply(); !bytes.Equal(got, info) {
			t.Errorf("got %x, want %x", got, info)
		}
	})
	t.Run("three requests in one segment", func(t *testing.T) {
		s := n.socket()
		s.send(unhex(t, "00000006 07 04 6669666f  00000001 03  00000006 01 04 6669666f"))
		if got := s.reply(); !bytes.Equal(got, info) {
			t.Errorf("got %x, want %x", got, info)
		}
		if names := s.names(); !slices.Contains(names, fifo) {
			t.Errorf("buckets are %q", names)
		}
		if names := s.names(); len(names) != 1 || names[0] != string(metric) {
			t.Errorf("metrics are %q", names)
		}
	})
	t.Run("a stream and its opening in one segment, in pieces", func(t *testing.T) {
		open := unhex(t, "00000006 04 02")
		open = append(open, 4)
		open = append(open, "many"...)
		binary.BigEndian.PutUint32(open, uint32(len(open)-4))
		entry := wire.AppendEntry(nil, metric, fifoSlot, point.FromInt(1), point.FromInt(2))
		batch := wire.AppendBatchEnd(wire.AppendBatchPoint(wire.AppendBatchStart(nil, fifoSlot+2), metric,
			point.FromInt(3)))
		all := append(append(append(open, entry...), batch...), wire.AppendFlush(nil)...)
		s := n.socket()
		s.send(all[:len(open)+7])
		for _, b := range all[len(open)+7:] {
			s.send([]byte{b})
		}
		eventually(t, "three points are there", func() bool {
			// A connection that asks before the bucket is there is closed.
			words, err := n.dial().Get(context.Background(), "many", metric, fifoSlot, 4)
			return err == nil &&
				fmt.Sprint(words) == fmt.Sprint([]uint64{point.FromInt(1), point.FromInt(2), point.FromInt(3),
					0})
		})
	})
	t.Run("points without a flush are stored when the connection ends", func(t *testing.T) {
		s := n.socket()
		s.send(append(frame(unhex(t, "04 ff 04 6c617374")),
			wire.AppendEntry(nil, metric, fifoSlot, point.FromInt(9))...))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the point is there", func() bool {
			words, err := n.dial().Get(context.Background(), "last", metric, fifoSlot, 1)
			return err == nil && words[0] == point.FromInt(9)
		})
	})
}

// TestGetForms: every form of options that clients of any age send, byte by
// byte as in internal/wire/testdata/vectors.txt.
func TestGetForms(t *testing.T) {
	t.Parallel()
	n, _, _ := fifoNode(t)
	const get = "02 04 6669666f 0007 026d79036b6579 00000000000003e8 0000000a"
	three := unhex(t, "0100000000000001 0100000000000002 0100000000000003")
	plain := append(append([]byte(nil), three...), make([]byte, 7*8)...)
	timestamped := make([]byte, 160)
	for i := range 3 {
		copy(timestamped[i*16:], three[i*8:i*8+8])
		binary.BigEndian.PutUint64(timestamped[i*16+8:], uint64(1000+i)*1e9)
	}
	for name, c := range map[string]struct {
		request string
		size    int
		want    []byte
	}{
		"no options":                         {get, 8, plain},
		"the pair of 2017":                   {get + "02 00", 8, plain},
		"the triple that libraries send":     {get + "00 02 00", 8, plain},
		"r = n":                              {get + "00 00 ff", 8, plain},
		"hpts of a plain bucket":             {get + "01 00 ff", 16, timestamped},
		"an aggregation, left to the client": {get + "00 01 01 03 73756d 0000003c", 8, plain},
		"wrapped without a trace": {"fe 0000000000000000 0000000000000000" + get + "00 02 00",
			8, plain},
		"wrapped with a trace": {"fe 0000000000000001 0000000000000002" + get, 8, plain},
		"count 0": {
			"02 04 6669666f 0007 026d79036b6579 00000000000003e8 00000000 00 02 00", 8, nil},
		"an unknown metric": {"02 04 6669666f 0003 026d7a 00000000000003e8 0000000a", 8,
			make([]byte, 80)},
		"a metric that is no part list": {"02 04 6669666f 0003 ff6d7a 00000000000003e8 0000000a", 8,
			make([]byte, 80)},
	} {
		t.Run(name, func(t *testing.T) {
			s := n.socket()
			s.ask(unhex(t, c.request))
			if got := s.slots(c.size, 10); !bytes.Equal(got, c.want) {
				t.Errorf("got  %x\nwant %x", got, c.want)
			}
			s.ask([]byte{3}) // the connection is good for more
			s.names()
		})
	}
}

// TestLongGet: a long range comes in frames of at most 65,536 slots.
func TestLongGet(t *testing.T) {
	t.Parallel()
	n := startNode(t, t.TempDir())
	metric := key(t, "long")
	const count = 200_000
	first := past(count*time.Second + time.Hour)
	s := openAcked(t, n, "long")
	for slot := first; slot < first+count; slot += 20_000 {
		words := make([]uint64, 20_000)
		for i := range words {
			words[i] = value(1, slot+int64(i))
		}
		s.point(metric, slot, words...)
	}
	s.flush()
	for _, state := range []string{"in memory", "in a segment"} {
		c := n.socket()
		c.ask(payload(t, wire.Request{Op: wire.OpGet, Bucket: []byte("long"), Key: metric,
			Slot: uint64(first), Count: count}))
		got := c.slots(8, 65_536)
		if len(got) != count*8 {
			t.Fatalf("%s: %d bytes, want %d", state, len(got), count*8)
		}
		for i := range count {
			if word := binary.BigEndian.Uint64(got[i*8:]); word != value(1, first+int64(i)) {
				t.Fatalf("%s: slot %d is %016x, want %016x", state, i, word, value(1, first+int64(i)))
			}
		}
		if _, err := n.admin().Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}
