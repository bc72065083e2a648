package replica

import (
	"slices"

	"pgregory.net/rapid"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/model/metric"
)

// digests are those of the model, by definition.
func (m *model) digests(partition int) (windows map[uint64]uint64,
	chunks map[replication.ChunkID]uint64) {
	windows, chunks = make(map[uint64]uint64), make(map[replication.ChunkID]uint64)
	for c := range m.cells {
		v := m.now(c)
		if partitionOf(c.id) != partition || v == (replication.Value{}) {
			continue
		}
		number, off := c.slot/chunk.Slots, int(c.slot%chunk.Slots)
		n := m.incarnation(c.id)
		sum := chunk.DigestOfSeries(c.id, n) * chunk.NumberedDigest(int64(number),
			chunk.DigestWords([]uint64{v.Word}, off))
		if m.timestamps(c.id) {
			sum += chunk.DigestOfSeries(c.id.Timestamp(), n) * chunk.NumberedDigest(int64(number),
				chunk.DigestWords([]uint64{v.Time}, off))
		}
		windows[number/chunksPerWindow] += sum
		chunks[replication.ChunkID{Series: c.id, Number: number}] += sum
	}
	return windows, chunks
}

// check compares everything.
func (m *model) check(t *rapid.T) {
	for c := range m.cells {
		if got := m.Read(c.id, c.slot, c.slot+1)[0]; got.Value != m.now(c) || got.Unknown {
			t.Fatalf("%x slot %d: %+v, want %+v", c.id, c.slot, got, m.now(c))
		}
	}
	for partition := range partitions {
		windows, chunks := m.digests(partition)
		list := m.Windows(replication.Share{Partition: partition})
		for _, w := range list {
			if windows[w.Number] != w.Digest {
				t.Fatalf("window %d of partition %d: %x, want %x", w.Number, partition, w.Digest,
					windows[w.Number])
			}
			m.checkChunks(t, partition, w.Number, chunks)
		}
		if len(list) != len(windows) || len(chunks) != 0 {
			t.Fatalf("partition %d has windows %+v, want %d; chunks %+v are missing", partition, list,
				len(windows), chunks)
		}
	}
	for n, c := range m.hints {
		for _, r := range c.Rows {
			if !slices.Contains(m.HintRows(r.Series, r.Slot, r.Slot+1), r) {
				t.Fatalf("a row of hint %d is missing", n)
			}
		}
	}
}

// checkChunks reads the chunks of a window page by page, and takes them out of those that are
// expected.
func (m *model) checkChunks(t *rapid.T, partition int, window uint64,
	chunks map[replication.ChunkID]uint64) {
	var after metric.SeriesID
	limit := rapid.IntRange(1, 4).Draw(t, "page")
	for more := true; more; {
		var list []replication.ChunkDigest
		list, more = m.Chunks(replication.Share{Partition: partition}, window, after, limit)
		if len(list) == 0 && more {
			t.Fatalf("an empty page in front of others")
		}
		for _, c := range list {
			if chunks[c.ID] != c.Digest || compareIDs(c.ID.Series, after) < 0 {
				t.Fatalf("%+v behind %x, want %x", c, after, chunks[c.ID])
			}
			after = c.ID.Series
			delete(chunks, c.ID)
			m.checkRows(t, c.ID)
		}
	}
}

func (m *model) checkRows(t *rapid.T, id replication.ChunkID) {
	n := 0
	for c := range m.cells {
		if c.id == id.Series && c.slot/chunk.Slots == id.Number && m.now(c) != (replication.Value{}) {
			n++
		}
	}
	c := m.Chunk(id)
	rows := rowsIn(t, c)
	for _, r := range rows {
		if r.Value != m.now(cell{r.Series, r.Slot}) || r.Incarnation != m.incarnation(r.Series) {
			t.Fatalf("%+v", r)
		}
	}
	if len(rows) != n || c.Points != n {
		t.Fatalf("%d rows of %d, want %d", len(rows), c.Points, n)
	}
}
