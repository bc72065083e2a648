package test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"dalmatiner/internal/metric"
	"dalmatiner/internal/point"
)

// Series are deleted by command while a sender sends others and those too, the
// node is killed and starts again: no point from before a deletion is there, and
// every acknowledged one from behind it is.
func TestDeletedSeriesAfterAKill(t *testing.T) {
	const series, before, after = 300, 20, 20
	ctx := context.Background()
	dir, base := t.TempDir(), past(time.Hour)
	n := startNode(t, dir)
	key := func(i int) []byte {
		k, err := metric.Key("web", fmt.Sprint(i%3), fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	stream, err := n.dial().OpenAckStream("shop")
	if err != nil {
		t.Fatal(err)
	}
	send := func(from, count int64) {
		for slot := from; slot < from+count; slot++ {
			if err := stream.BatchStart(base + slot); err != nil {
				t.Fatal(err)
			}
			for i := range series {
				if err := stream.BatchPoint(key(i), point.FromInt(slot+1)); err != nil {
					t.Fatal(err)
				}
			}
			if err := stream.BatchEnd(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := stream.FlushAck(); err != nil {
			t.Fatal(err)
		}
		if ack, err := stream.ReadAck(); err != nil || ack.Refused != 0 {
			t.Fatalf("%+v, %v", ack, err)
		}
	}
	send(0, before)
	if _, err := n.admin().Flush(ctx); err != nil {
		t.Fatal(err)
	}
	send(before, 1) // in memory
	asked := run(t, "ddb", "admin", "series", "delete", "shop", "--prefix", "web.1", "--addr", n.http)
	if asked.code == 0 {
		t.Errorf("deleted without --yes: %+v", asked)
	}
	if r := run(t, "ddb", "admin", "series", "delete", "shop", "--prefix", "web.1", "--yes", "--addr", n.http); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if r := run(t, "ddb", "admin", "series", "delete", "shop", "'web'.'2'.2", "--yes", "--addr", n.http); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	send(before+1, after)
	n.kill()
	for round := range 3 {
		n = startNode(t, dir)
		c := n.dial()
		for i := range series {
			words, err := c.Get(ctx, "shop", key(i), base, before+1+after)
			if err != nil {
				t.Fatal(err)
			}
			for slot, w := range words {
				want := point.FromInt(int64(slot) + 1)
				if slot <= before && (i%3 == 1 || i == 2) {
					want = point.Unset
				}
				if w != want {
					t.Fatalf("round %d: series %d slot %d holds %x, want %x", round, i, slot, w, want)
				}
			}
		}
		if names, err := c.List(ctx, "shop"); err != nil || len(names) != series {
			t.Fatalf("%d names, %v", len(names), err)
		}
		c.Close()
		if row := n.account("shop"); row.Received != series*(before+1+after) {
			t.Errorf("%d points received", row.Received)
		}
		if r := run(t, "ddb", "admin", "flush", "--merge", "--addr", n.http); r.code != 0 {
			t.Fatalf("%+v", r)
		}
		if r := run(t, "ddb", "admin", "check", "--addr", n.http); r.code != 0 {
			t.Fatalf("%+v", r)
		}
		n.stop()
	}
}
