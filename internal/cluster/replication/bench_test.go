package replication

import (
	"encoding/binary"
	"fmt"
	"testing"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

// emptyStore is a store that takes everything and keeps nothing, so that what remains is the cost
// of Core.
type emptyStore struct {
	at   Position
	busy bool // its digests are never all there
}

func (b *emptyStore) log() Position { b.at++; return b.at }

func (b *emptyStore) Write(_ Key, c Change) (Counts, Position, error) {
	return Counts{Accepted: c.Points()}, b.log(), nil
}
func (b *emptyStore) PriorResult(Key) (Counts, Position, bool)  { return Counts{}, 0, false }
func (b *emptyStore) Settle(BatchID, uint64) bool               { return false }
func (b *emptyStore) Merge(Change) (Position, error)            { return b.log(), nil }
func (b *emptyStore) KeepHint(Key, Hint) (Position, error)      { return b.log(), nil }
func (b *emptyStore) DropHint(uint64)                           {}
func (b *emptyStore) Hints() []HintInfo                         { return nil }
func (b *emptyStore) Hint(uint64) (Change, bool)                { return Change{}, false }
func (b *emptyStore) Account(BatchID, Counts) (Position, error) { return b.log(), nil }
func (b *emptyStore) Incarnation(metric.SeriesID) uint64        { return 0 }
func (b *emptyStore) Lives() uint64                             { return 0 }
func (b *emptyStore) Deletions(int) []Deletion                  { return nil }
func (b *emptyStore) Windows(Share) []WindowDigest              { return nil }
func (b *emptyStore) Chunk(ChunkID) Chunk                       { return Chunk{} }
func (b *emptyStore) Prepare(Share) bool                        { return !b.busy }
func (b *emptyStore) AdoptProgress() (uint64, int64)            { return 0, 0 }
func (b *emptyStore) Holds() []Share                            { return nil }
func (b *emptyStore) Drop(Share)                                {}

func (b *emptyStore) HintRows(metric.SeriesID, uint64, uint64) []Row { return nil }
func (b *emptyStore) Read(metric.SeriesID, uint64, uint64) []Slot    { return nil }
func (b *emptyStore) Chunks(Share, uint64, metric.SeriesID, int) ([]ChunkDigest, bool) {
	return nil, false
}

// trio is three nodes that reach each other.
func trio(tb testing.TB, partitions int) map[ring.ID]*Core {
	tb.Helper()
	config := ring.Config{Number: 1, Partitions: partitions, Copies: 3}
	for n := range byte(3) {
		config.Members = append(config.Members, ring.Member{ID: copyID(n + 1), Name: fmt.Sprint(n),
			State:  ring.Active,
			Tokens: []uint32{uint32(n) << 30}, Protocol: ring.Protocol{Min: 1, Max: 1}})
	}
	view, err := ring.New(config)
	if err != nil {
		tb.Fatal(err)
	}
	nodes := make(map[ring.ID]*Core)
	for _, m := range config.Members {
		nodes[m.ID] = New(Config{Self: m.ID, Boot: 1, W: 2, R: 1, Timeout: 1000, Resend: 100,
			CompareMS: 1 << 40}, &emptyStore{}, view, Time{})
		for _, o := range config.Members {
			nodes[m.ID].Peer(Time{}, o.ID, true)
		}
		nodes[m.ID].asked = nil
	}
	return nodes
}

// carry brings messages until there is none left, and returns the replies of the first node.
func carry(nodes map[ring.ID]*Core) (replies []Reply) {
	for busy := true; busy; {
		busy = false
		for n := range byte(len(nodes)) {
			from := nodes[copyID(n+1)]
			from.SyncedUpTo(Time{}, from.noted)
			sends, answers := from.Take()
			for _, s := range sends {
				nodes[s.To].Receive(Time{}, from.config.Self, s.Message)
				busy = true
			}
			replies = append(replies, answers...)
		}
	}
	return replies
}

// A batch of 1,000 series, a row each, on three nodes with 64 partitions: all that Core does for it
// on all of them.
func BenchmarkBatch(b *testing.B) {
	nodes := trio(b, 64)
	rows := make([]Row, 1000)
	for i := range rows {
		id := metric.Series(1, binary.BigEndian.AppendUint32(nil, uint32(i)))
		rows[i] = Row{Series: id, Slot: 7, Value: Value{Word: uint64(i + 1)}}
	}
	b.ReportAllocs()
	for b.Loop() {
		nodes[copyID(1)].Submit(Time{}, 1, Batch{Rows: rows})
		if r := carry(nodes); len(r) != 1 || !r[0].Done || r[0].Counts.Accepted != len(rows) {
			b.Fatalf("%+v", r)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(rows)), "ns/row")
	if batches, open := nodes[copyID(1)].Open(); batches != 0 || open != 0 {
		b.Errorf("%d batches with %d rows are open", batches, open)
	}
}
