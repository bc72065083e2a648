package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/compaction"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/snapshot"
	"dalmatiner/internal/write/intake"
)

// A script is a list of operations. Run under any settings it must give the
// answers of the model (metamodel_test.go), which knows none of them: settings
// decide when and where points are moved, never what is answered.

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
	"write":    {12, 1 << 40, (*meta).write},
	"beside":   {2, 1 << 40, (*meta).beside},
	"churn":    {1, 1 << 40, (*meta).churn},
	"advance":  {6, 0, func(m *meta, o metaOp) { m.step(time.Minute) }},
	"hours":    {3, 30, func(m *meta, o metaOp) { m.step(time.Duration(o.n) * time.Hour) }},
	"back":     {2, 3600, func(m *meta, o metaOp) { m.step(-time.Duration(o.n) * time.Second) }},
	"flush":    {3, 0, func(m *meta, o metaOp) { m.must(m.flush()) }},
	"merge":    {2, 0, func(m *meta, o metaOp) { m.must(m.merge()) }},
	"restart":  {1, 0, (*meta).restart},
	"crash":    {2, 100, (*meta).crash},
	"uncat":    {1, 0, (*meta).loseCatalogue},
	"snapshot": {1, 0, (*meta).snapshot},
	"restore":  {1, 1, (*meta).restore},
	"press":    {1, 90, (*meta).press},
	"tick":     {2, 0, func(m *meta, o metaOp) { m.s.upkeep.EverySecond() }},
	"ttl":      {2, 200_000, (*meta).ttl},
	"delete":   {1, 3, (*meta).remove},
	"forget":   {2, modelSeries - 1, (*meta).forget},
	"prefix":   {1, 5, (*meta).forgetPrefix},
	"check":    {1, 0, func(m *meta, o metaOp) { m.check() }},
	"sound":    {1, 0, func(m *meta, o metaOp) { mustBeSound(m, m.s) }},
}

func drawOp(t *rapid.T) metaOp {
	var kinds []string
	for kind, op := range metaOps {
		for range op.weight {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	o := metaOp{kind: rapid.SampledFrom(kinds).Draw(t, "kind"),
		bucket: rapid.IntRange(0, metaBuckets-1).Draw(t, "bucket")}
	o.n = rapid.Int64Range(0, metaOps[o.kind].most).Draw(t, "n")
	return o
}

// settings are what must make no difference.
type settings struct {
	o          Options
	mergedFile int64
	memory     int64 // memory.limit
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
	st.o.BlockCache = one("storage.block_cache", 0, 256<<10, 64<<20)
	st.o.WALSync = wal.SyncMode(one("wal.sync", int64(wal.Always), int64(wal.Interval),
		int64(wal.Off)))
	st.o.BackgroundMerge = rapid.Bool().Draw(t, "merge.background")
	st.o.MinFree, st.o.WALInterval = 0, time.Millisecond
	st.mergedFile = one("merged file", 64, compaction.DefaultMaxFile)
	st.memory = one("memory.limit", 0, testLimit, 1<<30)
	return st
}

func (st *settings) String() string {
	o := &st.o
	return fmt.Sprintf("cache_points=%d flush.bytes=%d late.memory=%d wal.max_size=%d head.grace=%v "+
		"age=%v flush.interval=%v storage.max_open_files=%d storage.block_cache=%d wal.sync=%v "+
		"merge.background=%v merged file=%d memory.limit=%d",
		o.CachePoints, o.FlushBytes, o.LateMemory, o.WALMaxSize, o.HeadGrace, o.HeadMaxAge,
		o.FlushInterval, o.MaxOpenFiles, o.BlockCache, o.WALSync, o.BackgroundMerge, st.mergedFile,
		st.memory)
}

// make creates a bucket: with timestamps or without, of seconds or coarser. It returns nil where
// the bucket is refused for lack of memory, and there is none then.
func (m *meta) make(i int, n int64) *metaBucket {
	b := &metaBucket{cells: map[int]map[int64]metaCell{}, first: 1 << 60}
	b.info = buckets.Info{Name: metaName(i), Resolution: []int64{1000, 1000, 10_000}[n%3], PPF: 604800,
		HPTS: n/3%2 == 0}
	info, err := m.s.CreateBucket(b.info)
	if refusal := (*memory.Refusal)(nil); m.short() && errors.As(err, &refusal) {
		return nil
	}
	m.must(err)
	b.info = info
	m.buckets[i] = b
	return b
}

// session returns a session of a bucket that lives until it is closed, or nil where the bucket
// is refused.
func (m *meta) session(i int, n int64) (*metaBucket, *intake.Session) {
	b := m.buckets[i]
	if b == nil {
		if b = m.make(i, n); b == nil {
			return nil, nil
		}
	}
	if m.x[i] == nil {
		m.x[i] = mustSession(m, m.s, metaName(i))
	}
	return b, m.x[i]
}

// hangUp closes the session of a bucket.
func (m *meta) hangUp(i int) {
	if x := m.x[i]; x != nil {
		m.x[i] = nil
		m.must(x.Close())
	}
}

func (m *meta) hangUpAll() {
	for i := range m.x {
		m.hangUp(i)
	}
}

// write sends in order, late, twice, and other values for the same slot. Every
// second time the session stays open.
func (m *meta) write(o metaOp) {
	r := rand.New(rand.NewPCG(uint64(o.n), 1))
	b, x := m.session(o.bucket, o.n>>8)
	if b == nil {
		return
	}
	for range 1 + r.IntN(30) {
		w := drivetest.RandCall(r, b.slot(m.now()))
		switch r.IntN(8) {
		case 0:
			w.Slot -= r.Int64N(200_000) // days
		case 1:
			w.Slot += r.Int64N(700) // some of it too far in the future
		}
		if r.IntN(4) > 0 {
			b.timestamp(r, &w)
		}
		for range 1 + r.IntN(2)*r.IntN(2) {
			m.put(b, x, w)
		}
	}
	_, err := x.Commit()
	m.must(err)
	if o.n%2 == 0 {
		m.hangUp(o.bucket)
	}
}

// beside writes while a flush and a merge are under way.
func (m *meta) beside(o metaOp) {
	done := make(chan error, 1)
	go func() { done <- errors.Join(m.flush(), m.merge()) }()
	defer func() { m.must(<-done) }()
	m.write(o)
}

// churn sends one point each of series that come only once.
func (m *meta) churn(o metaOp) {
	b, x := m.session(o.bucket, o.n>>8)
	if b == nil {
		return
	}
	first := modelSeries + int(o.n%1000)*50
	for series := first; series < first+50; series++ {
		m.put(b, x, call{Series: series, Slot: b.slot(m.now()),
			Words: []uint64{point.FromInt(int64(series))}})
	}
	m.hangUp(o.bucket)
}

func (m *meta) flush() error {
	_, err := m.s.Flush(context.Background())
	return err
}

func (m *meta) merge() error {
	_, err := m.s.Merge(context.Background())
	return err
}

func (m *meta) restart(metaOp) {
	m.hangUpAll()
	m.must(m.s.Close())
	m.open()
}

// crash keeps what was synced, and so much of the rest, of which there are no
// points: all were sent before the sync.
func (m *meta) crash(o metaOp) {
	m.hangUpAll()
	m.must(m.s.disk.Log.Sync())
	clone := m.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: int(o.n),
		RNG: rand.New(rand.NewPCG(uint64(o.n), 2))})
	m.s.Crash()
	m.mem = clone
	m.open()
	m.check()
}

// loseCatalogue starts without it: it is rebuilt from segments and log, and when
// the replay is over it has no name of which nothing is left.
func (m *meta) loseCatalogue(metaOp) {
	m.hangUpAll()
	m.must(m.s.Close())
	m.must(m.mem.RemoveAll(m.mem.PathJoin(m.dir, "catalogue")))
	m.open()
	m.must(m.s.replay.All(context.Background()))
	m.s.damage = damage.Notes{Logger: m.s.o.Logger} // it is reported
	m.check()
}

// snapshot keeps the state of the moment for a restore.
func (m *meta) snapshot(metaOp) {
	m.dirs++
	snap, err := NewOperations(m.s).Snapshot(context.Background(), fmt.Sprintf("s%d", m.dirs))
	m.must(err)
	m.saved = &metaSaved{dir: snap.Dir, counts: m.counts}
	for i, b := range m.buckets {
		m.saved.buckets[i] = b.clone()
	}
}

// restore goes back to the last snapshot, in a new directory.
func (m *meta) restore(o metaOp) {
	if m.saved == nil {
		return
	}
	m.hangUpAll()
	m.s.Crash()
	m.dirs++
	m.dir = fmt.Sprintf("/restored%d", m.dirs)
	_, err := snapshot.Restore(context.Background(),
		snapshot.RestoreOptions{FS: m.mem, From: m.saved.dir, To: m.dir, Link: o.n == 1})
	m.must(err)
	m.counts = m.saved.counts
	for i, b := range m.saved.buckets {
		m.buckets[i] = b.clone()
	}
	m.open()
	m.age()
	m.check()
}

// press fills so many percent of memory.limit: from 85 on new series and new buckets may be
// refused, and only they.
func (m *meta) press(o metaOp) {
	m.pressure = o.n
	m.extra.Store(0)
	m.steady.Advance(time.Minute) // what was before is over
	m.s.o.Memory.Look()
	m.extra.Store(max(0, m.st.memory/100*o.n-m.s.o.Memory.UsedBytes()))
	m.s.o.Memory.Look()
}

func (m *meta) ttl(o metaOp) {
	if o.n < 10_000 {
		o.n = 0
	}
	m.setTTL(o.bucket, o.n)
}

func (m *meta) setTTL(i int, slots int64) {
	if b := m.buckets[i]; b != nil {
		b.info.TTL = slots
		m.must(m.s.SetTTL(metaName(i), slots))
		m.age()
	}
}

// remove deletes a bucket beside an open session of it, or not.
func (m *meta) remove(o metaOp) {
	if o.n%2 == 0 {
		m.hangUp(o.bucket)
	}
	err := m.s.DeleteBucket(metaName(o.bucket))
	if m.buckets[o.bucket] == nil && errors.Is(err, buckets.ErrUnknown) {
		err = nil
	}
	m.must(err)
	b := m.buckets[o.bucket]
	m.buckets[o.bucket] = nil
	if x := m.x[o.bucket]; x != nil {
		x.Point(key(0), uint64(b.slot(m.now())), point.FromInt(1))
		m.counts.Refused[account.BucketDeleted]++
		m.hangUp(o.bucket)
	}
}

// forget deletes one series, which may come again.
func (m *meta) forget(o metaOp) {
	m.forgetAll(o.bucket, deletion.Choice{Key: key(int(o.n))})
}

// forgetPrefix deletes all series of a bucket, or those with a number of so many
// digits.
func (m *meta) forgetPrefix(o metaOp) {
	choice, err := metric.Key("series")
	m.must(err)
	if o.n > 0 {
		choice = append(choice, byte(o.n))
	}
	m.forgetAll(o.bucket, deletion.Choice{Key: choice, Prefix: true})
}

// TestARebuiltCatalogueHasNoNamesOfNothing: a series that went with its last point
// does not come back as a name when the catalogue is lost and rebuilt from segments.
func TestARebuiltCatalogueHasNoNamesOfNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		st := drawSettings(t)
		st.o.CachePoints, st.o.FlushBytes, st.o.FlushInterval, st.memory = 1, 200, time.Second, 0
		m := &meta{t: t, st: st, mem: vfs.NewCrashableMem(), clock: newTestClock(),
			steady: newTestClock(), dir: "/data"}
		m.open()
		defer func() { m.s.Crash() }()
		for _, o := range []metaOp{{"write", 1, 2}, {"beside", 0, 0}, {"prefix", 1, 0}, {"uncat", 0, 0}} {
			m.done = append(m.done, o)
			metaOps[o.kind].do(m, o)
		}
	})
}

// TestSettingsMakeNoDifference: random operations under random settings, with
// restarts, crashes and a clock that steps back and forth, give the answers of
// the model.
func TestSettingsMakeNoDifference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		script := rapid.SliceOfN(rapid.Custom(drawOp), 1, 30).Draw(t, "script")
		for range 2 {
			m := &meta{t: t, st: drawSettings(t), mem: vfs.NewCrashableMem(), clock: newTestClock(),
				steady: newTestClock(), dir: "/data"}
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
