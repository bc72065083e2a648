package events

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

func TestASlowFollowerIsToldWhatItMissed(t *testing.T) {
	left := false
	var total atomic.Int64
	f := newFollower(0, &total, func(*Follower) { left = true })
	body := make([]byte, MaxBody/2)
	for i := range 5 {
		f.offer(&Event{Time: int64(i + 1), Body: body})
	}
	list, missed, err := f.Next(context.Background())
	if err != nil || len(list) != 1 && len(list) != 2 || missed != uint64(5-len(list)) ||
		list[0].Time != 1 {
		t.Fatalf("%d events, %d missed, %v", len(list), missed, err)
	}
	if total.Load() != int64(missed) {
		t.Fatalf("%d are counted, %d are told", total.Load(), missed)
	}
	f.offer(&Event{Time: 9})
	list, missed, err = f.Next(context.Background())
	if err != nil || len(list) != 1 || list[0].Time != 9 || missed != 0 {
		t.Fatalf("%v, %d missed, %v", list, missed, err)
	}
	f.offer(&Event{Time: 10})
	f.Close()
	if list, _, err := f.Next(context.Background()); err != nil || len(list) != 1 || !left {
		t.Fatalf("%v, %v: what came before the end is lost", list, err)
	}
	if _, _, err := f.Next(context.Background()); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
}

func TestNextEndsWithItsContext(t *testing.T) {
	f := newFollower(0, new(atomic.Int64), func(*Follower) {})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := f.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
