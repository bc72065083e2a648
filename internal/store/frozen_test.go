package store

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/host/durable"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/reader"
	"dalmatiner/internal/testkit/frozen"
	"dalmatiner/internal/write/intake"
)

// frozenScript makes the data directory in testdata, of two days, two
// hours and what came behind. Without a store it only says what is in it.
type frozenScript struct {
	t          *testing.T
	s          *Store
	clock      *testClock
	words      map[string]map[[2]int64]uint64 // by bucket, series and slot
	timestamps map[[2]int64]uint64            // of bucket "stamped"
	sessions   map[string]*intake.Session
}

const (
	// the first slot behind two days and a window of two hours
	frozenPast = epoch + 2*daySlots + 2*3600
	frozenEnd  = frozenPast + 3*3600 // and behind all others
)

func (f *frozenScript) put(bucket string, series, slot int64, w uint64) {
	if f.words[bucket] == nil {
		f.words[bucket] = map[[2]int64]uint64{}
	}
	f.words[bucket][[2]int64{series, slot}] = w
	if f.s != nil {
		f.session(bucket).Point(key(int(series)), uint64(slot), w)
	}
}

func (f *frozenScript) timestamp(series, slot int64, w, timestamp uint64) {
	f.timestamps[[2]int64{series, slot}] = timestamp
	if f.s != nil {
		f.session("stamped").TimestampedPoint(key(int(series)), uint64(slot), w, timestamp)
	}
	s := f.s
	f.s = nil
	f.put("stamped", series, slot, w)
	f.s = s
}

func (f *frozenScript) session(bucket string) *intake.Session {
	x := f.sessions[bucket]
	if x == nil {
		x = mustSession(f.t, f.s, bucket)
		f.sessions[bucket] = x
	}
	return x
}

// commit sends what sessions hold, and with flush makes segments of it.
func (f *frozenScript) commit(flush bool) {
	if f.s == nil {
		return
	}
	for _, bucket := range slices.Sorted(maps.Keys(f.sessions)) {
		if _, err := f.sessions[bucket].Commit(); err != nil {
			f.t.Fatal(err)
		}
	}
	if !flush {
		return
	}
	mustFlush(f.t, f.s)
	if _, err := f.s.Merge(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

// do is a step that leaves no points.
func (f *frozenScript) do(step func(s *Store) error) {
	if f.s == nil {
		return
	}
	if err := step(f.s); err != nil {
		f.t.Fatal(err)
	}
}

func (f *frozenScript) at(slot int64) {
	if f.s == nil {
		return
	}
	f.clock.Set(slot * int64(time.Second))
	f.s.clock.Advance()
}

func (f *frozenScript) run() {
	f.do(func(s *Store) error {
		_, err := s.CreateBucket(buckets.Info{Name: "stamped", Resolution: 1000, PPF: 604800, HPTS: true})
		if err == nil {
			_, err = s.CreateBucket(buckets.Info{Name: "slow \x00\xff", Resolution: 60_000, PPF: 1440,
				TTL: 500_000, Grace: 5e9})
		}
		return err
	})
	for slot := int64(epoch); slot < frozenPast; slot += 600 {
		f.at(slot)
		f.put("plain", 0, slot, point.FromInt(slot/1800%100))
		f.put("plain", 1, slot, point.FromFloat(float64(slot/240%50)/10))
		f.put("plain", 2, slot, point.FromInt(slot%7))
		f.put("slow \x00\xff", 0, slot/60, point.FromFloat(1/float64(slot%11+1)))
		if slot >= frozenPast-6*3600 {
			f.timestamp(1, slot, point.FromInt(slot%100), uint64(slot)*second+uint64(slot%1000))
			f.timestamp(2, slot, point.FromFloat(0.5), uint64(slot-1)*second)
		}
		if (slot-epoch)%36_000 == 0 {
			f.put("plain", 0, slot+1, point.Stale)
		}
		if slot == epoch+3600 {
			f.put("gone", 0, slot, point.FromInt(1))
		}
		if (slot-epoch)%(12*3600) == 0 {
			f.commit(true)
		}
	}
	f.commit(true)
	f.deletions()
	f.late()
	f.rest()
}

// deletions are those of a bucket, of a series, and one of a series that begins
// anew.
func (f *frozenScript) deletions() {
	f.do(func(s *Store) error { return s.DeleteBucket("gone") })
	delete(f.words, "gone")
	if f.s != nil {
		delete(f.sessions, "gone")
	}
	f.forget(2)
	f.put("plain", 2, frozenPast, point.FromInt(-1))
}

func (f *frozenScript) forget(series int64) {
	f.do(func(s *Store) error {
		_, err := s.DeleteSeries(f.t.Context(), "plain", deletion.Choice{Key: key(int(series))}, false)
		return err
	})
	maps.DeleteFunc(f.words["plain"], func(p [2]int64, _ uint64) bool { return p[0] == series })
}

// late points lie in windows that are there already.
func (f *frozenScript) late() {
	for i := range int64(5) {
		f.put("plain", 0, epoch+7200+i*3600, point.FromInt(777+i))
		f.timestamp(1, frozenPast-4*3600+i, point.FromInt(5), uint64(frozenPast)*second)
	}
	f.commit(true)
}

// rest is a flush that is not merged, and what only the log holds.
func (f *frozenScript) rest() {
	send := func(from, past int64) {
		for slot := from; slot < past; slot += 10 {
			f.at(slot)
			f.put("plain", 0, slot, point.FromInt(slot%1000))
			f.put("plain", 3, slot, point.FromInt(1<<40+slot))
			f.put("plain", 4, slot, point.FromFloat(float64(slot%10)))
			f.timestamp(1, slot, point.FromInt(slot%100), uint64(slot)*second+5)
		}
		f.put("plain", 0, past-5, point.Stale)
		f.put("plain", 1, from-5000, point.FromInt(int64(past-from))) // late
		f.commit(false)
	}
	send(frozenPast+300, frozenPast+900)
	flush := func(s *Store) error { _, err := s.Flush(f.t.Context()); return err }
	f.do(flush)
	f.do(func(s *Store) error { return s.SetTTL("slow \x00\xff", 400_000) })
	f.forget(4) // its points are in a flush: the MANIFEST gets a tombstone
	send(frozenPast+900, frozenPast+1200)
	f.do(flush)
	f.forget(3) // which only the log has
	send(frozenPast+1200, frozenPast+1500)
	f.put("plain", 3, frozenPast+1490, point.FromInt(12))           // conflicting
	f.put("plain", 4, frozenPast+1490, point.FromFloat(float64(0))) // and not
	f.commit(false)
	f.do(func(s *Store) error { return s.disk.Log.Sync() })
}

func newScript(t *testing.T, s *Store, clock *testClock) *frozenScript {
	return &frozenScript{t: t, s: s, clock: clock, words: map[string]map[[2]int64]uint64{},
		timestamps: map[[2]int64]uint64{}, sessions: map[string]*intake.Session{}}
}

// makeFrozen runs the script, ends it like kill -9, and copies the files.
func makeFrozen(t *testing.T) {
	t.Helper()
	mem, clock := vfs.NewMem(), newTestClock()
	o := testOptions(mem, clock)
	o.BackgroundMerge, o.WALMaxSize = false, 8*minLogFile
	s := mustOpen(t, o)
	newScript(t, s, clock).run()
	s.Crash()
	for _, dir := range []string{"", datadir.WAL, datadir.Flush, "window", "overlay",
		datadir.Catalogue} {
		names, err := mem.List("/data/" + dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			path := mem.PathJoin("/data", dir, name)
			if info, err := mem.Stat(path); err != nil || info.IsDir() || name == datadir.Lock {
				continue
			}
			data, err := durable.ReadFile(mem, path)
			if err != nil {
				t.Fatal(err)
			}
			frozen.Same(t, filepath.Join("data", dir, name), data)
		}
	}
}

// frozenDir is the checked-in directory in memory.
func frozenDir(t *testing.T) *vfs.MemFS {
	t.Helper()
	mem := vfs.NewMem()
	root := filepath.Join(frozen.Dir, "data")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		to := mem.PathJoin("/data", filepath.ToSlash(below))
		if d.IsDir() {
			return mem.MkdirAll(to, 0o750)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := mem.Create(to, vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		if _, err := f.Write(data); err != nil {
			return err
		}
		return f.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	return mem
}

// check reads every slot of every series, the names, and the account.
func (f *frozenScript) check(s *Store, what string) {
	f.t.Helper()
	if names, n := s.Damage(); n > 0 {
		f.t.Errorf("%s: %v", what, names)
	}
	if got := len(s.Buckets()); got != len(f.words) {
		f.t.Errorf("%s: %d buckets, want %d", what, got, len(f.words))
	}
	for bucket, words := range f.words {
		info, err := s.BucketByName(bucket)
		if err != nil {
			f.t.Fatalf("%s: %v", what, err)
		}
		names := map[string]bool{}
		for p := range words {
			names[string(key(int(p[0])))] = true
		}
		var got []string
		err = s.Metrics(f.t.Context(), info, nil, func(key []byte) bool {
			got = append(got, string(key))
			return true
		})
		if err != nil || len(got) != len(names) || slices.ContainsFunc(got, func(name string) bool {
			return !names[name]
		}) {
			f.t.Errorf("%s: bucket %q lists %q, want %d names: %v", what, bucket, got, len(names), err)
		}
		f.checkPoints(s, what, info, words)
	}
	if got := accountText(s); got != string(frozen.Read(f.t, "account.txt")) {
		f.t.Errorf("%s: the account is\n%s", what, got)
	}
}

func (f *frozenScript) checkPoints(s *Store, what string, info buckets.Info,
	words map[[2]int64]uint64) {
	f.t.Helper()
	past := int64(frozenEnd * 1000 / info.Resolution)
	left := len(words)
	values, timestamps := make([]uint64, reader.MaxRead/2), make([]uint64, reader.MaxRead/2)
	for series := range int64(5) {
		for at := int64(epoch*1000/info.Resolution) - 1000; at < past; at += int64(len(values)) {
			clear(values)
			clear(timestamps)
			err := s.ReadWithStale(f.t.Context(), info, key(int(series)), at, values, nil)
			if info.HPTS && err == nil {
				err = s.ReadTimestamped(f.t.Context(), info, key(int(series)), at, values, timestamps)
			}
			if err != nil {
				f.t.Fatalf("%s: %v", what, err)
			}
			for i, got := range values {
				p := [2]int64{series, at + int64(i)}
				if got != words[p] || info.HPTS && timestamps[i] != f.timestamps[p] {
					f.t.Fatalf("%s: bucket %q series %d slot %d holds %x at %d, held %x at %d", what, info.Name,
						p[0], p[1], got, timestamps[i], words[p], f.timestamps[p])
				}
				if got != point.Unset {
					left--
				}
			}
		}
	}
	if left != 0 {
		f.t.Errorf("%s: %d points of bucket %q are missing", what, left, info.Name)
	}
}

// accountText is every row of the account.
func accountText(s *Store) string {
	var b strings.Builder
	totals := s.Account().Totals()
	for _, id := range slices.Sorted(maps.Keys(totals)) {
		fmt.Fprintf(&b, "bucket %d total %s\n", id, countsText(totals[id]))
		for _, row := range s.Account().Minutes(id) {
			fmt.Fprintf(&b, "%d %d %s\n", id, row.Minute, countsText(row.Counts))
		}
	}
	for _, l := range s.Account().Losses() {
		fmt.Fprintf(&b, "lost %v\n", l)
	}
	return b.String()
}

func countsText(c account.Counts) string {
	text := fmt.Sprint(c.Accepted, c.Duplicate, c.Conflicting, c.Late, c.Unset)
	for r, n := range c.Refused {
		if n > 0 {
			text += fmt.Sprintf(" %s:%d", account.Reason(r), n)
		}
	}
	return text
}

// The format is frozen: a data directory of it, as kill -9 left it, opens, has
// every point and every row of the account, and goes on.
func TestFrozenDirectory(t *testing.T) {
	t.Parallel()
	if frozen.Missing("data") {
		makeFrozen(t)
	}
	want := newScript(t, nil, nil)
	want.run()
	mem, clock := frozenDir(t), newTestClock()
	clock.Set((frozenPast + 1500) * int64(time.Second))
	if r := mustCheck(t, mem, "/data"); r.Damaged > 0 || len(r.Expected) > 0 {
		t.Errorf("the check finds %v, %v", r.Damages, r.Expected)
	}
	o := testOptions(mem, clock)
	o.BackgroundMerge = false
	s := mustOpen(t, o)
	if frozen.Missing("account.txt") {
		frozen.Same(t, "account.txt", []byte(accountText(s)))
	}
	if state, _, err := manifest.Inspect(mem, "/data", origin.Directory{}); err != nil ||
		len(state.Tombstones) == 0 {
		t.Errorf("no tombstones: %v", err)
	}
	kinds := map[string]int{}
	for _, seg := range s.versions.Latest().Segments {
		kinds[fmt.Sprint(seg.Meta.Kind, " of ", seg.Info.WindowChunks)]++
	}
	for _, kind := range []manifest.Segment{{Kind: manifest.Flush}, {Kind: manifest.Overlay}} {
		if kinds[fmt.Sprint(kind.Kind, " of 0")] == 0 {
			t.Errorf("no segment of kind %d: %v", kind.Kind, kinds)
		}
	}
	if kinds["1 of 10"] == 0 || kinds["1 of 120"] == 0 {
		t.Errorf("no window of 2 hours or of a day: %v", kinds)
	}
	want.check(s, "opened")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, o)
	want.check(s, "closed and opened")
	clock.Advance(2 * 24 * time.Hour)
	s.clock.Advance()
	if _, err := s.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	want.check(s, "merged")
	mustBeSound(t, s)
	s.Crash()
}
