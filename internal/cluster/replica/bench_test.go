package replica

import (
	"slices"
	"testing"

	"dalmatiner/internal/cluster/replication"
)

// BenchmarkWrite is a row of 1,000 series that come in one order, slot after slot, some 250 of them in a change.
func BenchmarkWrite(b *testing.B) {
	n := newNode(b, nil)
	defer n.stop(b)
	info := n.bucket(b, "b", false)
	var parts [partitions][]replication.Row
	for i := range 1000 {
		id := n.series(info, i)
		p := partitionOf(id)
		parts[p] = append(parts[p], row(id, today, 1))
	}
	number, rows := uint64(0), 0
	for b.Loop() {
		p := int(number % partitions)
		number++
		part := parts[p]
		for i := range part {
			part[i].Slot++
		}
		_, at, err := n.Write(key(number, p), replication.Change{Partition: p, Rows: slices.Clone(part)})
		if err != nil {
			b.Fatal(err)
		}
		if rows += len(part); number%4096 == 0 { // the disk of tests copies a file with each sync
			n.durable(b, at)
			n.Settle(key(number, 0).Batch, number)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rows), "ns/row")
}
