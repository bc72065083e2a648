package test

import (
	"context"
	"testing"
	"time"

	"dalmatiner/client"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/wire"
)

// key returns the key of a metric.
func key(t *testing.T, parts ...string) []byte {
	t.Helper()
	k, err := metric.Key(parts...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// value is what every test sends to a slot of a series: a function of both,
// never unset, two of three an integer.
func value(series uint64, slot int64) uint64 {
	x := (series+1)*0x9e3779b97f4a7c15 ^ uint64(slot)*0xd1b54a32d192ed03
	x ^= x >> 29
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 32
	n := int64(x%2001) - 1000
	if x>>40%3 == 0 {
		return point.FromFloat(float64(n) / 8)
	}
	return point.FromInt(n)
}

// past returns a slot of a bucket with a resolution of a second, that long ago.
func past(d time.Duration) int64 { return time.Now().Add(-d).Unix() }

// get returns slots of a series.
func get(t *testing.T, c *client.Client, bucket string, key []byte, slot int64,
	count int) []uint64 {
	t.Helper()
	words, err := c.Get(context.Background(), bucket, key, slot, count)
	if err != nil {
		t.Fatal(err)
	}
	return words
}

// ackStream is an acknowledged stream whose every call must succeed.
type ackStream struct {
	t *testing.T
	*client.Stream
}

func openAcked(t *testing.T, n *node, bucket string) ackStream {
	t.Helper()
	s, err := n.dial().OpenAckStream(bucket)
	if err != nil {
		t.Fatal(err)
	}
	return ackStream{t, s}
}

// point sends one point.
func (s ackStream) point(key []byte, slot int64, words ...uint64) {
	s.t.Helper()
	if err := s.Points(key, slot, words...); err != nil {
		s.t.Fatal(err)
	}
}

// flush waits until everything sent is durable.
func (s ackStream) flush() wire.Ack {
	s.t.Helper()
	if _, err := s.FlushAck(); err != nil {
		s.t.Fatal(err)
	}
	ack, err := s.ReadAck()
	if err != nil {
		s.t.Fatal(err)
	}
	return ack
}

// send stores points of one series durably.
func send(t *testing.T, n *node, bucket string, key []byte, slot int64, words ...uint64) {
	t.Helper()
	s := openAcked(t, n, bucket)
	s.point(key, slot, words...)
	if ack := s.flush(); ack.Received != uint64(len(words)) || ack.Refused != 0 {
		t.Fatalf("%d points were answered with %+v", len(words), ack)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
