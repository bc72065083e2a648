package cluster

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/cluster/names"
	"dalmatiner/internal/model/metric"
)

// TestOrdersOfSenders: whatever order the keys of a stream come in, each has its id, and its name
// is known as long as it is used, though few names fit.
func TestOrdersOfSenders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := int64(0)
		nothing := func(metric.SeriesID) (uint64, []byte, bool) { return 0, nil, false }
		var all atomic.Int64
		o := &order{names: names.New(nothing, 1, func() int64 { return now }), all: &all, bucket: 7}
		keys := make([][]byte, rapid.IntRange(1, 12).Draw(t, "keys"))
		for i := range keys {
			keys[i] = fmt.Appendf(nil, "\x05key%02d", i)
		}
		for range rapid.IntRange(1, 30).Draw(t, "batches") {
			now += int64(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
			o.period = o.names.Period()
			first := rapid.IntRange(0, len(keys)-1).Draw(t, "first")
			list := keys[first:rapid.IntRange(first+1, len(keys)).Draw(t, "past")]
			if rapid.IntRange(0, 3).Draw(t, "mixed") == 0 {
				list = rapid.Permutation(list).Draw(t, "order")
			}
			for _, key := range list {
				id, place := o.series(key)
				if place < 0 || o.list[place].id != id || o.first(place + 1).Series[place] != id {
					t.Fatalf("%q has the place %d", key, place)
				}
				if id != metric.ValuesOf(7, key, false) {
					t.Fatalf("%q has the id %x", key, id)
				}
			}
			for _, key := range list {
				if bucket, got, ok := o.names.Lookup(metric.ValuesOf(7, key, false)); !ok || bucket != 7 ||
					string(got) != string(key) {
					t.Fatalf("%q is %q of bucket %d, %v", key, got, bucket, ok)
				}
			}
		}
		if got, want := all.Load(),
			notedBytes*int64(len(o.list))+int64(len(o.list)*len(keys[0])); got != want ||
			len(o.list) > len(keys) {
			t.Errorf("%d bytes are counted, %d entries are kept", got, len(o.list))
		}
	})
}
