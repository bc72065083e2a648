package hole_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"dalmatiner/internal/codec/fields"
	"dalmatiner/internal/disk/hole"
)

// A world of few series, slots and positions, in which everything can be asked.
const (
	worldSeries = 12
	worldSlots  = 24
	worldGens   = 5
)

func randomHole(r *rand.Rand) hole.Hole {
	low, from := r.Uint64N(worldSeries), r.Int64N(worldSlots)
	return hole.Hole{
		Bucket: r.Uint64N(2), Low: low, High: low + r.Uint64N(worldSeries-low), From: from, Past: from +
			1 + r.Int64N(worldSlots-from),
		At:    hole.Position{Generation: r.Uint64N(worldGens), Window: r.IntN(2) == 0},
		Cause: hole.Cause(r.IntN(5)), Source: r.Uint64N(3),
	}
}

// highest is the model: the highest position that hides a slot in a list of holes.
func highest(list []hole.Hole, bucket, p uint64, slot int64) (at hole.Position, ok bool) {
	for _, h := range list {
		if h.Bucket == bucket && h.Low <= p && p <= h.High && h.From <= slot && slot < h.Past &&
			(!ok || at.Compare(h.At) < 0) {
			at, ok = h.At, true
		}
	}
	return at, ok
}

func TestHolesHideWhatTheListHides(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 2000 {
		list := make([]hole.Hole, r.IntN(12))
		for i := range list {
			list[i] = randomHole(r)
		}
		joined := hole.Join(list)
		if again := hole.Join(joined); !reflect.DeepEqual(again, joined) && len(joined) > 0 {
			t.Fatalf("round %d: joined twice: %v, then %v", round, joined, again)
		}
		for bucket := range uint64(2) {
			set := hole.NewSet(bucket, list)
			for p := range uint64(worldSeries) {
				from := r.Int64N(worldSlots)
				past := from + 1 + r.Int64N(worldSlots-from)
				spans := set.Spans(nil, p, from, past)
				for slot := from; slot < past; slot++ {
					want, wantOK := highest(list, bucket, p, slot)
					var got hole.Position
					gotOK := false
					for i, s := range spans {
						if i > 0 && spans[i-1].At.Compare(s.At) > 0 {
							t.Fatalf("round %d: spans are not in the order of positions: %v", round, spans)
						}
						if s.From < from || s.Past > past {
							t.Fatalf("round %d: span %v leaves [%d, %d)", round, s, from, past)
						}
						if s.From <= slot && slot < s.Past {
							got, gotOK = s.At, true // the last one is the highest
						}
					}
					if got != want || gotOK != wantOK {
						t.Fatalf(
							"round %d: slot %d of series %d is hidden below %v %v, want %v %v\nlist %v\nspans %v",
							round, slot, p, got, gotOK, want, wantOK, list, spans)
					}
				}
			}
		}
	}
}

// TestHolesAreBounded: however few there may be, all that is hidden stays hidden, in its
// bucket, and as it is where the bound allows it.
func TestHolesAreBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for round := range 1000 {
		list := make([]hole.Hole, r.IntN(30))
		for i := range list {
			list[i] = randomHole(r)
			list[i].From, list[i].Past = list[i].From*200, list[i].Past*200
		}
		most := 1 + r.IntN(20)
		bounded := hole.Bound(list, most)
		exact := hole.Join(list)
		switch {
		case len(exact) <= most:
			if !reflect.DeepEqual(bounded, exact) {
				t.Fatalf("round %d: %v became %v, %d are allowed", round, exact, bounded, most)
			}
		case len(bounded) > max(most, 2): // two buckets
			t.Fatalf("round %d: %d holes, %d are allowed", round, len(bounded), most)
		}
		for _, h := range bounded {
			if !slices.Contains(exact, h) && h.Cause == hole.Joined && h.Source != 0 {
				t.Fatalf("round %d: %v names one source of several", round, h)
			}
		}
		for bucket := range uint64(2) {
			for p := range uint64(worldSeries) {
				for slot := int64(0); slot < worldSlots*200; slot += 100 {
					want, ok := highest(list, bucket, p, slot)
					if got, gotOK := highest(bounded, bucket, p, slot); ok && (!gotOK || got.Compare(want) < 0) {
						t.Fatalf("round %d: slot %d of series %d shows what lies below %v", round, slot, p, want)
					}
				}
			}
		}
	}
}

func TestTheEmptySetIsNil(t *testing.T) {
	set := hole.NewSet(1, []hole.Hole{{Bucket: 2, High: 9, Past: 1}})
	if set != nil || set.Spans(nil, 0, 0, 1) != nil || set.Holes() != nil {
		t.Fatalf("a bucket without holes has %v", set)
	}
}

func TestPositionsAreThatOfSegments(t *testing.T) {
	order := []hole.Position{{1, false}, {1, true}, {2, false}, {2, true}}
	for i, a := range order {
		for j, b := range order {
			want := 0
			switch {
			case i < j:
				want = -1
			case i > j:
				want = 1
			}
			if got := a.Compare(b); got != want {
				t.Errorf("%v to %v: %d, want %d", a, b, got, want)
			}
		}
	}
}

// TestMarksAreExact: what a builder was told is marked, and what it was told is not,
// is not, as long as there is no more than the bounds allow.
func TestMarksAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 1000 {
		var b hole.Builder
		type key struct {
			bucket, p uint64
			chunk     int64
		}
		want := make(map[key]bool)
		rate := r.IntN(4)
		for bucket := range uint64(2) {
			for p := range uint64(worldSeries) {
				for c := range int64(6) {
					if r.IntN(3) == 0 {
						continue // the segment has no such chunk
					}
					marked := r.IntN(4) < rate
					want[key{bucket, p << 40, c}] = marked
					b.Add(bucket, p<<40, c, marked)
				}
			}
		}
		marks := b.Marks()
		for k, marked := range want {
			if marks.Has(k.bucket, k.p, k.chunk) != marked {
				t.Fatalf("round %d: %v is marked: %v, want %v; marks %v", round, k, !marked, marked, marks)
			}
		}
	}
}

// TestMarksAreBounded: however many there are, all that is to be marked is.
func TestMarksAreBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		var b hole.Builder
		type key struct {
			p     uint64
			chunk int64
		}
		var marked []key
		for p := range uint64(300) {
			for c := range int64(60) {
				m := r.IntN(2) == 0
				b.Add(7, p, c*100-3000, m)
				if m {
					marked = append(marked, key{p, c*100 - 3000})
				}
			}
		}
		marks := b.Marks()
		if len(marks.List) > hole.MaxMarks {
			t.Fatalf("%d marks, the bound is %d", len(marks.List), hole.MaxMarks)
		}
		for _, k := range marked {
			if !marks.Has(7, k.p, k.chunk) {
				t.Fatalf("%v is not marked", k)
			}
		}
		if marks.Has(8, 1, 0) || marks.Has(7, 1, 1<<40) {
			t.Fatal("what lies far away is marked")
		}
	}
}

func TestMarksWithin(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for round := range 500 {
		var list []hole.Mark
		for range r.IntN(6) {
			low, first := r.Uint64N(worldSeries), r.Int64N(worldSlots)
			list = append(list, hole.Mark{Bucket: r.Uint64N(2), First: first, Past: first + 1 + r.Int64N(4),
				Low: low, High: low + r.Uint64N(4)})
		}
		marks := hole.MarksOf(list)
		if round == 0 {
			marks = hole.Marks{All: true}
		}
		part := hole.Mark{Bucket: r.Uint64N(2), First: r.Int64N(8), Past: 8 + r.Int64N(8),
			Low: r.Uint64N(6), High: 6 + r.Uint64N(6)}
		cut := hole.Marks{List: marks.Clip(part)}
		for bucket := range uint64(2) {
			for p := range uint64(worldSeries + 4) {
				for c := range int64(worldSlots + 4) {
					in := bucket == part.Bucket && part.First <= c && c < part.Past && part.Low <= p &&
						p <= part.High
					if got, want := cut.Has(bucket, p, c), in && marks.Has(bucket, p, c); got != want {
						t.Fatalf("round %d: %d %d %d: %v, want %v", round, bucket, p, c, got, want)
					}
				}
			}
		}
	}
}

func TestALostMarkIsAHole(t *testing.T) {
	m := hole.Mark{Bucket: 3, First: 2, Past: 4, Low: 5, High: 9}
	at := hole.Position{Generation: 8, Window: true}
	want := hole.Hole{Bucket: 3, Low: 5, High: 9, From: 1440, Past: 2880, At: at, Cause: hole.File,
		Source: 11}
	if got := m.LossHole(720, at, hole.File, 11); got != want {
		t.Fatalf("%v, want %v", got, want)
	}
}

func TestEncodingGivesTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 500 {
		h := randomHole(r)
		h.From -= 10
		if got, left, ok := readHole(append(hole.AppendHole(nil, &h), 7)); !ok || got != h || left != 1 {
			t.Fatalf("%v became %v, %d bytes left: %v", h, got, left, ok)
		}
		m := hole.Marks{All: r.IntN(5) == 0}
		for n := r.IntN(5); !m.All && n > 0; n-- {
			m.List = append(m.List, hole.Mark{Bucket: r.Uint64(), First: r.Int64N(100) - 50, Past: 60,
				Low: 1 << 63, High: hole.HighestPrefix})
		}
		if marks, left, ok := readMarks(append(hole.AppendMarks(nil, &m), 7)); !ok ||
			!reflect.DeepEqual(marks, m) || left != 1 {
			t.Fatalf("%v became %v, %d bytes left: %v", m, marks, left, ok)
		}
	}
}

func FuzzParse(f *testing.F) {
	h := hole.Hole{Bucket: 9, Low: 4, High: 5, From: -3, Past: 720, At: hole.Position{Generation: 6},
		Cause: hole.LogRecord}
	f.Add(hole.AppendHole(nil, &h))
	m := hole.MarksOf([]hole.Mark{{Bucket: 1, First: 2, Past: 3, High: 4},
		{Bucket: 1, First: 7, Past: 8, High: 4}})
	f.Add(hole.AppendMarks(nil, &m))
	f.Fuzz(func(t *testing.T, src []byte) {
		if h, _, ok := readHole(src); ok {
			if h.From >= h.Past || h.Low > h.High {
				t.Fatalf("an empty hole: %v", h)
			}
			if again, left, ok := readHole(hole.AppendHole(nil, &h)); !ok || again != h || left > 0 {
				t.Fatalf("%v became %v, %v", h, again, ok)
			}
		}
		if m, _, ok := readMarks(src); ok {
			if again, left, ok := readMarks(hole.AppendMarks(nil, &m)); !ok ||
				!reflect.DeepEqual(again, m) || left > 0 {
				t.Fatalf("%v became %v, %v", m, again, ok)
			}
		}
	})
}

// readHole returns what a hole is read as, and how many bytes are left.
func readHole(src []byte) (h hole.Hole, left int, ok bool) {
	r := fields.Reader{Src: src}
	h = hole.ReadHole(&r)
	return h, len(r.Src), !r.Bad
}

func readMarks(src []byte) (m hole.Marks, left int, ok bool) {
	r := fields.Reader{Src: src}
	m = hole.ReadMarks(&r)
	return m, len(r.Src), !r.Bad
}

// TestShortOrOddEncodingsAreRefused: every part of an encoding, and values that nobody writes.
func TestShortOrOddEncodingsAreRefused(t *testing.T) {
	h := hole.Hole{Bucket: 1 << 40, Low: 4, High: 500, From: -300, Past: 720,
		At: hole.Position{Generation: 600, Window: true}, Cause: hole.Joined, Source: 300}
	enc := hole.AppendHole(nil, &h)
	for n := range enc {
		if got, left, ok := readHole(enc[:n]); ok || got != (hole.Hole{}) || left > 0 {
			t.Errorf("%d of %d bytes of a hole: %v, %v", n, len(enc), got, ok)
		}
	}
	m := hole.Marks{List: []hole.Mark{
		{Bucket: 1 << 40, First: -200, Past: 60, Low: 1 << 63, High: hole.HighestPrefix},
		{Bucket: 7, First: 1, Past: 2}}}
	enc = hole.AppendMarks(nil, &m)
	for n := range enc {
		if got, left, ok := readMarks(enc[:n]); ok || !got.Empty() || left > 0 {
			t.Errorf("%d of %d bytes of marks: %v, %v", n, len(enc), got, ok)
		}
	}
	odd := hole.Hole{Low: 4, High: 5, Past: 1, Cause: hole.Joined + 1}
	if _, _, ok := readHole(hole.AppendHole(nil, &odd)); ok {
		t.Error("a cause that is none")
	}
	odd = hole.Hole{Low: 5, High: 4, Past: 1} // the distance turns over
	if _, _, ok := readHole(hole.AppendHole(nil, &odd)); ok {
		t.Error("a range of prefixes that turns over")
	}
	odd = hole.Hole{From: 5, Past: 5}
	if _, _, ok := readHole(hole.AppendHole(nil, &odd)); ok {
		t.Error("no slots")
	}
	if _, _, ok := readMarks([]byte{2, 0}); ok {
		t.Error("marks of a form that is none")
	}
	if (&hole.Marks{All: true}).Empty() || (&hole.Marks{List: m.List}).Empty() ||
		!(&hole.Marks{}).Empty() {
		t.Error("which marks are empty")
	}
}

// TestHolesAreCoarsenedAStepAtATime: holes of one position become wider only as far as the
// bound asks for, and those of different positions stay apart while that is enough.
func TestHolesAreCoarsenedAStepAtATime(t *testing.T) {
	var list []hole.Hole
	for i := range int64(64) {
		at := hole.Position{Generation: 1 + uint64(i%2)}
		list = append(list, hole.Hole{Low: 3, High: 3, From: i / 2 * 1000, Past: i/2*1000 + 1, At: at,
			Cause: hole.Block, Source: 5})
	}
	got := hole.Bound(list, 16)
	if len(got) > 16 || len(got) < 8 {
		t.Fatalf("%d holes, 16 are allowed", len(got))
	}
	for _, h := range got {
		if h.Past-h.From > 8*720 {
			t.Errorf("a hole of %d slots, where those within 5760 are enough: %v", h.Past-h.From, h)
		}
	}
	if !slices.ContainsFunc(got, func(h hole.Hole) bool { return h.At.Generation == 1 }) {
		t.Error("all holes are at the highest position")
	}
}
