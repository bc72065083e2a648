package replica

import (
	"slices"
	"testing"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
)

// BenchmarkWrite is a row of 1,000 series that come in one order, slot after slot, some 250 of them
// in a change.
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

// BenchmarkWriteColumns is a point of a column of 250 series that come slot after slot, four
// columns in a change.
func BenchmarkWriteColumns(b *testing.B) {
	n := newNode(b, nil)
	defer n.stop(b)
	info := n.bucket(b, "b", false)
	g := &replication.Group{}
	for i := range 250 {
		g.Series = append(g.Series, n.series(info, i))
	}
	words := make([]uint64, len(g.Series))
	for i := range words {
		words[i] = point.FromInt(int64(i))
	}
	number, slot, points := uint64(0), uint64(today), 0
	for b.Loop() {
		number++
		columns := make([]replication.Column, 4)
		for i := range columns {
			slot++
			columns[i] = replication.Column{Group: g, Slot: slot, Words: words}
			points += len(words)
		}
		_, at, err := n.Write(key(number, 0), replication.Change{Columns: columns})
		if err != nil {
			b.Fatal(err)
		}
		if number%1024 == 0 { // the disk of tests copies a file with each sync
			n.durable(b, at)
			n.Settle(key(number, 0).Batch, number)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(points), "ns/point")
}

// BenchmarkChunks is a point of a chunk of 720 that another node gives, 90 chunks of 250 series in
// a change. Each chunk goes into a file.
func BenchmarkChunks(b *testing.B) {
	n := newNode(b, nil)
	defer n.stop(b)
	info := n.bucket(b, "b", false)
	var ids []metric.SeriesID
	for i := range 250 {
		ids = append(ids, n.series(info, i))
	}
	slices.SortFunc(ids, compareIDs)
	var rows []replication.Row
	for i := range int64(chunk.Slots) {
		rows = append(rows,
			replication.Row{Slot: uint64(i), Value: replication.Value{Word: point.FromInt(i * i % 1000)}})
	}
	given := encodeRows(rows)
	at, points := 0, 0
	for b.Loop() {
		var c replication.Change
		for len(c.Chunks) < 90 {
			given.ID = replication.ChunkID{Series: ids[at%len(ids)],
				Number: today/chunk.Slots - 2 - uint64(at/len(ids))}
			at++
			c.Chunks = append(c.Chunks, given)
			points += given.Points
			if at%len(ids) == 0 { // ascending
				break
			}
		}
		if _, err := n.Merge(c); err != nil {
			b.Fatal(err)
		}
		if n.AdoptDue() {
			if _, err := n.Adopt(b.Context()); err != nil {
				b.Fatal(err)
			}
			n.showAdopted()
		}
	}
	if taken, _ := n.AdoptProgress(); taken != uint64(at) {
		b.Fatalf("%d of %d chunks are for files", taken, at)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(points), "ns/point")
}
