package message

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/testkit/golden"
)

// fixed are messages that use what the encoding has, in the order of their kinds.
func fixed(w *world) []replication.Message {
	node := ring.ID{0xaa, 15: 0xab}
	version := ring.Version{Number: 3, Sum: 0x1122}
	row := func(series int, incarnation, slot, word, time uint64) replication.Row {
		return replication.Row{Series: w.series[series], Incarnation: incarnation, Slot: slot,
			Value: replication.Value{Word: word, Time: time}}
	}
	rows := []replication.Row{row(0, 0, 1000, 1, 0), row(0, 0, 1001, 2, 0), row(1, 0, 1000, 3, 77),
		row(1, 0, 1001, 4, 0), row(2, 9, 1000, 5, 0), row(0, 0, 5, 6, 0)}
	group := &replication.Group{Series: w.series}
	columns := []replication.Column{{Group: group, From: 1, Slot: 1000, Words: []uint64{7, 8}},
		{Group: group, From: 1, Slot: 1001, Words: []uint64{9, 10}},
		{Group: group, Slot: 1001, Words: []uint64{11, 12}, Times: []uint64{0, 13}}}
	deletions := []replication.Deletion{{Series: w.series[0], Incarnation: 8},
		{Series: w.series[5], Incarnation: 9}, {Series: metric.SeriesID{1}, Incarnation: 10}}
	change := replication.Change{Partition: 300, Further: []int{301, 700}, Copies: 5, Columns: columns,
		Rows: rows, Deletions: deletions}
	key := replication.Key{Batch: replication.BatchID{Coordinator: node, Boot: 2, Number: 300},
		Partition: 300, Further: 2, Attempt: 1, For: ring.ID{0xbb}}
	step := replication.Step{Boot: 2, Pass: 4, Number: 1, Partition: 300, Version: version}
	after, through := metric.SeriesID{2}, replication.LastSeries()
	chunks := []replication.ChunkID{{Series: w.series[0], Number: 1},
		{Series: w.series[1], Number: 300}}
	return []replication.Message{
		replication.Write{Key: key, Version: version, Settled: 299, Change: change},
		replication.WriteReply{Key: key, Refusal: replication.Stale,
			Counts: replication.Counts{Accepted: 1, Duplicate: 2, Conflicting: 3, Unconfirmed: 4},
			Later:  deletions},
		replication.Deliver{ID: replication.HintID{Node: node, Boot: 2, Number: 5}, Version: version,
			Change: change},
		replication.DeliverReply{ID: replication.HintID{Node: node, Boot: 2, Number: 5}},
		replication.Learn{After: after},
		replication.LearnReply{After: after, Through: through, Deletions: deletions},
		replication.Compare{Step: step, Deletions: 6, From: 1, Through: 300,
			Windows: []replication.WindowDigest{{Number: 1, Digest: 7}}},
		replication.CompareReply{Step: step, Deletions: true, Through: 300, Windows: []uint64{1, 300},
			Left: 9},
		replication.ShareDeletions{Step: step, After: after, Through: through, Deletions: deletions},
		replication.ShareDeletionsReply{Step: step, Through: through, Deletions: deletions},
		replication.CompareChunks{Step: step, Window: 3, After: after, Through: through,
			Chunks: []replication.ChunkDigest{{ID: chunks[0], Digest: 7}}},
		replication.Difference{Step: step, Through: through, Chunks: 2, Want: chunks[:1],
			Have: chunks[1:]},
		replication.Fill{Step: step,
			Chunks: []replication.Chunk{{ID: chunks[0], Incarnation: 9, Points: 2, Words: []byte{1, 2, 3}},
				{ID: chunks[1], Points: 300, Words: []byte{4}, Times: []byte{5, 6}}}, Want: chunks},
		replication.FillReply{
			Step: step, Chunks: []replication.Chunk{{ID: chunks[1], Points: 720, Words: []byte{7}}},
			Given: 1},
		replication.Fetch{Request: 1, Version: version, Partition: 300, Series: w.series[0], From: 1000,
			Past: 1002},
		replication.FetchReply{Request: 1, Ready: true, Incarnation: 9,
			Slots: []replication.Slot{{Value: replication.Value{Word: 1, Time: 2}}, {Unknown: true}}},
		replication.Keeps{Node: node, Boot: 2, Number: 3, Partitions: []byte{0x81, 0}, Version: version},
		replication.KeepsReply{Boot: 2, Number: 3},
		replication.AskKeeps{},
	}
}

// The bytes of every kind are those that are checked in, and read as what they were: an older
// node writes them, and disks hold changes.
func TestFrozenBytes(t *testing.T) {
	w := newWorld(6)
	var text strings.Builder
	add := func(what string, b []byte) { fmt.Fprintf(&text, "%s\n%s", what, hex.Dump(b)) }
	list := fixed(w)
	e, d := w.encoder(5), NewDecoder(emptyWorld().Registry)
	for i, m := range append(list, list[0]) { // once more, with names that are known
		frame, err := e.Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		e.ConfirmSent(true)
		if kind := i%len(list) + 1; frame[1] != byte(kind) {
			t.Errorf("%T is of kind %d, want %d", m, frame[1], kind)
		}
		got, _, err := d.Decode(frame)
		if err != nil {
			t.Fatal(err)
		}
		requireEqual(t, got, m)
		add(fmt.Sprintf("%T", m), frame)
	}
	changes := NewChanges(w.Registry)
	want := list[0].(replication.Write).Change
	b, err := changes.Append(nil, want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := NewChanges(emptyWorld().Registry).Read(b)
	if err != nil {
		t.Fatal(err)
	}
	requireEqual(t, got, want)
	add("change", b)
	add("request", d.AppendRequest(nil))
	golden.Same(t, "testdata/frozen.txt", text.String())
}

// A change on disk has all that is needed to store it, after a restart, too.
func TestChangesCarryTheirNames(t *testing.T) {
	here := newWorld(12)
	rapid.Check(t, func(t *rapid.T) {
		g := generator{t, here}
		want := g.change()
		src, err := NewChanges(here.Registry).Append([]byte("front"), want)
		if err != nil {
			t.Fatal(err)
		}
		there := emptyWorld()
		there.buckets = here.buckets
		got, err := NewChanges(there.Registry).Read(src[len("front"):])
		if err != nil {
			t.Fatal(err)
		}
		clear(src)
		requireEqual(t, got, want)
		there.mustKnow(t, here, replication.Write{Change: got})
	})
}
