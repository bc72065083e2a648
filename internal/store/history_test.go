package store

import (
	"context"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	marks "dalmatiner/internal/model/history"
	"dalmatiner/internal/store/reader"
)

// seen is what reads of a bucket gave behind a mark.
type seen struct {
	mark   Mark
	bucket int
	ops    int // that were done
	words  map[int]map[int64]uint64
	names  map[string]bool
}

// look takes a mark of a bucket and reads all of it. It is nil where there is none.
func (m *meta) look(i int) *seen {
	h, err := m.s.Bucket(metaName(i))
	if errors.Is(err, buckets.ErrUnknown) {
		return nil
	}
	m.must(err)
	s := &seen{mark: h.Mark(), bucket: i, ops: len(m.done)}
	s.words, s.names = m.wordsOf(i), m.namesOf(h)
	return s
}

// wordsOf reads the set words of the series of the model in a bucket.
func (m *meta) wordsOf(i int) map[int]map[int64]uint64 {
	b, all := m.buckets[i], map[int]map[int64]uint64{}
	for series := range modelSeries {
		all[series] = map[int64]uint64{}
		for from := b.first - 10; from < b.past+10; from += reader.MaxRead {
			n := int(min(reader.MaxRead, b.past+10-from))
			for j, w := range readAll(m, m.s, b.info.Name, series, from, n) {
				if w != point.Unset {
					all[series][from+int64(j)] = w
				}
			}
		}
	}
	return all
}

// compare finds out whether what is said to be unchanged since a mark is. It returns how far it is.
func (m *meta) compare(s *seen) int64 {
	r := rand.New(rand.NewPCG(uint64(len(m.done)), uint64(s.ops)))
	h, err := m.s.Bucket(metaName(s.bucket))
	if errors.Is(err, buckets.ErrUnknown) {
		return marks.Nothing
	}
	m.must(err)
	from := m.buckets[s.bucket].slot(m.now()) - r.Int64N(3000)
	now, names, lowest := m.wordsOf(s.bucket), m.namesOf(h), m.buckets[s.bucket].lowest(m.now())
	// behind the reads: what a merge in the background drops between them is a change, too
	u := h.Since(s.mark, from)
	for series := range modelSeries {
		slots := maps.Clone(s.words[series])
		maps.Copy(slots, now[series])
		for slot := range slots {
			if was, is := s.words[series][slot], now[series][slot]; slot >= max(lowest, from) &&
				slot < u.Below && was != is {
				m.Fatalf("bucket %d series %d slot epoch%+d holds %x, and %x at the mark behind %d "+
					"operations; nothing changed from epoch%+d to epoch%+d",
					s.bucket, series, slot-m.buckets[s.bucket].slot(epoch), is, was, s.ops,
					from-m.buckets[s.bucket].slot(epoch), u.Below-m.buckets[s.bucket].slot(epoch))
			}
		}
	}
	m.compareNames(s, names, u.Names)
	return u.Below
}

// namesOf returns the names of a bucket.
func (m *meta) namesOf(h Bucket) map[string]bool {
	names := map[string]bool{}
	m.must(h.Metrics(context.Background(), nil, func(key []byte) bool {
		names[string(key)] = true
		return true
	}))
	return names
}

// compareNames finds out whether no name came or went but those that begin with one of some
// prefixes.
func (m *meta) compareNames(s *seen, names map[string]bool, changed []string) {
	may := func(name string) bool {
		return slices.ContainsFunc(changed, func(prefix string) bool {
			return strings.HasPrefix(name, prefix)
		})
	}
	for name := range names {
		if !s.names[name] && !may(name) {
			m.Fatalf("there is %q since the mark behind %d operations, and only %q are said to have changed",
				name, s.ops, changed)
		}
	}
	for name := range s.names {
		if !names[name] && !may(name) {
			m.Fatalf("%q is gone since the mark behind %d operations, and only %q are said to have changed",
				name, s.ops, changed)
		}
	}
}

// markOps are what happens between marks, and how often.
var markOps = map[string]struct {
	weight int
	most   int64
	do     func(m *meta, o metaOp)
}{
	"ontime":  {12, 1 << 40, (*meta).onTime},
	"write":   {1, 1 << 40, (*meta).write},
	"beside":  {1, 1 << 40, (*meta).beside},
	"churn":   {1, 1 << 40, (*meta).churn},
	"advance": {6, 0, func(m *meta, _ metaOp) { m.step(time.Minute) }},
	"hours":   {2, 3, func(m *meta, o metaOp) { m.step(time.Duration(o.n) * time.Hour) }},
	"back":    {2, 3600, func(m *meta, o metaOp) { m.step(-time.Duration(o.n) * time.Second) }},
	"ttl": {4, 5, func(m *meta, o metaOp) {
		m.setTTL(o.bucket, []int64{0, 30, 300, 3000, 30_000, 300_000}[o.n])
	}},
	"flush":   {3, 0, func(m *meta, _ metaOp) { m.must(m.flush()) }},
	"merge":   {3, 0, func(m *meta, _ metaOp) { m.must(m.merge()) }},
	"tick":    {2, 0, func(m *meta, _ metaOp) { m.s.upkeep.EverySecond() }},
	"forget":  {2, modelSeries - 1, (*meta).forget},
	"prefix":  {1, 5, (*meta).forgetPrefix},
	"delete":  {1, 1, (*meta).remove},
	"restart": {1, 0, (*meta).restart},
}

// onTime sends points of the last seconds, of some series.
func (m *meta) onTime(o metaOp) {
	r := rand.New(rand.NewPCG(uint64(o.n), 3))
	b, x := m.session(o.bucket, o.n>>8)
	if b == nil {
		return
	}
	for range 1 + r.IntN(8) {
		w := call{Series: r.IntN(modelSeries), Slot: b.slot(m.now()) - int64(r.IntN(3)),
			Words: []uint64{point.FromInt(r.Int64N(100))}}
		b.timestamp(r, &w)
		m.put(b, x, w)
	}
	_, err := x.Commit()
	m.must(err)
}

// drawMarkOps draws a script of a few kinds of operations: of all kinds, few would meet their
// likes.
func drawMarkOps(t *rapid.T) []metaOp {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(markOps)) {
		if kind == "ontime" || rapid.IntRange(0, 2).Draw(t, kind) == 0 {
			kinds = append(kinds, slices.Repeat([]string{kind}, markOps[kind].weight)...)
		}
	}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) metaOp {
		o := metaOp{kind: rapid.SampledFrom(kinds).Draw(t, "kind"),
			bucket: rapid.IntRange(0, 5).Draw(t, "bucket") / 5}
		o.n = rapid.Int64Range(0, markOps[o.kind].most).Draw(t, "n")
		return o
	}), 5, 60).Draw(t, "script")
}

// TestMarksSayWhatChanged: what a bucket calls unchanged since a mark is, whatever came between.
func TestMarksSayWhatChanged(t *testing.T) {
	t.Parallel()
	known := 0
	rapid.Check(t, func(t *rapid.T) {
		script := drawMarkOps(t)
		every := rapid.IntRange(1, 4).Draw(t, "every")
		m := &meta{t: t, st: drawSettings(t), mem: vfs.NewCrashableMem(), clock: newTestClock(),
			steady: newTestClock(), dir: "/data"}
		m.open()
		defer func() { m.s.Crash() }()
		var all []*seen
		for n, o := range script {
			m.done = append(m.done, o)
			markOps[o.kind].do(m, o)
			for _, s := range all {
				if m.compare(s) != marks.Nothing {
					known++
				}
			}
			for i := range metaBuckets {
				if s := m.look(i); n%every == 0 && s != nil {
					all = append(all, s)
				}
			}
			all = all[max(0, len(all)-12):]
		}
	})
	if known == 0 {
		t.Error("nothing was ever known")
	}
	t.Logf("something was known %d times", known)
}

// TestMarksLast: whatever moves points and columns changes nothing since a mark, and senders on
// time change nothing below what they send.
func TestMarksLast(t *testing.T) {
	clock := newTestClock()
	o := testOptions(vfs.NewMem(), clock)
	byHand(&o)
	s := mustOpen(t, o)
	defer s.Crash()
	x := mustSession(t, s, "b")
	h, err := s.Bucket("b")
	if err != nil {
		t.Fatal(err)
	}
	send := func(series int) {
		t.Helper()
		x.Point(key(series), uint64(s.Now().Unix()), point.FromInt(1))
		if _, err := x.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	for series := range 300 {
		send(series)
	}
	var all []Mark
	var slots []int64
	for n := range 4000 {
		clock.Advance(time.Second)
		s.clock.Advance()
		now := s.Now().Unix()
		all, slots = append(all, h.Mark()), append(slots, now)
		if n%20 == 0 {
			send(0)
		}
		send(1 + n%40)
		m := h.Mark()
		switch n % 1000 {
		case 100, 300:
			mustFlush(t, s)
		case 500:
			_, err = s.Merge(context.Background())
		case 600:
			s.upkeep.EverySecond()
		case 700: // the silent series lose their columns
			before := s.columns.DeactivationCount()
			for _, g := range h.b.Groups() {
				s.columns.Deactivate(h.b, g)
			}
			if n < 1000 && s.columns.DeactivationCount() == before {
				t.Error("no series has lost its column")
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if u := h.Since(m, 0); u.Below != math.MaxInt64 || u.Names != nil {
			t.Fatalf("behind step %d %+v", n, u)
		}
	}
	for i, m := range all {
		if u := h.Since(m, 0); u.Below > slots[i] || u.Below < slots[i]-int64(len(all)-i)/10 ||
			u.Names != nil {
			t.Errorf("since slot epoch%+d nothing changed below epoch%+d; %v", slots[i]-epoch, u.Below-epoch,
				u.Names)
		}
	}
}
