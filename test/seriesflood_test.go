package test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
)

// New series from several senders at a time, with long names and in buckets of their
// own, do not take the process beyond its limit.
func TestNewSeriesFromManySenders(t *testing.T) {
	n, peak := besieged(t)
	g := welcome(t, n)
	began := time.Now()
	var all sync.WaitGroup
	for i := range 6 {
		bucket := "flood" + string(rune('a'+i))
		f := newFlood(t, n, bucket)
		all.Go(func() {
			pad := strings.Repeat("x", 80)
			for first := 0; first < 300_000 && time.Since(began) < 9*time.Second; first += 5_000 {
				if err := f.longNames(first, 5_000, pad); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	g.leave(t, time.Since(began))
	most := peak()
	t.Logf("at most %d MiB", most>>20)
	if most > testMemory/10*11 {
		t.Errorf("the process had %d MiB of its own, the limit is %d", most>>20, testMemory>>20)
	}
	n.stop()
}

// longNames sends a point for each of some new series.
func (f *flood) longNames(first, count int, pad string) error {
	if err := f.BatchStart(time.Now().Unix()); err != nil {
		return err
	}
	for i := range count {
		f.key = metric.AppendPart(f.key[:0], pad)
		f.key = metric.AppendPart(f.key, time.Duration(first+i).String())
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
	_, err := f.ReadAck()
	return err
}
