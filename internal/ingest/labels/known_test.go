package labels

import (
	"encoding/binary"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/model/metric"
)

// What is known was added, and not before the last loss.
func TestKnownSeries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k known
		var next [2]uint32 // of two senders
		added, losses := map[metric.SeriesID]bool{}, uint64(0)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			id := metric.SeriesID{15: 2} // none is 0
			n := uint32(rapid.IntRange(0, 200).Draw(t, "id"))
			binary.LittleEndian.PutUint32(id[4:], n%50) // some have the same slot
			id[8] = byte(n / 50)
			sender := &next[rapid.IntRange(0, 1).Draw(t, "sender")]
			switch rapid.IntRange(0, 20).Draw(t, "step") {
			case 0:
				losses++
				added = map[metric.SeriesID]bool{}
			case 1:
				if losses > 0 {
					k.add([]metric.SeriesID{id}, losses-1) // by who has not heard of a loss
				}
			default:
				if got := k.has(id, losses, sender); got != added[id] {
					t.Fatalf("%x is known: %v, was added: %v", id, got, added[id])
				}
				k.add([]metric.SeriesID{id}, losses)
				if added[id] = true; !k.has(id, losses, sender) {
					t.Fatalf("%x was added and is not known", id)
				}
			}
		}
	})
}

// The memory is bounded. A full list stays as long as it is of use.
func TestKnownSeriesAreBounded(t *testing.T) {
	var k known
	id := func(i int) metric.SeriesID { return metric.Series(uint64(i), []byte("x")) }
	for i := range knownMost + knownMost/2 {
		k.add([]metric.SeriesID{id(i)}, 1)
	}
	next := uint32(0)
	if !k.has(id(0), 1, &next) || k.has(id(knownMost), 1, &next) {
		t.Error("a full list has no longer what came first")
	}
	if got := k.bytes.Load(); got != 24<<20 {
		t.Errorf("%d bytes are held", got)
	}
	for i := range knownMost {
		k.add([]metric.SeriesID{id(-1 - i)}, 1)
	}
	if k.has(id(0), 1, &next) || !k.has(id(-knownMost), 1, &next) {
		t.Error("the list was not begun anew")
	}
}

// Readers see whole series while others add.
func TestKnownSeriesTogether(t *testing.T) {
	var (
		k   known
		all sync.WaitGroup
	)
	for range 4 {
		all.Go(func() {
			next := uint32(0)
			for round := range uint64(3) {
				for i := range 3 * knownBlock {
					id := metric.Series(uint64(i), []byte("x"))
					if k.has(id, round, &next) {
						continue
					}
					k.add([]metric.SeriesID{id}, round)
				}
			}
		})
	}
	all.Wait()
	next := uint32(0)
	for i := range 3 * knownBlock {
		if !k.has(metric.Series(uint64(i), []byte("x")), 2, &next) {
			t.Fatalf("series %d is not known", i)
		}
	}
}
