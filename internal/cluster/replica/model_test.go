package replica

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
)

// slotWrite is a slot as the model has it after an operation.
type slotWrite struct {
	op    int
	value replication.Value
}

// cell names a slot of a series.
type cell struct {
	id   metric.SeriesID
	slot uint64
}

// model is what a replica has, in maps, with what it had since it was last known to be on disk.
type model struct {
	groups [2]*replication.Group // of the series of each bucket
	*node
	infos   []buckets.Info
	ids     []metric.SeriesID
	slots   []uint64
	op      int
	durable int // operations up to it are on disk

	cells        map[cell][]slotWrite // the last one is what it is now
	incarnations map[metric.SeriesID][]slotWrite
	keys         map[replication.Key]int // op
	counts       map[replication.Key]replication.Counts
	hints        map[uint64]replication.Change
	dropped      map[uint64]bool // hints that may come back
	young        map[uint64]int  // hints that may be lost: op
	number       uint64
	at           replication.Position
	copied       map[cell]time.Time // slots that a copy filled, and no write has named since
	hidden       []hiddenChunkModel // chunks that were taken and do not show yet
}

// hiddenChunkModel is a chunk that was taken at a time.
type hiddenChunkModel struct {
	id   replication.ChunkID
	rows []replication.Row
	came time.Time
}

func newModel(t fataler, n *node) *model {
	m := &model{node: n, cells: make(map[cell][]slotWrite),
		incarnations: make(map[metric.SeriesID][]slotWrite), keys: make(map[replication.Key]int),
		counts: make(map[replication.Key]replication.Counts), hints: make(map[uint64]replication.Change),
		dropped: make(map[uint64]bool), young: make(map[uint64]int), copied: make(map[cell]time.Time),
		slots: []uint64{today, today + 1, today - 1, today - 719, today - 720, today - 86_400,
			today - 300*86_400}}
	m.infos = []buckets.Info{n.bucket(t, "plain", false), n.bucket(t, "pairs", true)}
	m.name()
	return m
}

// name makes the names of all series known, as messages do.
func (m *model) name() {
	m.ids = nil
	for i := range 6 {
		m.ids = append(m.ids, m.series(m.infos[i%2], i))
	}
}

func (m *model) timestamps(id metric.SeriesID) bool { return slices.Index(m.ids, id)%2 == 1 }

func (m *model) now(c cell) replication.Value {
	if list := m.cells[c]; len(list) > 0 {
		return list[len(list)-1].value
	}
	return replication.Value{}
}

func (m *model) incarnation(id metric.SeriesID) uint64 {
	if list := m.incarnations[id]; len(list) > 0 {
		return list[len(list)-1].value.Word
	}
	return 0
}

// rows draws points.
func (m *model) rows(t *rapid.T) (rows []replication.Row) {
	for range rapid.IntRange(1, 8).Draw(t, "rows") {
		id := rapid.SampledFrom(m.ids).Draw(t, "series")
		r := replication.Row{Series: id, Incarnation: m.incarnation(id),
			Slot:  rapid.SampledFrom(m.slots).Draw(t, "slot"),
			Value: replication.Value{Word: drawWord(t)}}
		if m.timestamps(id) && r.Value.Word != point.Stale {
			r.Value.Time = point.FromInt(rapid.Int64Range(-2, 2).Draw(t, "timestamp"))
		}
		rows = append(rows, r)
	}
	return rows
}

// drawWord draws a value, or a stale marker.
func drawWord(t *rapid.T) uint64 {
	if v := rapid.Int64Range(-3, 4).Draw(t, "value"); v < 4 {
		return point.FromInt(v)
	}
	return point.Stale
}

// columns draws columns of series of a bucket that were never deleted.
func (m *model) columns(t *rapid.T) (columns []replication.Column) {
	for range rapid.IntRange(0, 4).Draw(t, "columns") {
		half := rapid.IntRange(0, 1).Draw(t, "half")
		if m.groups[half] == nil {
			m.groups[half] = &replication.Group{
				Series: []metric.SeriesID{m.ids[half], m.ids[half+2], m.ids[half+4]}}
		}
		c := replication.Column{Group: m.groups[half], From: rapid.IntRange(0, 2).Draw(t, "from"),
			Slot: rapid.SampledFrom(m.slots).Draw(t, "slot")}
		for _, id := range c.Group.Series[c.From:] {
			if m.incarnation(id) > 0 || len(c.Words) > 0 && rapid.IntRange(0, 3).Draw(t, "end") == 0 {
				break
			}
			word, time := drawWord(t), uint64(0)
			if word != point.Stale {
				time = point.FromInt(rapid.Int64Range(-2, 2).Draw(t, "timestamp"))
			}
			c.Words = append(c.Words, word)
			if half == 1 {
				c.Times = append(c.Times, time)
			}
		}
		if len(c.Words) > 0 {
			columns = append(columns, c)
		}
	}
	return columns
}

// apply does to the model what a change does that comes first hand, or as a copy.
func (m *model) apply(c replication.Change, copies, larger bool) (counts replication.Counts) {
	m.op++
	for _, d := range c.Deletions {
		if d.Incarnation <= m.incarnation(d.Series) {
			continue
		}
		m.incarnations[d.Series] = append(m.incarnations[d.Series],
			slotWrite{m.op, replication.Value{Word: d.Incarnation}})
		for c := range m.cells {
			if c.id == d.Series {
				m.cells[c] = append(m.cells[c], slotWrite{m.op, replication.Value{}})
				delete(m.copied, c)
			}
		}
	}
	for _, r := range c.InRows().Rows {
		at := cell{r.Series, r.Slot}
		held := m.now(at)
		came, copied := m.copied[at]
		switch {
		case held == replication.Value{}:
			counts.Accepted++
			if copies {
				m.copied[at] = m.time()
			}
		case held == r.Value && !copies && copied && m.time().Unix()/10-came.Unix()/10 <= 1:
			counts.Accepted++
			delete(m.copied, at)
		case held == r.Value:
			counts.Duplicate++
		default:
			counts.Conflicting++
		}
		if held.Compare(r.Value) < 0 || !larger && r.Value.Word != point.Stale {
			m.cells[at] = append(m.cells[at], slotWrite{m.op, r.Value})
		}
	}
	return counts
}

func (m *model) write(t *rapid.T) {
	m.number++
	k := key(m.number, rapid.IntRange(0, partitions-1).Draw(t, "partition"))
	c := replication.Change{Partition: k.Partition, Columns: m.columns(t), Rows: m.rows(t)}
	m.touch(c.InRows().Rows)
	want := m.apply(c, false, m.copies > 1)
	got, at, err := m.Write(k, c)
	if err != nil || got != want {
		t.Fatalf("%+v, want %+v: %v", got, want, err)
	}
	m.keys[k], m.counts[k], m.at = m.op, got, at
}

func (m *model) merge(t *rapid.T) {
	c := replication.Change{Rows: m.rows(t)}
	m.touch(c.Rows)
	m.apply(c, true, true)
	at, err := m.Merge(c)
	if err != nil || at < m.at {
		t.Fatalf("%d behind %d: %v", at, m.at, err)
	}
	m.at = at
}

func (m *model) remove(t *rapid.T) {
	id := rapid.SampledFrom(m.ids).Draw(t, "deleted")
	// Clocks of long ago would be forgotten by the next flush.
	raise := rapid.Uint64Range(0, 2).Draw(t, "raise")
	if m.incarnation(id) == 0 && raise > 0 {
		raise += uint64(m.time().UnixNano())
	}
	c := replication.Change{
		Deletions: []replication.Deletion{{Series: id, Incarnation: m.incarnation(id) + raise}}}
	m.apply(c, true, true)
	at, err := m.Merge(c)
	if err != nil {
		t.Fatalf("%v", err)
	}
	m.at = at
}

func (m *model) hint(t *rapid.T) {
	m.number++
	m.op++
	c := replication.Change{Partition: 1, Rows: m.rows(t)}
	k := key(m.number, 1)
	k.For = ring.ID{9}
	at, err := m.KeepHint(k, replication.Hint{Number: m.number, For: k.For, Change: c})
	if err != nil {
		t.Fatalf("%v", err)
	}
	m.hints[m.number], m.young[m.number], m.keys[k], m.counts[k], m.at = c, m.op, m.op,
		replication.Counts{Accepted: len(c.Rows)}, at
}

func (m *model) deliver(t *rapid.T) {
	if len(m.hints) == 0 {
		return
	}
	for n := range m.hints {
		m.DropHint(n)
		delete(m.hints, n)
		m.dropped[n] = true
		return
	}
}

// settle lets the keys of early batches go.
func (m *model) settle(t *rapid.T) {
	below := m.number - min(m.number, rapid.Uint64Range(0, 5).Draw(t, "unsettled"))
	if m.Settle(replication.BatchID{Coordinator: ring.ID{1}, Boot: 1, Number: m.number + 1}, below) {
		t.Fatalf("a new batch is old")
	}
	for k := range m.keys {
		if k.Batch.Number < below {
			delete(m.keys, k)
		}
	}
}

func (m *model) drop(t *rapid.T) {
	n := rapid.IntRange(0, partitions-1).Draw(t, "dropped")
	m.show()
	m.op++
	m.Drop(replication.Share{Partition: n})
	clear(m.copied)
	for c := range m.cells {
		if partitionOf(c.id) == n {
			m.cells[c] = append(m.cells[c], slotWrite{m.op, replication.Value{}})
		}
	}
	if slices.Contains(m.Holds(), replication.Share{Partition: n}) {
		t.Fatalf("partition %d is held", n)
	}
}

// passTime lets some seconds pass.
func (m *model) passTime(t *rapid.T) {
	m.node.now.Add(rapid.SampledFrom([]int64{4, 11}).Draw(t, "seconds"))
}

// sync waits until all is on disk.
func (m *model) sync(t fataler) {
	m.node.durable(t, m.at)
	m.durable = m.op
	clear(m.young)
}

// flush lets the points go from memory to files.
func (m *model) flush(t *rapid.T) {
	if _, err := m.store.Flush(t.Context()); err != nil {
		t.Fatalf("%v", err)
	}
	if rapid.Bool().Draw(t, "merged") {
		if _, err := m.store.Merge(t.Context()); err != nil {
			t.Fatalf("%v", err)
		}
	}
}

// fail lets the node crash at any moment, and takes over what is left: every slot as it was at a
// time, and none as it was before that was on disk or before a key that is there.
func (m *model) fail(t *rapid.T) {
	synced := m.durable
	disk := m.fs.CrashClone(vfs.CrashCloneCfg{
		UnsyncedDataPercent: rapid.SampledFrom([]int{0, 50, 100}).Draw(t, "kept"),
		RNG:                 rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))})
	m.node.stop(t)
	m.fs = disk
	m.node.start(t)
	m.name()
	m.at, m.hidden = 0, nil
	clear(m.copied)
	for k, op := range m.keys {
		switch counts, at, ok := m.PriorResult(k); {
		case ok && (counts != m.counts[k] || at != 0):
			t.Fatalf("%+v: %+v at %d, was %+v", k, counts, at, m.counts[k])
		case ok && k.For != (ring.ID{9}):
			synced = max(synced, op)
		case !ok && op <= m.durable:
			t.Fatalf("%+v was on disk, and is not seen", k)
		case !ok:
			delete(m.keys, k)
		}
	}
	for c, list := range m.cells {
		m.cells[c] = m.survivors(t, list, m.Read(c.id, c.slot, c.slot+1)[0].Value, synced, c)
	}
	for id, list := range m.incarnations {
		m.incarnations[id] = m.survivors(t, list, replication.Value{Word: m.Incarnation(id)}, synced, id)
	}
	m.durable = m.op
	m.hintsSurvived(t)
}

// survivors returns what is left of what a slot was.
func (m *model) survivors(t *rapid.T, list []slotWrite, found replication.Value, synced int,
	what any) []slotWrite {
	t.Helper()
	for i, l := range slices.Backward(list) {
		if l.value == found {
			return list[:i+1]
		}
		if l.op <= synced {
			t.Fatalf("%x: %+v, which is older than %+v of operation %d of %d that were on disk", what, found,
				l.value, l.op, synced)
		}
	}
	if (found != replication.Value{}) {
		t.Fatalf("%x: %+v was never there", what, found)
	}
	return nil
}

func (m *model) hintsSurvived(t *rapid.T) {
	there := make(map[uint64]bool)
	for _, h := range m.Hints() {
		c, ok := m.Hint(h.Number)
		if !ok || h.Rows != len(c.Rows) {
			t.Fatalf("%+v", h)
		}
		if m.dropped[h.Number] {
			m.hints[h.Number] = c
		}
		there[h.Number] = true
		if want, ok := m.hints[h.Number]; !ok || !slices.Equal(want.Rows, c.Rows) {
			t.Fatalf("hint %d: %+v, want %+v", h.Number, c, want)
		}
	}
	for n := range m.hints {
		if _, young := m.young[n]; !there[n] && !young {
			t.Fatalf("hint %d was on disk, and is lost", n)
		} else if !there[n] {
			delete(m.hints, n)
		}
	}
	clear(m.young)
	clear(m.dropped)
}

// prepare makes some digests, and leaves others for later.
func (m *model) prepare(t *rapid.T) {
	share := replication.Share{Partition: rapid.IntRange(0, partitions-1).Draw(t, "prepared")}
	m.showAdopted()
	m.index.refresh()
	for range rapid.IntRange(1, 3).Draw(t, "parts") {
		m.index.update(m.index.share(share), rapid.IntRange(1, 4).Draw(t, "digests"))
	}
}

// A replica is the model, whatever is written, deleted, flushed and lost in crashes.
func TestReplicaIsTheModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := newNode(t, func(o *Options) {
			o.MaxDigests = rapid.SampledFrom([]int{0, 2}).Draw(t, "digests")
		})
		defer func() { n.stop(t) }()
		m := newModel(t, n)
		n.slack = 4 << 10
		steps := []func(*rapid.T){m.write, m.write, m.write, m.merge, m.merge, m.hint, m.deliver,
			m.settle, m.check, func(t *rapid.T) {
				m.sync(t)
			}, m.flush, m.fail,
			m.give, m.give, m.adopt, m.prepare, m.prepare, m.remove, m.drop, m.passTime}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			rapid.SampledFrom(steps).Draw(t, "step")(t)
		}
		m.check(t)
	})
}
