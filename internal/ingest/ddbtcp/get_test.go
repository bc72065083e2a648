package ddbtcp

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"dalmatiner/client"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/wire"
)

// frames sends a GET and returns the slots and set points of its frames, or the
// text of an ERROR.
func (f *fixture) frames(q wire.Request) (slots []int, set int, refusal string) {
	f.t.Helper()
	nc := f.dial()
	payload, err := wire.AppendRequest(nil, &q)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := nc.Write(wire.AppendFrame(nil, payload)); err != nil {
		f.t.Fatal(err)
	}
	var buf []byte
	var dec wire.Decoder
	for {
		if buf, err = wire.ReadFrame(nc, buf, 1<<24); err != nil {
			f.t.Fatal(err)
		}
		if text, ok := wire.ParseError(buf); ok {
			return nil, 0, text
		}
		fr, err := wire.ParseGetFrame(buf)
		if err != nil {
			f.t.Fatal(err)
		}
		switch fr.Kind {
		case wire.GetEnd:
			return slots, set, ""
		case wire.GetData:
			points, err := []wire.Timestamped(nil), error(nil)
			if q.Options.HPTS {
				points, err = dec.AppendTimestamped(nil, fr, wire.MaxGetSlots)
			} else {
				var words []uint64
				words, err = dec.AppendWords(nil, fr, wire.MaxGetSlots)
				for _, w := range words {
					points = append(points, wire.Timestamped{Word: w})
				}
			}
			if err != nil {
				f.t.Fatal(err)
			}
			for _, p := range points {
				if p.Word != point.Unset {
					set++
				}
			}
			slots = append(slots, len(points))
		}
	}
}

// A GET for more slots than the limit is refused by name; up to it the reply has
// every slot, in frames of a fair size whatever the points per file, and what
// cannot hold a point is not looked for.
func TestAGetIsBounded(t *testing.T) {
	f := newFixture(t, nil)
	now := time.Now().Unix()
	for name, ppf := range map[string]int64{"b": 604800, "one": 1, "odd": 4097} {
		if name != "b" {
			if _, err := f.store.CreateBucket(buckets.Info{Name: name, Resolution: 1000,
				PPF: ppf}); err != nil {
				t.Fatal(err)
			}
		}
		c, err := client.Dial(context.Background(), f.addr)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.OpenAckStream(name)
		if err != nil {
			t.Fatal(err)
		}
		key := []byte("\x01a")
		for _, slot := range []int64{now, now - 10, now - 300_000} {
			if err := s.Point(key, slot, point.FromInt(1)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.FlushAck(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ReadAck(); err != nil {
			t.Fatal(err)
		}
		_ = s.Close()
		for _, hpts := range []bool{false, true} {
			q := wire.Request{Op: wire.OpGet, Bucket: []byte(name), Key: key, Slot: uint64(now - 900_000),
				Count:   1_000_000,
				Options: wire.GetOptions{Form: wire.OptionsFull, HPTS: hpts}}
			slots, set, _ := f.frames(q)
			sum := 0
			for _, n := range slots {
				sum += n
			}
			if sum != int(q.Count) || set != 3 || len(slots) > 1_000_000/leastCut+2 {
				t.Errorf("%s: %d slots in %d frames, %d points", name, sum, len(slots), set)
			}
			q.Key = []byte("\x01b") // unknown
			if slots, set, _ = f.frames(q); set != 0 || len(slots) == 0 {
				t.Errorf("%s: an unknown metric: %d frames, %d points", name, len(slots), set)
			}
		}
	}
	refusals := func() uint64 { return f.store.Account().Requests()["too_large"] }
	for _, count := range []uint32{defaultMaxSlots + 1, math.MaxUint32} {
		before := refusals()
		_, _, text := f.frames(wire.Request{Op: wire.OpGet, Bucket: []byte("b"), Key: []byte("\x01b"),
			Slot: 1, Count: count})
		if !strings.Contains(text, "67108864") || !strings.Contains(text, "tcp.max_slots") {
			t.Errorf("%d slots: %q", count, text)
		}
		f.eventually("it is counted", func() bool { return refusals() == before+1 })
	}
	if slots, _, text := f.frames(wire.Request{Op: wire.OpGet, Bucket: []byte("b"),
		Key: []byte("\x01b"), Slot: 1, Count: defaultMaxSlots}); text != "" || len(slots) < 1024 {
		t.Errorf("as many as the limit: %d frames, %q", len(slots), text)
	}
}
