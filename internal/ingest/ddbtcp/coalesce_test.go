package ddbtcp

import (
	"net"
	"runtime"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/wire"
)

// trickle writes entries in pieces of a few bytes, each when the one before was
// read, until the server coalesces them, and returns how many.
func (f *fixture) trickle(c net.Conn, from int64) (points int64) {
	f.t.Helper()
	st := f.srv.Stats()
	coalesced := func() bool { return st.Coalescing.Load() == 1 }
	tick := time.NewTicker(200 * time.Microsecond)
	defer tick.Stop()
	for limit := time.Now().Add(patience); !coalesced(); points++ {
		msg := entry(testKey, uint64(from+points), point.FromInt(points))
		for _, piece := range [][]byte{msg[:9], msg[9:11], msg[11:]} {
			want := st.BytesRead.Load() + int64(len(piece))
			if _, err := c.Write(piece); err != nil {
				f.t.Fatal(err)
			}
			for spins := 0; st.BytesRead.Load() < want && !coalesced(); spins++ {
				if time.Now().After(limit) {
					f.t.Fatalf("not coalesced within %v and %d points", patience, points)
				}
				if spins < 200 {
					runtime.Gosched()
				} else {
					<-tick.C // a single processor looks at the network only when it rests
				}
			}
		}
	}
	return points
}

// Small pieces are read together while they come fast; what is too little to wake
// the reader is read all the same, and nothing is left behind at the end.
func TestSmallReadsAreCoalesced(t *testing.T) {
	f := newFixture(t, nil)
	c := f.dial()
	if _, err := c.Write(streamOpen("b")); err != nil {
		t.Fatal(err)
	}
	resting := func() bool { return f.srv.Stats().Coalescing.Load() == 0 }
	from := time.Now().Unix() - 100_000
	points := f.trickle(c, from)
	if _, err := c.Write(entry(testKey, uint64(from+points), point.FromInt(1))); err != nil {
		t.Fatal(err)
	}
	points++
	stored := func() bool { n := f.counts(); return n.StoredPoints() == uint64(points) }
	f.eventually("the last points are stored though they wake nobody", stored)
	f.eventually("the sender is quiet", resting)
	if _, err := c.Write(
		wire.AppendFlush(entry(testKey, uint64(from+points), point.FromInt(2)))); err != nil {
		t.Fatal(err)
	}
	points++
	f.eventually("a point after the rest is stored", stored)
	points += f.trickle(c, from+points)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	f.eventually("the end of the stream is seen", resting)
	f.eventually("what came with it is stored", stored)
}

// A sender that waits for answers gets each of them at once.
func TestAcknowledgedStreamsAreNotCoalesced(t *testing.T) {
	f := newFixture(t, nil)
	s := f.openAcked()
	for i := range int64(2 * smallReads) {
		if err := s.Point(testKey, time.Now().Unix(), point.FromInt(i)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.FlushAck(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ReadAck(); err != nil {
			t.Fatal(err)
		}
		if f.srv.Stats().Coalescing.Load() != 0 {
			t.Fatalf("coalesced after %d answers", i)
		}
	}
}
