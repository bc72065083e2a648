package window

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/disk/manifest"
)

// place is one chunk of a bucket; a model's segment maps it to the number of
// the flush that wrote it.
type place struct {
	bucket uint64
	number int64
}

// model is a store of segments that hold nothing but who wrote a chunk last.
type model struct {
	nextSeq  uint64
	segments []manifest.Segment
	content  map[uint64]map[place]uint64
	buckets  map[uint64]Bucket
	truth    map[place]uint64
	purging  *rand.Rand // chooses what is rewritten; nil stands for nothing
	tolerant bool       // late points never make a window worth a rewrite
}

func newModel() *model {
	return &model{nextSeq: 1, content: make(map[uint64]map[place]uint64),
		truth:   make(map[place]uint64),
		buckets: map[uint64]Bucket{1: {}, 2: {}}}
}

func (m *model) add(kind manifest.Kind, generation uint64, ranges []Range,
	content map[place]uint64) {
	seq := m.nextSeq
	m.nextSeq++
	if kind == manifest.Flush {
		generation = seq
		for p := range content {
			content[p] = seq
			m.truth[p] = seq
		}
	}
	if ranges == nil {
		var set Ranges
		for p := range content {
			set.Add(p.bucket, p.number)
		}
		ranges = set.List()
	}
	m.segments = append(m.segments, manifest.Segment{Seq: seq, Kind: kind, Generation: generation,
		Ranges: ranges, Bytes: int64(len(content))})
	m.content[seq] = content
}

// view is what a reader finds: the segments laid over each other.
func (m *model) view(only func(s manifest.Segment) bool) map[place]uint64 {
	order := slices.Clone(m.segments)
	slices.SortFunc(order, Order)
	out := make(map[place]uint64)
	for _, s := range order {
		if only(s) {
			maps.Copy(out, m.content[s.Seq])
		}
	}
	return out
}

func contentWithin(content map[place]uint64, r Range) map[place]uint64 {
	out := make(map[place]uint64)
	for p, v := range content {
		if p.bucket == r.Bucket && p.number >= r.First && p.number < r.Past {
			out[p] = v
		}
	}
	return out
}

func (m *model) lateOf(seq uint64, r Range) int64 {
	if m.tolerant {
		return 0
	}
	return int64(len(contentWithin(m.content[seq], r)))
}

// purge returns the segments to be rewritten.
func (m *model) purge() map[uint64]bool {
	out := make(map[uint64]bool)
	for _, s := range m.segments {
		if m.purging != nil && m.purging.IntN(6) == 0 {
			out[s.Seq] = true
		}
	}
	return out
}

// run makes a plan and does what it says.
func (m *model) run(t fataler) Plan {
	t.Helper()
	purge := m.purge()
	p := Make(m.segments, m.buckets, m.lateOf, purge)
	for _, s := range m.segments {
		if len(s.Ranges) > 0 && purge[s.Seq] && !slices.Contains(p.Remove, s.Seq) {
			t.Fatalf("segment %d of kind %d is to be rewritten, and stays", s.Seq, s.Kind)
		}
	}
	all := func(manifest.Segment) bool { return true }
	type output struct {
		kind    manifest.Kind
		gen     uint64
		ranges  []Range
		content map[place]uint64
	}
	var outputs []output
	for _, w := range p.Windows {
		outputs = append(outputs,
			output{manifest.Window, p.Generation, []Range{w}, contentWithin(m.view(all), w)})
	}
	if len(p.Overlay) > 0 {
		content := make(map[place]uint64)
		for _, part := range p.Overlay {
			maps.Copy(content, contentWithin(m.view(func(s manifest.Segment) bool {
				return slices.Contains(part.From, s.Seq)
			}), part.Range))
		}
		outputs = append(outputs, output{manifest.Overlay, p.OverlayGeneration, nil, content})
	}
	m.segments = slices.DeleteFunc(m.segments, func(s manifest.Segment) bool {
		return slices.Contains(p.Remove, s.Seq)
	})
	for _, o := range outputs {
		m.add(o.kind, o.gen, o.ranges, o.content)
	}
	return p
}

// fataler is what *testing.T and *rapid.T have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func (m *model) check(t *rapid.T) {
	t.Helper()
	got := m.view(func(manifest.Segment) bool { return true })
	for p, want := range m.truth {
		b, ok := m.buckets[p.bucket]
		if expired := !ok || p.number < b.ExpiredBefore; !expired && got[p] != want {
			t.Fatalf("chunk %d of bucket %d was last written by flush %d, a reader finds %d", p.number,
				p.bucket, want, got[p])
		}
	}
}

// Whatever is flushed, late, closed, expired or deleted in whatever order:
// after every plan a reader finds the last write of every chunk.
func TestPlansKeepTheLastWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		m := newModel()
		m.tolerant = rapid.Bool().Draw(t, "tolerant")
		if rapid.Bool().Draw(t, "purges") {
			m.purging = r
		}
		front := int64(100)
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"flush", "flush", "late", "run", "close", "expire",
				"delete"}).Draw(t, "step") {
			case "flush":
				front += r.Int64N(15)
				content := make(map[place]uint64)
				for range 1 + r.IntN(20) {
					content[place{uint64(1 + r.IntN(2)), front - r.Int64N(12)}] = 0
				}
				for range r.IntN(3) { // and a late one with it
					content[place{uint64(1 + r.IntN(2)), 90 + r.Int64N(min(25, front-90))}] = 0
				}
				m.add(manifest.Flush, 0, nil, content)
			case "late":
				content := make(map[place]uint64)
				for range 1 + r.IntN(5) {
					content[place{uint64(1 + r.IntN(2)), 90 + r.Int64N(min(25, front-90))}] = 0
				}
				m.add(manifest.Flush, 0, nil, content)
			case "run":
				m.run(t)
			case "close":
				for id, b := range m.buckets {
					b.ClosedBefore = max(b.ClosedBefore, front-r.Int64N(30))
					m.buckets[id] = b
				}
			case "expire":
				if b, ok := m.buckets[1]; ok {
					b.ExpiredBefore = max(b.ExpiredBefore, r.Int64N(front/2))
					m.buckets[1] = b
				}
			case "delete":
				if r.IntN(10) == 0 {
					delete(m.buckets, 2)
				}
			}
			m.check(t)
		}
	})
}

// When everything is closed, a few rounds leave one window a day and no
// flushes; a further round has nothing to do.
func TestMergingComesToRest(t *testing.T) {
	m := newModel()
	for front := range int64(600) {
		m.add(manifest.Flush, 0, nil, map[place]uint64{{1, front}: 0, {2, front}: 0})
		if front%3 == 0 && front > 0 {
			m.add(manifest.Flush, 0, nil, map[place]uint64{{1, front / 2}: 0}) // late
		}
		for id := range m.buckets {
			m.buckets[id] = Bucket{ClosedBefore: front - 2}
		}
		m.run(t)
		if n := len(m.segments); n > 60 {
			t.Fatalf("%d segments at chunk %d", n, front)
		}
	}
	for id := range m.buckets {
		m.buckets[id] = Bucket{ClosedBefore: 10_000}
	}
	for range 3 {
		m.run(t)
	}
	if p := m.run(t); !p.Empty() {
		t.Errorf("there is always something to do: %+v", p)
	}
	windows := 0
	for _, s := range m.segments {
		switch s.Kind {
		case manifest.Flush:
			t.Errorf("flush %d is left", s.Seq)
		case manifest.Window:
			windows++
		}
	}
	if windows != 10 {
		t.Errorf("%d windows, want 5 days of 2 buckets", windows)
	}
}

// A bucket whose window stays open for months does not keep all flushes.
func TestASlowBucketDoesNotKeepFlushes(t *testing.T) {
	m := newModel()
	m.buckets[2] = Bucket{ClosedBefore: 0}
	for front := range int64(400) {
		m.add(manifest.Flush, 0, nil, map[place]uint64{{1, front}: 0, {2, 5}: 0})
		m.buckets[1] = Bucket{ClosedBefore: front}
		m.run(t)
		if n := len(m.segments); n > maxFlushes+60 {
			t.Fatalf("%d segments at chunk %d", n, front)
		}
	}
}

// An overlay that was written for the names in it stays; it is not written
// again and again.
func TestAnOverlayOfNamesStays(t *testing.T) {
	m := newModel()
	m.add(manifest.Flush, 0, []Range{}, map[place]uint64{}) // names only
	m.run(t)
	m.segments = []manifest.Segment{{Seq: 9, Kind: manifest.Overlay, Generation: 1}}
	if p := m.run(t); !p.Empty() {
		t.Errorf("there is always something to do: %+v", p)
	}
}

// An overlay stays for the sake of a slow bucket after a window took the rest
// of it over. That rest is not late: the window is not rewritten for a single
// late point, time and again.
func TestWhatAWindowHoldsIsNotLate(t *testing.T) {
	fast, slow := Range{Bucket: 1, First: 0, Past: 10}, Range{Bucket: 2, First: 0, Past: 10}
	segments := []manifest.Segment{
		{Seq: 65, Kind: manifest.Overlay, Generation: 64, Ranges: []Range{fast, slow}, Bytes: 1000},
		{Seq: 68, Kind: manifest.Window, Generation: 67, Ranges: []Range{fast}, Bytes: 1000},
		{Seq: 69, Kind: manifest.Flush, Generation: 69, Ranges: []Range{fast}, Bytes: 100},
	}
	inFast := map[uint64]int64{65: 900, 69: 50}
	late := func(seq uint64, _ Range) int64 { return inFast[seq] }
	p := Make(segments, map[uint64]Bucket{1: {ClosedBefore: 40}, 2: {}}, late, nil)
	if len(p.Windows) != 0 || len(p.Overlay) != 1 || !slices.Equal(p.Remove, []uint64{69}) {
		t.Errorf("5 %% of late points: %+v, want an overlay of them", p)
	}
	inFast[69]++
	p = Make(segments, map[uint64]Bucket{1: {ClosedBefore: 40}, 2: {}}, late, nil)
	if !slices.Equal(p.Windows, []Range{fast}) {
		t.Errorf("more than that: %+v, want the window to be rewritten", p)
	}
}

// A window that was taken in after damage to the MANIFEST has no range when its
// bucket is gone or its index is damaged. It is left alone.
func TestAWindowWithoutARangeStays(t *testing.T) {
	segments := []manifest.Segment{
		{Seq: 1, Kind: manifest.Window, Generation: 1},
		{Seq: 2, Kind: manifest.Flush, Generation: 2, Ranges: []Range{{Bucket: 1, First: 0, Past: 10}},
			Bytes: 10},
	}
	p := Make(segments, map[uint64]Bucket{1: {ClosedBefore: 40}}, func(uint64, Range) int64 {
		return 1
	}, nil)
	if len(p.Windows) != 1 || !slices.Equal(p.Remove, []uint64{2}) {
		t.Errorf("%+v, want one window and the flush to go", p)
	}
}

// A little that is open, such as a node's own metrics, does not keep a flush.
func TestALittleThatIsOpenGoesIntoTheOverlay(t *testing.T) {
	m := newModel()
	content := map[place]uint64{{2, 500}: 0}
	for n := range int64(40) {
		content[place{1, n}] = 0
	}
	m.buckets[1] = Bucket{ClosedBefore: 200}
	m.add(manifest.Flush, 0, nil, content)
	p := m.run(t)
	if len(p.Windows) != 1 || len(p.Overlay) != 1 || p.Overlay[0].Bucket != 2 || len(p.Remove) != 1 {
		t.Errorf("the plan is %+v", p)
	}
}

// What a segment has beside chunks is no reason to rewrite it: of a node with few
// points that would be each flush, right after it.
func TestASmallFlushWaitsForItsWindow(t *testing.T) {
	r := Range{Bucket: 1, First: 0, Past: 10}
	segments := []manifest.Segment{
		{Seq: 1, Kind: manifest.Flush, Generation: 1, Ranges: []Range{r}, Bytes: 4000}}
	late := func(uint64, Range) int64 { return 9 }
	if p := Make(segments, map[uint64]Bucket{1: {}}, late, nil); !p.Empty() {
		t.Errorf("an open flush of 9 bytes of chunks: %+v, want nothing to do", p)
	}
	if p := Make(segments, map[uint64]Bucket{1: {ClosedBefore: 10}}, late,
		nil); !slices.Equal(p.Windows, []Range{r}) {
		t.Errorf("the window has closed: %+v, want it written", p)
	}
}
