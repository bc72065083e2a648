package message

import (
	"testing"
	"time"

	"dalmatiner/internal/cluster/replication"
)

// BenchmarkRows is points of 10,000 series with names that are known, in Writes of up to
// replication.MaxRows rows, as they are sent and as they come.
func BenchmarkRows(b *testing.B) {
	here, there := newWorld(10_000), emptyWorld()
	for _, of := range []struct {
		name  string
		slots int
	}{{"1 slot", 1}, {"60 slots", 60}} {
		list := writes(here, of.slots)
		rows := 10_000 * of.slots
		e, d := NewEncoder(here.Registry, here.bucketOf, 1, 64<<20), NewDecoder(there.Registry)
		var encoded [][]byte
		for _, m := range list {
			frame, err := e.Append(nil, m)
			if err != nil {
				b.Fatal(err)
			}
			e.ConfirmSent(true)
			if _, _, err := d.Decode(frame); err != nil {
				b.Fatal(err)
			}
			encoded = append(encoded, frame)
		}
		b.Run("encode "+of.name, func(b *testing.B) {
			perRow(b, rows, func(i int) error {
				frame, err := e.Append(encoded[i][:0], list[i])
				encoded[i] = frame
				return err
			}, len(list))
		})
		b.Run("decode "+of.name, func(b *testing.B) {
			perRow(b, rows, func(i int) error { _, _, err := d.Decode(encoded[i]); return err }, len(list))
		})
	}
}

// writes returns points of all series in messages of no more rows than are sent in one.
func writes(w *world, slots int) (list []replication.Write) {
	var m replication.Write
	for i, id := range w.series {
		if len(m.Change.Rows)+slots > replication.MaxRows {
			list, m = append(list, m), replication.Write{}
		}
		for slot := range slots {
			m.Change.Rows = append(m.Change.Rows, replication.Row{Series: id, Slot: 1_000_000 + uint64(slot),
				Value: replication.Value{Word: uint64(i*slot + 1)}})
		}
	}
	return append(list, m)
}

// perRow reports the fastest round: others on the machine make rounds longer, never shorter.
func perRow(b *testing.B, rows int, one func(i int) error, n int) {
	b.ReportAllocs()
	fastest := time.Hour
	for b.Loop() {
		begin := time.Now()
		for i := range n {
			if err := one(i); err != nil {
				b.Fatal(err)
			}
		}
		fastest = min(fastest, time.Since(begin))
	}
	b.ReportMetric(float64(fastest.Nanoseconds())/float64(rows), "fastest-ns/row")
}
