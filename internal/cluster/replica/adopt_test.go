package replica

import (
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
)

// encodeRows returns rows of a series in one chunk as a chunk.
func encodeRows(rows []replication.Row) replication.Chunk {
	words, times := make([]uint64, chunk.Slots), make([]uint64, chunk.Slots)
	timed := false
	for _, r := range rows {
		words[r.Slot%chunk.Slots], times[r.Slot%chunk.Slots] = r.Value.Word, r.Value.Time
		timed = timed || r.Value.Time != 0
	}
	var e chunk.Encoder
	c := replication.Chunk{
		ID:          replication.ChunkID{Series: rows[0].Series, Number: rows[0].Slot / chunk.Slots},
		Incarnation: rows[0].Incarnation}
	c.Words = e.Append(nil, 0, words)
	c.Points = e.Count()
	if timed {
		c.Times = e.Append(nil, 0, times)
	}
	return c
}

// rowsIn returns the points of a chunk.
func rowsIn(t fataler, c replication.Chunk) (rows []replication.Row) {
	words, times := make([]uint64, chunk.Slots), make([]uint64, chunk.Slots)
	if c.Points == 0 {
		return nil
	}
	err := chunk.DecodeRange(words, c.Words, 0)
	if err == nil && c.Times != nil {
		err = chunk.DecodeRange(times, c.Times, 0)
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	for i, w := range words {
		if w != point.Unset {
			rows = append(rows, replication.Row{Series: c.ID.Series, Incarnation: c.Incarnation,
				Slot: c.ID.Number*chunk.Slots + uint64(i), Value: replication.Value{Word: w, Time: times[i]}})
		}
	}
	return rows
}

// give gives whole chunks, as comparisons do. Those that then show went the way of rows; the others
// were taken for a file.
func (m *model) give(t *rapid.T) {
	of := make(map[replication.ChunkID][]replication.Row)
	for _, r := range m.rows(t) {
		id := replication.ChunkID{Series: r.Series, Number: r.Slot / chunk.Slots}
		if !slices.ContainsFunc(of[id], func(o replication.Row) bool { return o.Slot == r.Slot }) {
			of[id] = append(of[id], r)
		}
	}
	var c, again replication.Change
	for id, rows := range of {
		c.Chunks = append(c.Chunks, encodeRows(rows))
		if slices.ContainsFunc(m.hidden, func(h hiddenChunkModel) bool {
			return h.id == id &&
				m.lives(h)
		}) {
			again.Chunks = append(again.Chunks, encodeRows(rows))
		}
	}
	// lets all show; which of its own chunks would do so as well is not easily said
	if len(again.Chunks) > 0 {
		c = again
		m.show()
	}
	slices.SortFunc(c.Chunks, func(a, b replication.Chunk) int { return a.ID.Compare(b.ID) })
	before, _ := m.AdoptProgress()
	at, err := m.Merge(c)
	if err != nil {
		t.Fatalf("%v", err)
	}
	m.at = at
	for _, given := range c.Chunks {
		rows, id := of[given.ID], given.ID
		vacant := !slices.ContainsFunc(m.slots, func(slot uint64) bool {
			return slot/chunk.Slots == id.Number && m.now(cell{id.Series, slot}) != replication.Value{}
		})
		if shows := (m.Read(id.Series, rows[0].Slot,
			rows[0].Slot+1)[0].Value != replication.Value{}); shows || !vacant {
			m.apply(replication.Change{Rows: rows}, true, true)
			continue
		}
		m.hidden = append(m.hidden, hiddenChunkModel{id, rows, m.time()})
		before++
	}
	if taken, _ := m.AdoptProgress(); taken < before {
		t.Fatalf("%d chunks were taken, %d do not show", taken, before)
	}
}

// touch lets hidden chunks show where one of them is written to.
func (m *model) touch(rows []replication.Row) {
	for _, r := range rows {
		if slices.ContainsFunc(m.hidden, func(h hiddenChunkModel) bool {
			return h.id == replication.ChunkID{Series: r.Series, Number: r.Slot / chunk.Slots} && m.lives(h)
		}) {
			m.show()
		}
	}
}

// lives reports whether the series of a hidden chunk was not deleted meanwhile.
func (m *model) lives(h hiddenChunkModel) bool {
	return h.rows[0].Incarnation == m.incarnation(h.id.Series)
}

// show lets hidden chunks show whose series were not deleted meanwhile.
func (m *model) show() {
	for _, h := range m.hidden {
		if !m.lives(h) {
			continue
		}
		m.apply(replication.Change{Rows: h.rows}, true, true)
		for _, r := range h.rows {
			m.copied[cell{r.Series, r.Slot}] = h.came
		}
	}
	m.hidden = nil
}

// adopt puts chunks that were taken into files.
func (m *model) adopt(t *rapid.T) {
	if _, err := m.Adopt(t.Context()); err != nil {
		t.Fatalf("%v", err)
	}
	m.show()
}

// A chunk that is in a file survives a crash, with the definition of its series; one that is not
// leaves nothing. What is written to it in between counts by what it holds.
func TestAdoptedChunksAreOnDisk(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	defer n.stop(t)
	info := n.bucket(t, "b", false)
	id := n.series(info, 1)
	number := uint64(today) / chunk.Slots
	var chunks []replication.Chunk
	for back := range uint64(3) {
		chunks = append([]replication.Chunk{
			encodeRows([]replication.Row{row(id, (number-10-back)*chunk.Slots+5, 7),
				row(id, (number-10-back)*chunk.Slots+6, 8)})}, chunks...)
	}
	if _, err := n.Merge(replication.Change{Chunks: chunks}); err != nil {
		t.Fatal(err)
	}
	if taken, waiting := n.AdoptProgress(); taken != 3 || waiting == 0 || n.AdoptDue() {
		t.Fatalf("%d chunks are taken, %d bytes", taken, waiting)
	}
	last := (number-10)*chunk.Slots + 5
	read := func() replication.Value { return n.Read(id, last, last+1)[0].Value }
	if v := read(); v != (replication.Value{}) {
		t.Fatalf("%+v shows before it is in a file", v)
	}
	n.now.Add(int64(2 * adoptAge / time.Second))
	if !n.AdoptDue() {
		t.Fatal("chunks that have waited long are not due")
	}
	if _, err := n.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	crash := func() {
		disk := n.fs.CrashClone(vfs.CrashCloneCfg{})
		n.stop(t)
		n.fs = disk
		n.start(t)
		n.series(info, 1)
	}
	crash()
	if v := read(); v.Word != point.FromInt(7) {
		t.Fatalf("behind a crash: %+v", v)
	}
	if copies := n.store.Copies().Total(info.ID); copies.Accepted != 6 {
		t.Errorf("the account of copies has %d points", copies.Accepted)
	}
	// A smaller value does not overwrite what a chunk brings that does not show yet.
	free := encodeRows([]replication.Row{row(id, (number-20)*chunk.Slots, 9)})
	if _, err := n.Merge(replication.Change{Chunks: []replication.Chunk{free}}); err != nil {
		t.Fatal(err)
	}
	counts, _, err := n.Write(key(1, 0),
		replication.Change{Copies: 3, Rows: []replication.Row{row(id, (number-20)*chunk.Slots, 3)}})
	if err != nil || counts.Conflicting != 1 {
		t.Fatalf("%+v, %v", counts, err)
	}
	if v := n.Read(id, (number-20)*chunk.Slots,
		(number-20)*chunk.Slots+1)[0].Value; v.Word != point.FromInt(9) {
		t.Fatalf("%+v", v)
	}
	// A crash takes what is in no file.
	free = encodeRows([]replication.Row{row(id, (number-30)*chunk.Slots, 9)})
	if _, err := n.Merge(replication.Change{Chunks: []replication.Chunk{free}}); err != nil {
		t.Fatal(err)
	}
	crash()
	first := (number - 30) * chunk.Slots
	if v := n.Read(id, first, first+1)[0].Value; v != (replication.Value{}) {
		t.Fatalf("%+v was in no file", v)
	}
}

// A chunk that does not show yet does not come back behind a drop or a deletion, though its series
// does.
func TestWhatWentIsNotAdopted(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(n *node, id metric.SeriesID) (incarnation uint64){
		"dropped": func(n *node, id metric.SeriesID) uint64 {
			n.Drop(replication.Share{Partition: partitionOf(id)})
			return 0
		},
		"deleted": func(n *node, id metric.SeriesID) uint64 {
			clock := uint64(n.time().UnixNano())
			if _, err := n.Merge(replication.Change{
				Deletions: []replication.Deletion{{Series: id, Incarnation: clock}}}); err != nil {
				t.Fatal(err)
			}
			return clock
		},
	} {
		n := newNode(t, nil)
		id := n.series(n.bucket(t, "b", false), 1)
		if _, err := n.Merge(replication.Change{
			Chunks: []replication.Chunk{encodeRows([]replication.Row{row(id, today-7200,
				7)})}}); err != nil {
			t.Fatal(err)
		}
		r := row(id, today, 1)
		r.Incarnation = away(n, id)
		if _, err := n.Merge(replication.Change{Rows: []replication.Row{r}}); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Adopt(t.Context()); err != nil {
			t.Fatal(err)
		}
		if v := n.Read(id, today-7200, today-7199)[0].Value; v != (replication.Value{}) {
			t.Errorf("%s: %+v is back", name, v)
		}
		n.stop(t)
	}
}

// A merge does not take a series for expired that has nothing but a chunk on its way.
func TestASeriesWaitsForItsChunk(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	defer n.stop(t)
	id := n.series(n.bucket(t, "b", false), 1)
	if _, err := n.Merge(replication.Change{
		Chunks: []replication.Chunk{encodeRows([]replication.Row{row(id, today-7200, 7)})}}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := n.store.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := n.Read(id, today-7200, today-7199)[0].Value; v.Word != point.FromInt(7) {
		t.Errorf("%+v", v)
	}
}

// What lets a sheet go while it is made anew in parts does not show in the digest.
func TestDigestsThatGoMeanwhile(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	defer n.stop(t)
	info := n.bucket(t, "b", false)
	var rows []replication.Row
	share := replication.Share{Partition: partitionOf(n.series(info, 0))}
	for i := 0; len(rows) < 3; i++ {
		if id := n.series(info, i); partitionOf(id) == share.Partition {
			rows = append(rows, row(id, today, 7))
		}
	}
	write := func(slot uint64) {
		for i := range rows {
			rows[i].Slot = slot
		}
		if _, err := n.Merge(replication.Change{Rows: slices.Clone(rows)}); err != nil {
			t.Fatal(err)
		}
	}
	write(today)
	n.Windows(share)
	write(today + 1)
	x, sh := &n.index, n.index.share(share)
	if x.update(sh, 1) {
		t.Fatal("all digests are one")
	}
	sh.digests.drop(x, 0, today)
	write(today + 2)
	got := n.Windows(share)
	sh.digests.forget()
	if want := n.Windows(share); !slices.Equal(got, want) || len(got) != 1 {
		t.Errorf("%+v, made anew %+v", got, want)
	}
}

// A chunk that does not decode, or has other points than it says, is refused whole.
func TestChunksThatCameDamaged(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	defer n.stop(t)
	id := n.series(n.bucket(t, "b", false), 1)
	good := encodeRows([]replication.Row{row(id, today, 7), row(id, today+1, 9)})
	for name, change := range map[string]func(c *replication.Chunk){
		"cut":    func(c *replication.Chunk) { c.Words = c.Words[:len(c.Words)-1] },
		"empty":  func(c *replication.Chunk) { c.Words = nil },
		"points": func(c *replication.Chunk) { c.Points++ },
		"times":  func(c *replication.Chunk) { c.Times = []byte{0xff} },
	} {
		bad := good
		bad.Words = slices.Clone(good.Words)
		change(&bad)
		if _, err := n.Merge(replication.Change{Chunks: []replication.Chunk{bad}}); err == nil {
			t.Errorf("%s: it is taken", name)
		}
		if v := n.Read(id, today, today+2); v[0].Value != (replication.Value{}) ||
			v[1].Value != (replication.Value{}) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}
