package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/reader"
	"dalmatiner/internal/write/intake"
)

const metaBuckets = 3

// metaCell is a point. One that a TTL has hidden at any time may have been
// removed or not when the TTL grows or the clock steps back: it is not sure.
type metaCell struct {
	word, timestamp uint64
	sure            bool
}

// metaBucket is the truth of a bucket.
type metaBucket struct {
	info  buckets.Info
	cells map[int]map[int64]metaCell // of all series that were named
	gone  int64                      // behind the last slot that a TTL ever hid
	first int64                      // slot that was ever stored
	past  int64                      // behind the last one
}

func (b *metaBucket) clone() *metaBucket {
	if b == nil {
		return nil
	}
	c := *b
	c.cells = make(map[int]map[int64]metaCell, len(b.cells))
	for series, cells := range b.cells {
		c.cells[series] = maps.Clone(cells)
	}
	return &c
}

// slot returns the slot of a time in seconds.
func (b *metaBucket) slot(now int64) int64 { return now * 1000 / b.info.Resolution }

// lowest returns the first slot that the TTL leaves.
func (b *metaBucket) lowest(now int64) int64 {
	if b.info.TTL == 0 {
		return 0
	}
	return max(b.slot(now)-b.info.TTL, 0)
}

// sure reports whether a series has points that must be there.
func (b *metaBucket) sure(series int) bool {
	for _, c := range b.cells[series] {
		if c.sure {
			return true
		}
	}
	return false
}

// timestamp gives a write timestamps: most near their slots, some of them months
// off, a few too far. Without timestamps in the bucket it does nothing.
func (b *metaBucket) timestamp(r *rand.Rand, w *call) {
	if !b.info.HPTS {
		return
	}
	for i := range w.Words {
		timestamp := b.info.SlotBegin(uint64(w.Slot+int64(i))) + uint64(r.IntN(int(second)))
		switch r.IntN(24) {
		case 0:
			timestamp -= uint64(r.Int64N(416 * 24 * 3600 * 1e9))
		case 1:
			timestamp += uint64(r.Int64N(418 * 24 * 3600 * 1e9))
		case 2:
			timestamp -= 418 * 24 * 3600 * 1e9
		}
		w.Timestamps = append(w.Timestamps, timestamp)
	}
}

// metaSaved is what a snapshot holds.
type metaSaved struct {
	dir     string
	buckets [metaBuckets]*metaBucket
	counts  account.Counts
}

// meta runs one script.
type meta struct {
	t        *rapid.T
	st       settings
	mem      *vfs.MemFS
	dir      string
	dirs     int // that were named
	clock    *testClock
	steady   *testClock   // of the memory budget; it never steps back
	pressure int64        // percent of memory.limit
	extra    atomic.Int64 // what it takes beside the store's own use, in bytes
	s        *Store
	x        [metaBuckets]*intake.Session
	buckets  [metaBuckets]*metaBucket
	counts   account.Counts // of all buckets; Accepted stands for all that was stored
	saved    *metaSaved
	done     []metaOp
}

func metaName(i int) string { return fmt.Sprintf("meta%d", i) }

func (m *meta) open() {
	o := m.st.o
	o.FS, o.Dir, o.Now = m.mem, m.dir, m.clock.Now
	o.Memory = memory.New(m.st.memory, m.steady.Now, nil)
	o.maxMergedFile = m.st.mergedFile
	m.s = mustOpen(m, o)
	o.Memory.Add(memory.Pool{Name: "test", OffHeap: true, Use: m.extra.Load})
	m.press(metaOp{n: m.pressure})
}

// Helper and Fatalf make meta a fataler that says what led there.
func (m *meta) Helper() { m.t.Helper() }

func (m *meta) Fatalf(format string, args ...any) {
	m.t.Helper()
	var text []string
	for _, o := range m.done {
		text = append(text, o.String())
	}
	m.t.Fatalf("%s\nscript: %s\nunder: %s", fmt.Sprintf(format, args...), strings.Join(text, " "),
		&m.st)
}

func (m *meta) must(err error) {
	m.t.Helper()
	if err != nil {
		m.Fatalf("%v", err)
	}
}

func (m *meta) now() int64 { return m.clock.Now().Unix() }

func (m *meta) step(d time.Duration) {
	m.clock.Advance(d)
	m.steady.Advance(d.Abs())
	m.s.clock.Advance()
	m.age()
}

// age notes what is hidden now.
func (m *meta) age() {
	for _, b := range m.buckets {
		if b == nil || b.lowest(m.now()) <= b.gone {
			continue
		}
		b.gone = b.lowest(m.now())
		for _, cells := range b.cells {
			for slot, c := range cells {
				if slot < b.gone {
					c.sure = false
					cells[slot] = c
				}
			}
		}
	}
}

// short reports whether memory may be so short that new series and buckets are refused: the store
// takes more of its own behind a press.
func (m *meta) short() bool { return m.st.memory > 0 && m.pressure >= 70 }

// put sends one write and says what it means.
func (m *meta) put(b *metaBucket, x *intake.Session, w call) {
	m.t.Helper()
	for i, v := range w.Words {
		// An old point may be there or not: it is not known which of the two wins.
		if c, there := b.cells[w.Series][w.Slot+int64(i)]; v == point.Stale && there && !c.sure {
			w.Words[i] = point.Unset
		}
	}
	if m.short() {
		if m.refused(b, x, w) {
			return
		}
	} else {
		w.Send(x)
	}
	cells := b.cells[w.Series]
	if cells == nil {
		cells = map[int64]metaCell{}
		b.cells[w.Series] = cells
	}
	now := m.now()
	past := (now*1000+m.st.o.MaxFuture.Milliseconds())/b.info.Resolution + 1
	for i, v := range w.Words {
		slot := w.Slot + int64(i)
		c := metaCell{word: v, timestamp: b.info.SlotBegin(uint64(slot)), sure: true}
		if w.Timestamps != nil {
			c.timestamp = w.Timestamps[i]
		}
		if v == point.Stale { // for its slot
			c.timestamp = b.info.SlotBegin(uint64(slot))
		}
		off := time.Duration(c.timestamp - b.info.SlotBegin(uint64(slot)))
		switch {
		case slot < b.lowest(now):
			m.counts.Refused[account.Expired]++
		case slot >= past:
			m.counts.Refused[account.Future]++
		case v == point.Unset:
			m.counts.Unset++
		case off >= 1<<55 || off < -1<<55:
			m.counts.Refused[account.BadTimestamp]++
		default:
			m.counts.Accepted++
			if v == point.Stale && cells[slot].word != point.Unset {
				continue
			}
			cells[slot] = c
			b.first, b.past = min(b.first, slot), max(b.past, slot+1)
		}
	}
}

// refused sends a write and reports whether it was refused for lack of memory:
// then all of it was, some points perhaps for other reasons.
func (m *meta) refused(b *metaBucket, x *intake.Session, w call) bool {
	_, err := x.Commit()
	m.must(err)
	before := m.s.Account().Total(b.info.ID)
	w.Send(x)
	_, err = x.Commit() // the session may hold points of names that are gone
	m.must(err)
	after := m.s.Account().Total(b.info.ID)
	if after.Refused[account.Memory] == before.Refused[account.Memory] {
		return false
	}
	if n := after.RefusedTotal() - before.RefusedTotal(); n != uint64(len(w.Words)) ||
		b.sure(w.Series) {
		m.Fatalf("of %d points of series %d, %d were refused for lack of memory", len(w.Words), w.Series,
			n)
	}
	for reason := range after.Refused {
		m.counts.Refused[reason] += after.Refused[reason] - before.Refused[reason]
	}
	return true
}

// forgetAll deletes the series of a choice.
func (m *meta) forgetAll(i int, choice deletion.Choice) {
	b := m.buckets[i]
	if b == nil {
		return
	}
	sure, named := int64(0), int64(0)
	for series := range b.cells {
		if !choice.Takes(key(series)) {
			continue
		}
		if named++; b.sure(series) {
			sure++
		}
	}
	out, err := m.s.DeleteSeries(context.Background(), metaName(i), choice, false)
	if errors.Is(err, deletion.ErrUnknownSeries) && sure == 0 {
		err = nil
	}
	m.must(err)
	if out.Series < sure || out.Series > named {
		m.Fatalf("%d series are deleted by %q, want %d to %d", out.Series, choice.Key, sure, named)
	}
	maps.DeleteFunc(b.cells, func(series int, _ map[int64]metaCell) bool {
		return choice.Takes(key(series))
	})
}

// check compares every answer.
func (m *meta) check() {
	m.t.Helper()
	for i, b := range m.buckets {
		info, err := m.s.BucketByName(metaName(i))
		if b == nil {
			if !errors.Is(err, buckets.ErrUnknown) {
				m.Fatalf("bucket %d was deleted: %v", i, err)
			}
			continue
		}
		m.must(err)
		if info != b.info {
			m.Fatalf("bucket %d is %+v, want %+v", i, info, b.info)
		}
		m.checkList(b)
		for series := range modelSeries {
			m.checkSeries(b, series)
			m.checkAggregates(b, series)
		}
		for series, cells := range b.cells {
			for slot := range cells {
				if series >= modelSeries && series%8 == 0 {
					m.checkCell(b, series, slot)
				}
			}
		}
	}
	var sum account.Counts
	for _, c := range m.s.Account().Totals() {
		sum.Add(&c)
	}
	if sum.StoredPoints() != m.counts.Accepted || sum.Unset != m.counts.Unset ||
		sum.Refused != m.counts.Refused {
		m.Fatalf("the account says %+v, want %+v with all that was stored as accepted", sum, m.counts)
	}
	if names, n := m.s.Damage(); n != 0 {
		m.Fatalf("%d damages: %v", n, names)
	}
	if lost := m.s.Account().Losses(); len(lost) != 0 {
		m.Fatalf("lost: %v", lost)
	}
}

// checkList: a series without points may have left.
func (m *meta) checkList(b *metaBucket) {
	got := make(map[string]bool)
	m.must(m.s.Metrics(context.Background(), b.info, nil, func(key []byte) bool {
		got[string(key)] = true
		return true
	}))
	for series := range b.cells {
		name := string(key(series))
		if b.sure(series) && !got[name] {
			m.Fatalf("series %d of %s is not listed", series, b.info.Name)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		m.Fatalf("%d series of %s are listed that there are not: %v", len(got), b.info.Name, got)
	}
}

// checkSeries compares a series.
func (m *meta) checkSeries(b *metaBucket, series int) {
	if b.past == 0 {
		return
	}
	lowest, cells, found := b.lowest(m.now()), b.cells[series], 0
	from, past := b.first-1000, b.past+1000
	values, timestamps := make([]uint64, reader.MaxRead), make([]uint64, reader.MaxRead)
	for at := from; at < past; at += reader.MaxRead {
		n := min(reader.MaxRead, past-at)
		m.must(m.s.ReadWithStale(context.Background(), b.info, key(series), at, values[:n],
			timestamps[:n]))
		for j, got := range values[:n] {
			if got == point.Unset {
				continue
			}
			slot := at + int64(j)
			c := cells[slot]
			if slot < lowest || got != c.word || timestamps[j] != c.timestamp {
				m.Fatalf("%s series %d (%s) slot epoch%+d holds %x at %d, want %x at %d", b.info.Name,
					series, metric.Text(key(series)), slot-b.slot(epoch), got, timestamps[j], c.word, c.timestamp)
			}
			if c.sure {
				found++
			}
		}
	}
	for slot, c := range cells {
		if c.sure {
			found--
		}
		if slot%16 == 0 {
			m.checkCell(b, series, slot)
		}
	}
	if found != 0 {
		for slot := range cells {
			m.checkCell(b, series, slot)
		}
		m.Fatalf("%s series %d: %d points are in reads of a slot and not in a long one", b.info.Name,
			series, -found)
	}
}

// checkCell compares a point that was sent.
func (m *meta) checkCell(b *metaBucket, series int, slot int64) {
	c := b.cells[series][slot]
	if got := readAll(m, m.s, b.info.Name, series, slot, 1)[0]; got != c.word &&
		(c.sure || got != point.Unset) {
		m.Fatalf("%s series %d (%s) slot epoch%+d holds %x, want %x", b.info.Name,
			series, metric.Text(key(series)), slot-b.slot(epoch), got, c.word)
	}
}

// checkAggregates compares steps of a series with its points.
func (m *meta) checkAggregates(b *metaBucket, series int) {
	r := rand.New(rand.NewPCG(uint64(series), uint64(len(m.done))))
	from := max(b.first-1000, b.gone)
	if from >= b.past {
		return
	}
	first := from / chunk.Slots
	end := min(first+150, b.past/chunk.Slots+1)
	if got, want := mustDigest(m, m.s, b.info, key(series), first, end),
		naiveDigest(m, m.s, b.info, key(series), m.s.incarnationOf(b.info.ID, key(series)), first,
			end); got != want {
		m.Fatalf("%s series %d: digest %x of %d chunks from epoch%+d on, want %x", b.info.Name, series,
			got, end-first, first*chunk.Slots-b.slot(epoch), want)
	}
	step := []int64{1 + r.Int64N(100), 60, chunk.Slots, 7200, 86_400}[r.IntN(5)]
	from += r.Int64N(b.past - from)
	from -= from % step * r.Int64N(2)
	if from = max(from, b.gone); from >= b.past {
		return
	}
	dst := make([]chunk.Header, min(1+(b.past-from)/step, reader.MaxRead/step))
	_, err := m.s.Series(b.info, key(series)).Aggregate(context.Background(), from, step, dst)
	m.must(err)
	words := readAll(m, m.s, b.info.Name, series, from, len(dst)*int(step))
	for i := range dst {
		want := drivetest.Aggregates(words[i*int(step):(i+1)*int(step)], from+int64(i)*step)
		if err := drivetest.EqualAggregates(dst[i], want); err != nil {
			m.Fatalf("%s series %d step %d of %d from epoch%+d: %v", b.info.Name, series, i, step,
				from-b.slot(epoch), err)
		}
	}
}
