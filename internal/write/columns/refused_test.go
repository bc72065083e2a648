package columns_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/write/intake"
)

// refusedSend sends points of series i into a bucket, with timestamps or without, and says how many
// series of a thousand have a good one.
type refusedSend struct {
	hpts   bool
	series int
	send   func(x *intake.Session, i int)
}

func refusedSends() map[string]refusedSend {
	const far, past, now, begin = epoch + 5000, epoch - 5000, epoch, epoch * second
	one, bad := point.FromInt(1), uint64(3<<56)
	data := func(words ...uint64) (out []byte) {
		for _, w := range words {
			out = point.Append(out, w)
		}
		return out
	}
	return map[string]refusedSend{
		"ahead": {send: func(x *intake.Session, i int) { x.Point(key(i), far, one) }},
		"ahead in many slots": {send: func(x *intake.Session, i int) {
			x.Point(key(i), far+uint64(i*7919%5000), one)
		}},
		"expired":           {send: func(x *intake.Session, i int) { x.Point(key(i), past, one) }},
		"an undefined type": {send: func(x *intake.Session, i int) { x.Point(key(i), now, bad) }},
		"entries ahead": {send: func(x *intake.Session, i int) {
			x.Points(key(i), far, data(one, one))
		}},
		"entries of both sides": {send: func(x *intake.Session, i int) {
			x.Points(key(i), past, data(one, bad))
			x.Points(key(i), far, data(one, bad))
		}},
		"entries beyond all slots": {send: func(x *intake.Session, i int) {
			x.Points(key(i), 1<<64-1, data(one, one))
		}},
		"entries of bad types": {send: func(x *intake.Session, i int) {
			x.Points(key(i), now, data(bad, bad))
		}},
		"one that is good": {series: 1000, send: func(x *intake.Session, i int) {
			x.Points(key(i), now, data(bad, bad, one))
		}},
		"timestamps ahead": {hpts: true, send: func(x *intake.Session, i int) {
			x.TimestampedPoint(key(i), far, one, far*second)
		}},
		"timestamps of elsewhere": {hpts: true, send: func(x *intake.Session, i int) {
			x.TimestampedPoint(key(i), now, one, 7)
		}},
		"entries with timestamps": {hpts: true, send: func(x *intake.Session, i int) {
			x.TimestampedPoints(key(i), now, data(one, 7, bad, begin+second))
			x.TimestampedPoints(key(i), far, data(one, far*second, one, far*second+1))
		}},
		"points of Graphite ahead": {hpts: true, send: func(x *intake.Session, i int) {
			x.Point(key(i), far, one)
		}},
		"one good timestamp": {hpts: true, series: 1000, send: func(x *intake.Session, i int) {
			x.TimestampedPoints(key(i), now, data(one, 7, one, begin+second))
		}},
	}
}

// TestRefusedPointsMakeNoSeries: a series of which every point was refused is not there, whatever
// way its points came and whatever for they were refused; one good point among bad ones makes it.
func TestRefusedPointsMakeNoSeries(t *testing.T) {
	t.Parallel()
	for name, c := range refusedSends() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Start(t, storetest.OptionsAt(vfs.NewMem(), drivetest.NewClock()))
			defer s.Crash()
			info, err := s.CreateBucket(buckets.Info{Name: "b", Resolution: 1000, PPF: 604800, TTL: 3600,
				HPTS: c.hpts})
			if err != nil {
				t.Fatal(err)
			}
			x := drivetest.Session(t, s, "b")
			for i := range 1000 {
				c.send(x, i)
			}
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			listed := 0
			if err := s.Metrics(context.Background(), info, nil, func([]byte) bool {
				listed++
				return true
			}); err != nil {
				t.Fatal(err)
			}
			if n := s.BucketStats(info.ID).Series; listed != c.series || n != int64(c.series) {
				t.Errorf("%d series are listed, %d counted, want %d", listed, n, c.series)
			}
			if got := s.Account().Total(info.ID); got.ReceivedPoints() < 1000 ||
				got.StoredPoints() != uint64(c.series) {
				t.Errorf("counted %s", fmt.Sprint(got))
			}
		})
	}
}
