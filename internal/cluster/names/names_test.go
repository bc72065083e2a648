package names

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/model/metric"
)

func lookupNone(metric.SeriesID) (uint64, []byte, bool) { return 0, nil, false }

// nameOf returns the name that series i has in all tests.
func nameOf(i int) (id metric.SeriesID, bucket uint64, key []byte) {
	bucket, key = uint64(i%3+1), metric.AppendPart(nil, fmt.Sprintf("series-%d", i))
	return metric.Series(bucket, key), bucket, key
}

// model is a registry, what it was told, and when each name was used last.
type model struct {
	*Registry
	now     int64
	asked   int
	inStore [40]bool // names that the fallback knows; of others with odd numbers it knows the bucket
	number  map[metric.SeriesID]int
	noted   map[int]bool
	used    map[int]use
}

type use struct {
	at    int64
	named bool
}

func newModel(t *rapid.T) *model {
	m := &model{number: make(map[metric.SeriesID]int), noted: make(map[int]bool),
		used: make(map[int]use)}
	for i := range m.inStore {
		m.number[idOf(i)] = i
		m.inStore[i] = rapid.Bool().Draw(t, "in the store")
	}
	limit := rapid.SampledFrom([]int{0, 64 * 600, 1 << 20}).Draw(t, "limit")
	m.Registry = New(m.store, limit, func() int64 { return m.now })
	return m
}

func (m *model) store(id metric.SeriesID) (uint64, []byte, bool) {
	m.asked++
	i := m.number[id]
	_, bucket, key := nameOf(i)
	if !m.inStore[i] {
		return bucket * uint64(i%2), nil, false
	}
	return bucket, bytes.Clone(key), true
}

func (m *model) draw(t *rapid.T) int {
	return rapid.IntRange(0, len(m.inStore)-1).Draw(t, "series")
}

// isRecent reports whether a series, and whether its name, must be known.
func (m *model) isRecent(i int) (known, named bool) {
	u, known := m.used[i]
	known = known && m.now-u.at <= int64(Kept)
	return known, known && u.named
}

func (m *model) note(t *rapid.T) {
	i := m.draw(t)
	id, bucket, key := nameOf(i)
	mine := bytes.Clone(key)
	m.Note(id, bucket, mine)
	clear(mine)
	m.used[i], m.noted[i] = use{m.now, true}, true
}

func (m *model) noteBucket(t *rapid.T) {
	i := m.draw(t)
	id, bucket, _ := nameOf(i)
	_, named := m.isRecent(i)
	m.NoteBucket(id, bucket)
	m.used[i] = use{m.now, named}
}

func (m *model) lookup(t *rapid.T) {
	i := m.draw(t)
	id, bucket, key := nameOf(i)
	_, named := m.isRecent(i)
	asked := m.asked
	b, k, ok := m.Lookup(id)
	switch {
	case ok && (b != bucket || !bytes.Equal(k, key)):
		t.Fatalf("series %d is %q in bucket %d", i, k, b)
	case ok && !m.noted[i] && !m.inStore[i]:
		t.Fatalf("series %d has a name that nobody gave", i)
	case !ok && (m.inStore[i] || named):
		t.Fatalf("series %d has no name, used %+v at %d", i, m.used[i], m.now)
	case named && m.asked != asked:
		t.Fatalf("series %d was used at %d and is asked for at %d", i, m.used[i].at, m.now)
	case ok:
		m.used[i] = use{m.now, true}
	}
}

func (m *model) bucket(t *rapid.T) {
	i := m.draw(t)
	id, bucket, _ := nameOf(i)
	known, named := m.isRecent(i)
	b, ok := m.Bucket(id)
	if ok && b != bucket || !ok && (known || m.inStore[i] || i%2 == 1) {
		t.Fatalf("series %d is in bucket %d, %v", i, b, ok)
	}
	if ok {
		m.used[i] = use{m.now, named}
	}
}

func (m *model) check(t *rapid.T) {
	sum := int64(0)
	for i := range m.shards {
		sum += m.shards[i].young.bytes + m.shards[i].old.bytes
	}
	if sum != m.Bytes() {
		t.Fatalf("%d bytes, the generations have %d", m.Bytes(), sum)
	}
}

// Whatever is noted, looked up and pushed out: a name is right, and is there for Kept.
func TestNamesStayWhileTheyAreUsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"note": m.note, "note bucket": m.noteBucket, "look up": m.lookup, "bucket": m.bucket,
			"": m.check,
			"wait": func(t *rapid.T) {
				m.now += int64(rapid.IntRange(1, 90).Draw(t, "seconds")) * int64(time.Second)
			},
		})
	})
}

// What was used in no period for long goes when the limit is reached, and a burst does not stay.
func TestMemoryFallsToTheLimit(t *testing.T) {
	var now int64
	r := New(lookupNone, 1<<20, func() int64 { return now })
	for i := range 50_000 {
		r.Note(nameOf(i))
	}
	if r.Bytes() < 2<<20 {
		t.Fatalf("%d bytes: the test does not reach the limit", r.Bytes())
	}
	for range 4 {
		now += int64(2 * Kept)
		for i := range 2000 {
			r.Note(nameOf(i))
		}
	}
	if r.Bytes() > 1<<20 {
		t.Errorf("%d bytes with 2000 names in use, the limit is %d", r.Bytes(), 1<<20)
	}
	if _, _, ok := r.Lookup(idOf(40_000)); ok {
		t.Error("a name that nobody used is still there")
	}
	if _, _, ok := r.Lookup(idOf(1999)); !ok {
		t.Error("a name in use is gone")
	}
}

func idOf(i int) metric.SeriesID { id, _, _ := nameOf(i); return id }

// Who uses a name all the time may look it up once a period.
func TestOnceAPeriodIsEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var now int64
		r := New(lookupNone, 0, func() int64 { return now })
		id, bucket, key := nameOf(0)
		r.Note(id, bucket, key)
		looked := r.Period()
		if looked == 0 {
			t.Fatal("period 0 is that of those who never looked")
		}
		others := 1
		for range rapid.IntRange(1, 30).Draw(t, "uses") {
			now += rapid.Int64Range(0, int64(Kept)).Draw(t, "later")
			for range 200 {
				r.Note(nameOf(others))
				others++
			}
			if p := r.Period(); p != looked {
				looked = p
				if _, _, ok := r.Lookup(id); !ok {
					t.Fatal("the name is gone")
				}
			}
		}
		now += int64(Kept)
		for range 200 {
			r.Note(nameOf(others))
			others++
		}
		if _, _, ok := r.Lookup(id); !ok {
			t.Fatal("the name is gone within Kept of its last use")
		}
	})
}

func TestKeysOfAnyLength(t *testing.T) {
	r := New(lookupNone, 1<<30, func() int64 { return 0 })
	check := func(i, length int) {
		id, key := idOf(i), bytes.Repeat([]byte{byte(i)}, length)
		r.Note(id, 7, key)
		if _, k, ok := r.Lookup(id); ok != (length <= metric.MaxKey) || ok && !bytes.Equal(k, key) {
			t.Fatalf("a key of %d bytes comes back with %d, %v", length, len(k), ok)
		}
	}
	for i, length := range []int{0, 1, 511, 512, 513, 65535, 65536, 0, 65535, 1, 1 << 17} {
		check(i, length)
	}
	for i := 100; i < 20_000; i++ {
		check(i, i%700)
	}
}

// Keys that were handed out never change, whoever notes and looks up meanwhile.
func TestConcurrentUse(t *testing.T) {
	var now atomic.Int64
	r := New(lookupNone, 1<<16, now.Load)
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			held := make(map[int][]byte)
			for i := range 5_000 {
				n := (i*7 + g) % 3000
				id, bucket, key := nameOf(n)
				if i%3 == 0 {
					r.Note(id, bucket, key)
				}
				if b, k, ok := r.Lookup(id); ok {
					held[n] = k
					if b != bucket {
						t.Errorf("series %d is in bucket %d", n, b)
					}
				}
				now.Add(int64(10 * time.Millisecond))
			}
			for n, k := range held {
				if _, _, key := nameOf(n); !bytes.Equal(k, key) {
					t.Errorf("series %d became %q", n, k)
				}
			}
		})
	}
	group.Wait()
}

// What is counted is about what the heap has.
func TestBytesAreThoseOfTheHeap(t *testing.T) {
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	r := New(lookupNone, 1<<30, func() int64 { return 0 })
	for i := range 100_000 {
		r.Note(nameOf(i))
	}
	took := heap() - before
	if c := r.Bytes(); c < took*7/10 || c > took*14/10 {
		t.Errorf("%d bytes are counted, the heap has %d", c, took)
	}
	runtime.KeepAlive(r)
}

func BenchmarkLookup(b *testing.B) {
	r := New(lookupNone, 1<<30, func() int64 { return 0 })
	ids := make([]metric.SeriesID, 10_000)
	for i := range ids {
		id, bucket, key := nameOf(i)
		r.Note(id, bucket, key)
		ids[i] = id
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, _, ok := r.Lookup(ids[i%len(ids)]); !ok {
			b.Fatal("not there")
		}
		i++
	}
}
