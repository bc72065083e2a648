package test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"dalmatiner/client"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
)

// Of series in the test below, slots before and behind the deletion.
const (
	deletedSeries = 300
	slotsBefore   = 20
	slotsBehind   = 20
)

func shopKey(i int) []byte {
	k, err := metric.Key("web", fmt.Sprint(i%3), fmt.Sprint(i))
	if err != nil {
		panic(err)
	}
	return k
}

// checkDeleted reads all slots: those of a third of the series and of one more
// were deleted.
func checkDeleted(t *testing.T, c *client.Client, base int64) {
	t.Helper()
	for i := range deletedSeries {
		for slot, w := range get(t, c, "shop", shopKey(i), base, slotsBefore+1+slotsBehind) {
			want := point.FromInt(int64(slot) + 1)
			if slot <= slotsBefore && (i%3 == 1 || i == 2) {
				want = point.Unset
			}
			if w != want {
				t.Fatalf("series %d slot %d holds %x, want %x", i, slot, w, want)
			}
		}
	}
}

// Series are deleted by command while a sender sends others and those too, the
// node is killed and starts again: no point from before a deletion is there, and
// every acknowledged one from behind it is.
func TestDeletedSeriesAfterAKill(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir, base := t.TempDir(), past(time.Hour)
	n := startNode(t, dir)
	stream, err := n.dial().OpenAckStream("shop")
	if err != nil {
		t.Fatal(err)
	}
	send := func(from, count int64) {
		for slot := from; slot < from+count; slot++ {
			if err := stream.BatchStart(base + slot); err != nil {
				t.Fatal(err)
			}
			for i := range deletedSeries {
				if err := stream.BatchPoint(shopKey(i), point.FromInt(slot+1)); err != nil {
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
	send(0, slotsBefore)
	if _, err := n.admin().Flush(ctx); err != nil {
		t.Fatal(err)
	}
	send(slotsBefore, 1) // in memory
	asked := run(t, "ddb", "admin", "series", "delete", "shop", "--prefix", "web.1", "--addr", n.http)
	if asked.code == 0 {
		t.Errorf("deleted without --yes: %+v", asked)
	}
	if r := run(t, "ddb", "admin", "series", "delete", "shop", "--prefix", "web.1", "--yes", "--addr",
		n.http); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if r := run(t, "ddb", "admin", "series", "delete", "shop", "'web'.'2'.2", "--yes", "--addr",
		n.http); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	send(slotsBefore+1, slotsBehind)
	n.kill()
	for range 3 {
		n = startNode(t, dir)
		c := n.dial()
		checkDeleted(t, c, base)
		if names, err := c.List(ctx, "shop"); err != nil || len(names) != deletedSeries {
			t.Fatalf("%d names, %v", len(names), err)
		}
		c.Close()
		if row := n.account("shop"); row.Received != deletedSeries*(slotsBefore+1+slotsBehind) {
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
