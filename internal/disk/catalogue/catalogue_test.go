package catalogue

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/model/metric"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testDir = "data/catalogue"

func open(tb testing.TB, fs vfs.FS) *Catalogue {
	tb.Helper()
	c, err := Open(fs, testDir, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func closeChecked(tb testing.TB, c *Catalogue) {
	tb.Helper()
	if err := c.Close(); err != nil {
		tb.Fatal(err)
	}
}

// dataFS has a durable data directory, as the owner of a catalogue makes it.
func dataFS(tb testing.TB) *vfs.MemFS {
	tb.Helper()
	fs := vfs.NewCrashableMem()
	if err := makeDir(fs, "data"); err != nil {
		tb.Fatal(err)
	}
	return fs
}

func testSeries(n int) []segment.Series {
	all := make([]segment.Series, n)
	for i := range all {
		all[i] = segment.Series{Bucket: uint64(i % 3),
			Hash:  segment.Hash{byte(i >> 16), byte(i >> 8), byte(i)},
			Group: uint32(i / 256), Column: uint16(i % 256),
			Key: fmt.Appendf(nil, "\x05cloud\x04host\x06%06d", i)}
	}
	return all
}

// place is what identifies a record.
type place struct {
	bucket uint64
	group  uint32
	column uint16
	hash   segment.Hash
}

func placeOf(s *segment.Series) place { return place{s.Bucket, s.Group, s.Column, s.Hash} }

type model map[place]entry

// entry is what is said of a place.
type entry struct {
	key                string
	since, incarnation uint64
}

func entryOf(s *segment.Series) entry { return entry{string(s.Key), s.Since, s.Incarnation} }

func modelOf(series []segment.Series) model {
	m := model{}
	m.put(series)
	return m
}

func (m model) put(series []segment.Series) {
	for i := range series {
		m[placeOf(&series[i])] = entryOf(&series[i])
	}
}

func (m model) order() []place {
	return slices.SortedFunc(maps.Keys(m), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.bucket, b.bucket), cmp.Compare(a.group, b.group),
			cmp.Compare(a.column, b.column),
			slices.Compare(a.hash[:], b.hash[:]))
	})
}

// compare loads everything.
func (m model) compare(c *Catalogue) error {
	order, i := m.order(), 0
	err := c.Load(func(s segment.Series) error {
		if i >= len(order) || order[i] != placeOf(&s) || m[order[i]] != entryOf(&s) {
			return fmt.Errorf("record %d of %d is %+v", i, len(order), s)
		}
		i++
		return nil
	})
	if err == nil && i != len(order) {
		err = fmt.Errorf("%d records, want %d", i, len(order))
	}
	return err
}

var testBuckets = rapid.SampledFrom([]uint64{1, 1, 1, 1, 0, 255, 256, math.MaxUint64 - 1,
	math.MaxUint64})

// drawSeries is one of few, so that columns have several, with the hash of its name or another,
// without a name, or with a long one.
func drawSeries(t *rapid.T) segment.Series {
	s := segment.Series{Bucket: testBuckets.Draw(t, "bucket"),
		Group:  rapid.SampledFrom([]uint32{300, 300, 300, 0}).Draw(t, "group"),
		Column: rapid.SampledFrom([]uint16{63, 63, 63, 0, 64, 300}).Draw(t, "column"),
		Key:    rapid.SliceOfN(rapid.ByteRange(0, 1), 0, 1).Draw(t, "key")}
	if rapid.IntRange(0, 5).Draw(t, "long") == 0 {
		s.Key = append(s.Key, strings.Repeat("x", longKey)...)
	}
	switch rapid.IntRange(0, 3).Draw(t, "hash") {
	case 0:
		s.Hash = segment.Hash{rapid.ByteRange(0, 2).Draw(t, "hash")}
	case 1:
		s.Hash = segment.Hash(metric.TimestampedID(s.Bucket, s.Key))
	default:
		s.Hash = segment.Hash(metric.Series(s.Bucket, s.Key))
	}
	s.Since, s.Incarnation = rapid.Uint64().Draw(t, "since"),
		rapid.Uint64Range(0, 3).Draw(t, "incarnation")
	return s
}

// drawChange removes one that is there, or may be, and adds another.
func (m model) drawChange(t *rapid.T) (c Change) {
	if c.Nothing = rapid.Bool().Draw(t, "nothing"); !c.Nothing {
		c.Series = drawSeries(t)
	}
	if rapid.IntRange(0, 3).Draw(t, "left") == 0 {
		return c
	}
	left := drawSeries(t)
	if order := m.order(); len(order) > 0 && rapid.Bool().Draw(t, "there") {
		p := rapid.SampledFrom(order).Draw(t, "place")
		left = segment.Series{Bucket: p.bucket, Group: p.group, Column: p.column, Hash: p.hash}
	}
	c.Left = &left
	return c
}

func (m model) change(changes []Change) {
	for i := range changes {
		if left := changes[i].Left; left != nil {
			delete(m, placeOf(left))
		}
		if !changes[i].Nothing {
			m.put([]segment.Series{changes[i].Series})
		}
	}
}

func TestCatalogueIsAnOrderedMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs := vfs.NewMem()
		logger := slog.New(slog.DiscardHandler)
		c, err := Open(fs, testDir, logger)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		m, flushed := model{}, uint64(0)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"put", "change", "change", "delete", "flush", "reopen"}).Draw(
				t, "step") {
			case "put":
				series := rapid.SliceOfN(rapid.Custom(drawSeries), 0, 20).Draw(t, "series")
				err = c.Put(series)
				m.put(series)
			case "change":
				changes := rapid.SliceOfN(rapid.Custom(m.drawChange), 0, 20).Draw(t, "changes")
				err = c.Change(changes)
				m.change(changes)
			case "delete":
				id := testBuckets.Draw(t, "bucket")
				err = c.DeleteBucket(id)
				maps.DeleteFunc(m, func(p place, _ entry) bool { return p.bucket == id })
			case "flush":
				err = c.Flush()
				flushed = c.Generation()
			case "reopen":
				if err = errors.Join(c.Flush(), c.Close()); err == nil {
					c, err = Open(fs, testDir, logger)
				}
				flushed = max(flushed, c.Generation())
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.Generation() < flushed {
				t.Fatalf("generation %d after %d", c.Generation(), flushed)
			}
			if err := m.compare(c); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestLargePutNeedsNoLargeBatch(t *testing.T) {
	c := open(t, vfs.NewMem())
	defer closeChecked(t, c)
	series := testSeries(50_000)
	series[7].Key = []byte(strings.Repeat("x", segment.MaxName))
	if err := c.Put(series); err != nil {
		t.Fatal(err)
	}
	if err := modelOf(series).compare(c); err != nil {
		t.Fatal(err)
	}
}

func TestFlushWithoutChangesWritesNothing(t *testing.T) {
	c := open(t, vfs.NewMem())
	defer closeChecked(t, c)
	for _, want := range []uint64{0, 1, 1} {
		if err := c.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := c.Generation(); got != want {
			t.Fatalf("generation %d, want %d", got, want)
		}
		if want == 0 {
			if err := c.Put(testSeries(1)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestVisitorErrorEndsTheLoad(t *testing.T) {
	c := open(t, vfs.NewMem())
	defer closeChecked(t, c)
	if err := c.Put(testSeries(10)); err != nil {
		t.Fatal(err)
	}
	stop, calls := errors.New("stop"), 0
	if err := c.Load(func(segment.Series) error { calls++; return stop }); err != stop || calls != 1 {
		t.Fatalf("Load: %v after %d calls", err, calls)
	}
}

// I1: what a Flush has returned for is there after any crash; what was only put
// is there or not, and nothing else is (I2).
func TestI1CrashKeepsWhatWasFlushed(t *testing.T) {
	series := testSeries(3000)
	first, second := series[:2000], series[2000:]
	fs := dataFS(t)
	c := open(t, fs)
	defer closeChecked(t, c)
	check := func(step string, must, may model, generation uint64) {
		t.Helper()
		for _, percent := range []int{0, 25, 75, 100} {
			crashed := open(t,
				fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent,
					RNG: rand.New(rand.NewPCG(2, uint64(percent)))}))
			seen := model{}
			err := crashed.Load(func(s segment.Series) error { seen.put([]segment.Series{s}); return nil })
			if err != nil {
				t.Fatalf("after %s, %d%%: %v", step, percent, err)
			}
			for p, key := range must {
				if seen[p] != key {
					t.Fatalf("after %s, %d%%: %v is missing", step, percent, p)
				}
			}
			for p, key := range seen {
				if may[p] != key {
					t.Fatalf("after %s, %d%%: %v was never put", step, percent, p)
				}
			}
			if g := crashed.Generation(); g < generation {
				t.Fatalf("after %s, %d%%: generation %d, want %d", step, percent, g, generation)
			}
			closeChecked(t, crashed)
		}
	}
	steps := []struct {
		name       string
		do         func() error
		must, may  model
		generation uint64
	}{
		{"open", func() error { return nil }, nil, nil, 0},
		{"first put", func() error { return c.Put(first) }, nil, modelOf(first), 0},
		{"first flush", c.Flush, modelOf(first), modelOf(first), 1},
		{"second put", func() error { return c.Put(second) }, modelOf(first), modelOf(series), 1},
		{"second flush", c.Flush, modelOf(series), modelOf(series), 2},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			t.Fatal(err)
		}
		check(s.name, s.must, s.may, s.generation)
	}
}

func TestOpenTwiceIsNoDamage(t *testing.T) {
	fs := vfs.NewMem()
	c := open(t, fs)
	defer closeChecked(t, c)
	_, err := Open(fs, testDir, slog.New(slog.DiscardHandler))
	if err == nil || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "another process") {
		t.Fatalf("second Open: %v", err)
	}
}
