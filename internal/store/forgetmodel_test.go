package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/store/reader"
	"dalmatiner/internal/write/intake"
)

// forgetModel is a bucket whose series are written, deleted, and begun anew.
type forgetModel struct {
	t       fataler
	r       *rand.Rand
	clock   *testClock
	fs      *vfs.MemFS
	o       Options
	s       *Store
	truth   map[string]map[int64]uint64 // by key and slot; a deleted series has no entry
	from    int64
	recent  int64 // slots before it are not looked at any more
	latest  int64 // the latest time, unix s, from which the clock was set back
	ttl     int64 // points; 0 = for ever
	deleted int64
	open    *intake.Session // sends beside the others, with old predictions

	last   uint64            // clock of the last deletion
	lives  map[string]uint64 // and of that of each series
	listed map[string]bool   // at the last check
	was    map[string]uint64 // lives of series that expired and were forgotten
}

func newForgetModel(t fataler, seed uint64, ttl int64, background, hpts bool) *forgetModel {
	m := &forgetModel{t: t, clock: newTestClock(), fs: vfs.NewCrashableMem(), from: epoch, ttl: ttl,
		truth: make(map[string]map[int64]uint64), lives: make(map[string]uint64),
		was: make(map[string]uint64), r: rand.New(rand.NewPCG(seed, 7))}
	m.o = testOptions(m.fs, m.clock)
	m.o.BackgroundMerge = background
	m.o.MaxFuture = 1e6 * time.Hour // a tick under way may set the coarse clock back for a moment
	m.s = mustOpen(t, m.o)
	if _, err := m.s.CreateBucket(buckets.Info{Name: "b", Resolution: 1000, PPF: 1000, TTL: ttl,
		HPTS: hpts}); err != nil {
		t.Fatalf("%v", err)
	}
	return m
}

// forgetKey is one of 24 series below 4 prefixes.
func forgetKey(i int) []byte {
	k, err := metric.Key("web", fmt.Sprint(i%4), fmt.Sprint(i/4))
	if err != nil {
		panic(err)
	}
	return k
}

func (m *forgetModel) send(n int) {
	x := m.open
	if x == nil {
		x = mustSession(m.t, m.s, "b")
	}
	now := m.clock.Now().Unix()
	first := m.r.IntN(24)
	for range n {
		for i := range 6 { // in an order that is predicted
			key := forgetKey((first + i) % 24)
			slot := now - m.r.Int64N(3)
			switch m.r.IntN(12) {
			case 0:
				slot = max(now-m.r.Int64N(20_000), m.from)
			case 1:
				continue
			}
			v := point.FromInt(m.r.Int64N(1000))
			x.Point(key, uint64(slot), v)
			m.put(key, slot, v, now)
		}
		now += 1 + m.r.Int64N(200)
		m.clock.Set(now * int64(time.Second))
		m.s.clock.Advance()
	}
	if m.open = x; m.r.IntN(2) == 0 {
		m.closeSession()
	} else if _, err := x.Commit(); err != nil {
		m.t.Fatalf("%v", err)
	}
	if tot := x.Totals(); tot.Refused > 0 {
		m.t.Fatalf("%+v", tot)
	}
}

func (m *forgetModel) put(key []byte, slot int64, v uint64, now int64) {
	if m.truth[string(key)] == nil {
		m.truth[string(key)] = make(map[int64]uint64)
	}
	if m.ttl == 0 || slot >= now-m.ttl {
		m.truth[string(key)][slot] = v
	}
}

func (m *forgetModel) closeSession() {
	if m.open == nil {
		return
	}
	if err := m.open.Close(); err != nil {
		m.t.Fatalf("%v", err)
	}
	m.open = nil
}

// pauseMerges lets no merge begin until resume is called. A start lets series go that are gone, as
// a merge does, and what waits for it must not keep it from that.
func (m *forgetModel) pauseMerges() (resume func()) {
	if err := m.s.Replayed(context.Background()); err != nil {
		m.t.Fatalf("%v", err)
	}
	return m.s.merges.Pause()
}

// delete, in slices of few or all at once, deletes one series or those below a prefix.
func (m *forgetModel) delete() {
	choice := deletion.Choice{Key: forgetKey(m.r.IntN(24))}
	if m.r.IntN(3) == 0 {
		choice.Prefix = true
		choice.Key, _ = metric.Key("web", fmt.Sprint(m.r.IntN(4)))
	}
	defer m.pauseMerges()() // a merge lets series go that have expired, between two looks as well
	names := m.list()
	maps.DeleteFunc(names, func(k string, _ bool) bool { return !choice.Takes([]byte(k)) })
	listed := int64(len(names))
	m.s.o.deleteSlice = 1 + m.r.IntN(8)
	dry, dryErr := m.s.DeleteSeries(context.Background(), "b", choice, true)
	got, err := m.s.DeleteSeries(context.Background(), "b", choice, false)
	switch {
	case listed == 0 && !choice.Prefix:
		if !errors.Is(err, deletion.ErrUnknownSeries) || !errors.Is(dryErr, deletion.ErrUnknownSeries) {
			m.t.Fatalf("deleting a series that is not there: %v, %v", err, dryErr)
		}
	case err != nil || dryErr != nil || got.Series != listed || dry.Series != listed:
		m.t.Fatalf("deleting %s: %d series, %v (dry run %d, %v), listed %d", metric.Text(choice.Key),
			got.Series, err, dry.Series, dryErr, listed)
	}
	m.deleted += got.Series
	m.wereDeleted(names)
	// What has expired is unknown, and deleting it does nothing: a catalogue that is
	// lost afterwards is rebuilt with its name, until the next merge.
	maps.DeleteFunc(m.truth, func(k string, _ map[int64]uint64) bool { return names[k] })
}

// wereDeleted notes that series were deleted now, by one call.
func (m *forgetModel) wereDeleted(names map[string]bool) {
	if len(names) > 0 {
		m.last = max(m.last+1, uint64(m.clock.Now().UnixNano()))
	}
	for k := range names {
		m.lives[k] = m.last
	}
}

func (m *forgetModel) list() map[string]bool {
	m.t.Helper()
	info, err := m.s.BucketByName("b")
	if err != nil {
		m.t.Fatalf("%v", err)
	}
	out := make(map[string]bool)
	err = m.s.Metrics(context.Background(), info, nil, func(key []byte) bool {
		if out[string(key)] {
			m.t.Fatalf("%s is listed twice", metric.Text(key))
		}
		out[string(key)] = true
		return true
	})
	if err != nil {
		m.t.Fatalf("%v", err)
	}
	return out
}

// check compares every slot and the list with the truth.
func (m *forgetModel) check() {
	m.t.Helper()
	info, err := m.s.BucketByName("b")
	if err != nil {
		m.t.Fatalf("%v", err)
	}
	lo := int64(0)
	if m.ttl > 0 {
		lo = m.clock.Now().Unix() - m.ttl
	}
	past := m.clock.Now().Unix() + 10
	defer m.pauseMerges()() // a merge lets series go
	listed := m.list()
	dst := make([]uint64, reader.MaxRead)
	for i := range 24 {
		key := forgetKey(i)
		points, known := m.truth[string(key)]
		visible := 0
		// what is hidden by the lifetime begins at lo
		for at := max(m.from-10, lo-10, m.recent); at < past; at += reader.MaxRead {
			part := dst[:min(reader.MaxRead, past-at)]
			if err := m.s.Read(context.Background(), info, key, at, part); err != nil {
				m.t.Fatalf("%v", err)
			}
			for j, got := range part {
				slot := at + int64(j)
				want := points[slot]
				if slot < lo && got == 0 {
					want = 0 // hidden by the lifetime
				}
				if got != want {
					m.t.Fatalf("%s slot epoch%+d holds %x, want %x", metric.Text(key), slot-epoch, got, want)
				}
				if got != 0 {
					visible++
				}
			}
		}
		if !known && listed[string(key)] || visible > 0 && !listed[string(key)] {
			m.t.Fatalf("%s: known %v, %d points, listed %v", metric.Text(key), known, visible,
				listed[string(key)])
		}
	}
	m.checkLives(listed)
	if st := m.s.Stats(); st.Series != int64(len(listed)) {
		m.t.Fatalf("%d series are counted, %d listed", st.Series, len(listed))
	}
	if names, n := m.s.Damage(); n > 0 {
		m.t.Fatalf("damage: %v", names)
	}
}

func (m *forgetModel) end() {
	if m.s != nil {
		m.s.Crash()
	}
}

// verify checks every file.
func (m *forgetModel) verify() {
	m.t.Helper()
	report, err := NewOperations(m.s).Check(context.Background(), fsck.Options{})
	if err != nil || report.Damaged > 0 {
		m.t.Fatalf("check: %v, %v", report.Damages, err)
	}
}

func (m *forgetModel) flush() {
	m.t.Helper()
	if _, err := m.s.Flush(context.Background()); err != nil {
		m.t.Fatalf("%v", err)
	}
}

func (m *forgetModel) merge(all bool) {
	m.t.Helper()
	merge := m.s.merges.Merge
	if all {
		merge = m.s.merges.MergeAll
	}
	if _, err := merge(context.Background()); err != nil {
		m.t.Fatalf("%v", err)
	}
}

// crash goes on from what a crash left: now, or at a step of a flush or merge.
func (m *forgetModel) crash(lostCatalogue bool) {
	m.t.Helper()
	// A merge in the background may be the one that crashes: it has its own source.
	cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: m.r.IntN(101),
		RNG: rand.New(rand.NewPCG(m.r.Uint64(), m.r.Uint64()))}
	if err := m.s.disk.Log.Sync(); err != nil {
		m.t.Fatalf("%v", err)
	}
	var (
		mu    sync.Mutex
		clone *vfs.MemFS
	)
	if at := m.r.IntN(9); at <= flush.StepMerged {
		atSteps(m.s, func(step int) {
			mu.Lock()
			defer mu.Unlock()
			if step == at && clone == nil {
				clone = m.fs.CrashClone(cfg)
			}
		})
		m.flush()
		m.merge(m.r.IntN(2) == 0)
	}
	resume := m.s.merges.Pause()
	m.s.flusher.Gate().Lock()
	if clone == nil {
		clone = m.fs.CrashClone(cfg)
	}
	m.s.flusher.Gate().Unlock()
	resume()
	m.s.Crash()
	m.s, m.open = nil, nil
	m.fs, m.o.FS = clone, clone
	if lostCatalogue {
		if err := clone.RemoveAll(clone.PathJoin(m.o.Dir, datadir.Catalogue)); err != nil {
			m.t.Fatalf("%v", err)
		}
	}
	report, err := fsck.CheckDir(context.Background(), clone, m.o.Dir, fsck.Options{})
	if !lostCatalogue && (err != nil || report.Damaged > 0) {
		m.t.Fatalf("check after the crash: %v, %v", report.Damages, err)
	}
	m.s = mustOpen(m.t, m.o)
	if lostCatalogue {
		m.s.damage = damage.Notes{Logger: m.s.o.Logger} // it is reported
	}
}

func (m *forgetModel) step(what string) {
	switch what {
	case "send":
		m.send(1 + m.r.IntN(40))
	case "delete":
		m.delete()
	case "flush":
		m.flush()
	case "merge", "merge all":
		m.merge(what == "merge all")
	case "wait":
		hours := 2
		if m.ttl > 0 {
			hours = 10
		}
		m.clock.Advance(time.Duration(m.r.IntN(hours)) * time.Hour)
		m.s.clock.Advance()
	case "reopen":
		m.closeSession()
		if err := m.s.Close(); err != nil {
			m.t.Fatalf("%v", err)
		}
		m.s = mustOpen(m.t, m.o)
	case "crash":
		m.crash(false)
	case "lose catalogue":
		m.flush() // what only the log names has no other place
		m.crash(true)
	case "verify":
		m.verify()
	}
	m.check()
}
