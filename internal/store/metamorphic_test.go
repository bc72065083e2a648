package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/account"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/point"
	"dalmatiner/internal/wal"
)

// A script is a list of operations. Run under any settings it must give the
// answers of the model, which knows none of them: settings decide when and where
// points are moved, never what is answered.

// metaOp is one operation: a letter of metaOps, a bucket and a number.
type metaOp struct {
	kind   string
	bucket int
	n      int64
}

func (o metaOp) String() string { return fmt.Sprintf("%s(%d,%d)", o.kind, o.bucket, o.n) }

// metaOps are the operations and how often they come. To add one, add it here:
// what it does to a store, and what that means to the model.
var metaOps = map[string]struct {
	weight int
	most   int64 // n is drawn from [0, most]
	do     func(m *meta, o metaOp)
}{
	"write":   {12, 1 << 40, (*meta).write},
	"churn":   {1, 1 << 40, (*meta).churn},
	"advance": {6, 0, func(m *meta, o metaOp) { m.step(time.Minute) }},
	"hours":   {3, 30, func(m *meta, o metaOp) { m.step(time.Duration(o.n) * time.Hour) }},
	"back":    {2, 3600, func(m *meta, o metaOp) { m.step(-time.Duration(o.n) * time.Second) }},
	"flush":   {3, 0, (*meta).flush},
	"merge":   {2, 0, (*meta).merge},
	"restart": {1, 0, (*meta).restart},
	"crash":   {2, 100, (*meta).crash},
	"tick":    {2, 0, func(m *meta, o metaOp) { m.s.everySecond() }},
	"ttl":     {1, 200_000, (*meta).ttl},
	"delete":  {1, 0, (*meta).remove},
	"forget":  {2, modelSeries - 1, (*meta).forget},
	"check":   {1, 0, func(m *meta, o metaOp) { m.check() }},
}

func drawOp(t *rapid.T) metaOp {
	var kinds []string
	for kind, op := range metaOps {
		for range op.weight {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	o := metaOp{kind: rapid.SampledFrom(kinds).Draw(t, "kind"), bucket: rapid.IntRange(0, 1).Draw(t, "bucket")}
	o.n = rapid.Int64Range(0, metaOps[o.kind].most).Draw(t, "n")
	return o
}

// settings are what must make no difference.
type settings struct {
	o          Options
	mergedFile int64
}

func drawSettings(t *rapid.T) settings {
	one := func(name string, of ...int64) int64 { return rapid.SampledFrom(of).Draw(t, name) }
	var st settings
	st.o = DefaultOptions("/data")
	st.o.CachePoints = int(one("cache_points", 1, 7, 60, 720))
	st.o.FlushBytes = one("flush.bytes", 200, 5_000, 64<<20)
	st.o.LateMemory = one("late.memory", 64, 3_000, 64<<20)
	st.o.WALMaxSize = one("wal.max_size", 4<<10, 100<<10, 1<<30)
	st.o.HeadGrace = time.Duration(one("head.grace", 1, 60, 3600)) * time.Second
	st.o.HeadMaxAge = time.Duration(one("head age", 1, 600)) * time.Second
	st.o.FlushInterval = time.Duration(one("flush.interval", 1, 720, 36_000)) * time.Second
	st.o.MaxOpenFiles = int(one("storage.max_open_files", 1, 2, 1024))
	st.o.RingSize = int(one("ring_size", 2, 64, 1024))
	st.o.WALSync = wal.SyncMode(one("wal.sync", int64(wal.Always), int64(wal.Interval), int64(wal.Off)))
	st.o.BackgroundMerge = rapid.Bool().Draw(t, "merge.background")
	st.o.MinFree, st.o.WALInterval = 0, time.Millisecond
	st.mergedFile = one("merged file", 64, maxMergedFile)
	return st
}

func (st *settings) String() string {
	o := &st.o
	return fmt.Sprintf("cache_points=%d flush.bytes=%d late.memory=%d wal.max_size=%d head.grace=%v age=%v flush.interval=%v storage.max_open_files=%d ring_size=%d wal.sync=%v merge.background=%v merged file=%d",
		o.CachePoints, o.FlushBytes, o.LateMemory, o.WALMaxSize, o.HeadGrace, o.HeadMaxAge, o.FlushInterval, o.MaxOpenFiles, o.RingSize, o.WALSync, o.BackgroundMerge, st.mergedFile)
}

// metaBucket is the truth of a bucket.
type metaBucket struct {
	words map[[2]int64]uint64
	keys  map[int]bool
	ttl   int64
	past  int64 // behind the last slot that was ever stored
}

// meta runs one script.
type meta struct {
	t       *rapid.T
	st      settings
	mem     *vfs.MemFS
	clock   *testClock
	s       *Store
	latest  int64 // the highest clock there was, in seconds
	buckets [2]*metaBucket
	counts  account.Counts // of all buckets; Accepted stands for all that was stored
	done    []metaOp
}

func metaName(i int) string { return fmt.Sprintf("meta%d", i) }

func (m *meta) open() {
	o := m.st.o
	o.FS, o.Now = m.mem, m.clock.Now
	m.s = mustOpen(m, o)
	m.s.mergeMu.Lock()
	m.s.maxMergedFile = m.st.mergedFile
	m.s.mergeMu.Unlock()
}

// Helper and Fatalf make meta a fataler that says what led there.
func (m *meta) Helper() { m.t.Helper() }

func (m *meta) Fatalf(format string, args ...any) {
	m.t.Helper()
	var text []string
	for _, o := range m.done {
		text = append(text, o.String())
	}
	m.t.Fatalf("%s\nscript: %s\nunder: %s", fmt.Sprintf(format, args...), strings.Join(text, " "), &m.st)
}

func (m *meta) must(err error) {
	m.t.Helper()
	if err != nil {
		m.Fatalf("%v", err)
	}
}

func (m *meta) now() int64 { return m.clock.Now().Unix() }

func (m *meta) step(d time.Duration) {
	m.clock.advance(d)
	m.s.advance(m.clock.Now())
	m.latest = max(m.latest, m.now())
}

// lowest returns the first slot that a TTL leaves at a time.
func (b *metaBucket) lowest(now int64) int64 {
	if b.ttl == 0 {
		return 0
	}
	return max(now-b.ttl, 0)
}

// put says what one write means.
func (m *meta) put(i int, w write) {
	b := m.buckets[i]
	if b == nil {
		b = &metaBucket{words: map[[2]int64]uint64{}, keys: map[int]bool{}}
		m.buckets[i] = b
	}
	b.keys[w.series] = true
	for j, v := range w.words {
		slot := w.slot + int64(j)
		switch {
		case slot < b.lowest(m.now()):
			m.counts.Refused[account.Expired]++
		case slot > m.now()+int64(DefaultOptions("").MaxFuture.Seconds()):
			m.counts.Refused[account.Future]++
		case v == point.Unset:
			m.counts.Unset++
		default:
			m.counts.Accepted++
			b.words[[2]int64{int64(w.series), slot}] = v
			b.past = max(b.past, slot+1)
		}
	}
}

// write sends in order, late, twice, and other values for the same slot.
func (m *meta) write(o metaOp) {
	r := rand.New(rand.NewPCG(uint64(o.n), 1))
	x := mustSession(m, m.s, metaName(o.bucket))
	for range 1 + r.IntN(30) {
		w := randWrite(r, m.now())
		switch r.IntN(8) {
		case 0:
			w.slot -= r.Int64N(200_000) // days
		case 1:
			w.slot += r.Int64N(700) // some of it too far in the future
		}
		for range 1 + r.IntN(2)*r.IntN(2) {
			w.send(x)
			m.put(o.bucket, w)
		}
	}
	m.must(x.Close())
}

// churn sends one point each of series that come only once.
func (m *meta) churn(o metaOp) {
	x := mustSession(m, m.s, metaName(o.bucket))
	first := modelSeries + int(o.n%1000)*50
	for series := first; series < first+50; series++ {
		w := write{series: series, slot: m.now(), words: []uint64{point.FromInt(int64(series))}}
		w.send(x)
		m.put(o.bucket, w)
	}
	m.must(x.Close())
}

func (m *meta) flush(metaOp) {
	_, err := m.s.Flush(context.Background())
	m.must(err)
}

func (m *meta) merge(metaOp) {
	_, err := m.s.Merge(context.Background())
	m.must(err)
}

func (m *meta) restart(metaOp) {
	m.must(m.s.Close())
	m.open()
}

// crash keeps what was synced, and so much of the rest, of which there are no
// points: all were sent before the sync.
func (m *meta) crash(o metaOp) {
	m.must(m.s.log.Sync())
	clone := m.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: int(o.n), RNG: rand.New(rand.NewPCG(uint64(o.n), 2))})
	m.s.Crash()
	m.mem = clone
	m.open()
	m.check()
}

func (m *meta) ttl(o metaOp) {
	if b := m.buckets[o.bucket]; b != nil && (b.ttl == 0 || o.n < b.ttl) { // what has expired does not come back
		b.ttl = max(o.n, 10_000)
		m.must(m.s.SetTTL(metaName(o.bucket), b.ttl))
	}
}

func (m *meta) remove(o metaOp) {
	err := m.s.DeleteBucket(metaName(o.bucket))
	if m.buckets[o.bucket] == nil && errors.Is(err, ErrUnknownBucket) {
		err = nil
	}
	m.must(err)
	m.buckets[o.bucket] = nil
}

// forget deletes one series, which may come again.
func (m *meta) forget(o metaOp) {
	b := m.buckets[o.bucket]
	if b == nil {
		return
	}
	series := int(o.n)
	_, err := m.s.DeleteSeries(context.Background(), metaName(o.bucket), SeriesChoice{Key: key(series)}, false)
	if errors.Is(err, ErrUnknownSeries) && !m.alive(b, series) {
		err = nil
	}
	m.must(err)
	for at := range b.words {
		if at[0] == o.n {
			delete(b.words, at)
		}
	}
	delete(b.keys, series)
}

// alive reports whether a series has points that no clock has let expire.
func (m *meta) alive(b *metaBucket, series int) bool {
	for at := range b.words {
		if at[0] == int64(series) && at[1] >= b.lowest(m.latest) {
			return true
		}
	}
	return false
}

// check compares every answer.
func (m *meta) check() {
	for i, b := range m.buckets {
		info, err := m.s.BucketByName(metaName(i))
		if b == nil {
			if !errors.Is(err, ErrUnknownBucket) {
				m.Fatalf("bucket %d was deleted: %v", i, err)
			}
			continue
		}
		m.must(err)
		m.checkList(info, b)
		for series := range modelSeries {
			m.checkSeries(i, b, series)
		}
	}
	var sum account.Counts
	for _, c := range m.s.Account().Totals() {
		sum.Add(&c)
	}
	if sum.Stored() != m.counts.Accepted || sum.Unset != m.counts.Unset || sum.Refused != m.counts.Refused {
		m.Fatalf("the account says %+v, want %+v with all that was stored as accepted", sum, m.counts)
	}
	if names, n := m.s.Damage(); n != 0 {
		m.Fatalf("%d damages: %v", n, names)
	}
	if lost := m.s.Account().Lost(); len(lost) != 0 {
		m.Fatalf("lost: %v", lost)
	}
}

func (m *meta) checkList(info BucketInfo, b *metaBucket) {
	got := make(map[string]bool)
	m.must(m.s.Metrics(context.Background(), info, nil, func(key []byte) bool {
		got[string(key)] = true
		return true
	}))
	for at := range b.words {
		if at[1] >= b.lowest(m.latest) && !got[string(key(int(at[0])))] {
			m.Fatalf("series %d is not listed", at[0])
		}
	}
	for series := range b.keys {
		delete(got, string(key(series))) // one without points may have left
	}
	if len(got) > 0 {
		m.Fatalf("%d series are listed that there are not", len(got))
	}
}

// checkSeries compares a series. Expired points are hidden; when the clock was
// set back, those that had expired before may have been removed or not.
func (m *meta) checkSeries(i int, b *metaBucket, series int) {
	gone, unsure := b.lowest(m.now()), b.lowest(m.latest)
	from := int64(epoch - 220_000)
	for at := from; at < b.past; at += MaxRead {
		for j, got := range readAll(m, m.s, metaName(i), series, at, int(min(MaxRead, b.past-at))) {
			slot := at + int64(j)
			want := b.words[[2]int64{int64(series), slot}]
			if slot < gone {
				want = point.Unset
			}
			if got != want && !(slot >= gone && slot < unsure && got == point.Unset) {
				m.Fatalf("bucket %d series %d (%s) slot epoch%+d holds %x, want %x",
					i, series, metric.Text(key(series)), slot-epoch, got, want)
			}
		}
	}
}

// TestSettingsMakeNoDifference: random operations under random settings, with
// restarts, crashes and a clock that steps back and forth, give the answers of
// the model.
func TestSettingsMakeNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		script := rapid.SliceOfN(rapid.Custom(drawOp), 1, 30).Draw(t, "script")
		for range 2 {
			m := &meta{t: t, st: drawSettings(t), mem: vfs.NewCrashableMem(), clock: newTestClock(), latest: epoch}
			m.open()
			func() {
				defer func() { m.s.Crash() }()
				for _, o := range script {
					m.done = append(m.done, o)
					metaOps[o.kind].do(m, o)
				}
				m.check()
			}()
		}
	})
}
