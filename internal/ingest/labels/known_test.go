package labels

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/model/metric"
)

// What is known was added, and not before the last loss; its memory is bounded.
func TestKnownSeries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k known
		added, losses := map[metric.SeriesID]bool{}, uint64(0)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			id := metric.SeriesID{0: byte(rapid.IntRange(0, 1).Draw(t, "shard")), 15: 2} // none is 0
			binary.LittleEndian.PutUint32(id[4:], uint32(rapid.IntRange(0, 200).Draw(t, "id")))
			switch rapid.IntRange(0, 20).Draw(t, "step") {
			case 0:
				losses++
				added = map[metric.SeriesID]bool{}
				for shard := range byte(2) {
					k.has(metric.SeriesID{0: shard, 15: 2}, losses) // everybody hears of it
				}
			case 1, 2:
				k.remove(id)
				delete(added, id)
			case 3:
				if losses > 0 && k.has(id, losses-1) {
					t.Fatal("known by who has not heard of a loss")
				}
			default:
				if got := k.has(id, losses); got && !added[id] {
					t.Fatalf("%x is known and was not added", id)
				}
				k.add(id, losses)
				if added[id] = true; !k.has(id, losses) {
					t.Fatalf("%x was added and is not known", id)
				}
			}
		}
	})
	var k known
	for i := range 3 << 20 {
		id := metric.Series(uint64(i), []byte("x"))
		k.has(id, 1)
		k.add(id, 1)
	}
	if got := k.bytes.Load(); got != 16<<20 {
		t.Errorf("%d bytes are held", got)
	}
}
