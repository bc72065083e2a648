package chunk

import (
	"errors"
	"math"
	"math/big"
	"slices"
	"testing"

	"dalmatiner/internal/codec/point"
	"pgregory.net/rapid"
)

// naiveHeader recomputes every aggregate slot by slot (invariant I4).
func naiveHeader(off int, words []uint64) (h Header, ints *big.Int) {
	ints = new(big.Int)
	var lanes [Slots / Lane]naiveSum
	var all naiveSum
	h.FirstOff = -1
	defer func() {
		if h.Count == 0 {
			h = Header{}
		}
	}()
	for i, w := range words {
		if w > point.Stale {
			naiveSlot(&h, off+i, w)
			naiveAdd(ints, &lanes[(off+i)/Lane], w)
		}
	}
	for j := range lanes {
		all.add(lanes[j].roundedSum())
	}
	h.Sum.Float = all.roundedSum()
	return h, ints
}

// naiveSum is Neumaier's sum.
type naiveSum struct{ sum, lost float64 }

func (s *naiveSum) add(v float64) {
	sum := s.sum + v
	if math.Abs(s.sum) >= math.Abs(v) {
		s.lost += (s.sum - sum) + v
	} else {
		s.lost += (v - sum) + s.sum
	}
	s.sum = sum
}

func (s *naiveSum) roundedSum() float64 {
	if math.IsInf(s.sum, 0) {
		return s.sum
	}
	return s.sum + s.lost
}

func naiveSlot(h *Header, i int, w uint64) {
	h.Count++
	if h.FirstOff < 0 {
		h.FirstOff, h.First, h.Rises = i, w, true
	} else if !math.IsNaN(point.Float(h.Last)) && !math.IsNaN(point.Float(w)) &&
		exact(w).Cmp(exact(h.Last)) < 0 {
		h.Rises = false
	}
	if v := point.Float(w); math.IsNaN(v) || math.IsInf(v, 0) {
		h.Rises = false
	}
	h.LastOff, h.Last = i, w
	if math.IsNaN(point.Float(w)) {
		return
	}
	if h.Min == point.Unset || exact(w).Cmp(exact(h.Min)) < 0 {
		h.Min = w
	}
	if h.Max == point.Unset || exact(w).Cmp(exact(h.Max)) > 0 {
		h.Max = w
	}
}

func naiveAdd(ints *big.Int, lane *naiveSum, w uint64) {
	if point.KindOf(w) == point.KindInt {
		ints.Add(ints, big.NewInt(point.Int(w)))
		return
	}
	lane.add(point.Float(w))
}

// exact is the value of a word that is not NaN.
func exact(w uint64) *big.Float {
	if point.KindOf(w) == point.KindInt {
		return new(big.Float).SetInt64(point.Int(w))
	}
	return new(big.Float).SetFloat64(point.Float(w))
}

func bigOf(s Sum) *big.Int {
	b := new(big.Int).Lsh(big.NewInt(s.Hi), 64)
	return b.Add(b, new(big.Int).SetUint64(s.Lo))
}

func sameFloat(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// check encodes words both ways, and compares what comes back with them. It returns the
// bytes of Append.
func check(t failer, e *Encoder, off int, words []uint64) []byte {
	t.Helper()
	checkEncoded(t, e, e.AppendDense([]byte("xy"), off, words), off, words)
	return checkEncoded(t, e, e.Append([]byte("xy"), off, words), off, words)
}

func checkEncoded(t failer, e *Encoder, src []byte, off int, words []uint64) []byte {
	t.Helper()
	if string(src[:2]) != "xy" {
		t.Fatalf("dst was overwritten")
	}
	src = src[2:]
	set := slices.ContainsFunc(words, func(w uint64) bool { return w != point.Unset })
	if !set {
		if len(src) != 0 {
			t.Fatalf("%d bytes for no set word", len(src))
		}
		return nil
	}
	checkHeader(t, src, off, words)
	if n, err := Count(src); err != nil || n != e.Count() || n != len(words)-unset(words) {
		t.Fatalf("%d words are set, counted were %d and %d: %v", len(words)-unset(words), n, e.Count(),
			err)
	}
	const old = 0x0123456789abcdef
	var got, want [Slots]uint64
	for i := range got {
		got[i] = []uint64{old, point.Unset, point.Stale, old}[i%4]
	}
	want = got
	for i, w := range words {
		want[off+i] = point.Overwrite(w, want[off+i])
	}
	if err := DecodeRange(got[:], src, 0); err != nil {
		t.Fatalf("decode: %v", err)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("slot %d is %016x, want %016x (form %#x)", i, got[i], want[i], src[0])
		}
	}
	return src
}

func unset(words []uint64) (n int) {
	for _, w := range words {
		if w == point.Unset {
			n++
		}
	}
	return n
}

func checkHeader(t failer, src []byte, off int, words []uint64) {
	t.Helper()
	h, err := ParseHeader(src)
	if err != nil {
		t.Fatalf("header: %v", err)
	}
	equalsNaive(t, h, off, words)
}

// equalsNaive compares aggregates with those computed slot by slot.
func equalsNaive(t failer, h Header, off int, words []uint64) {
	t.Helper()
	want, ints := naiveHeader(off, words)
	if bigOf(h.Sum).Cmp(ints) != 0 {
		t.Fatalf("I4: sum %v, want %v", bigOf(h.Sum), ints)
	}
	if !sameFloat(h.Sum.Float, want.Sum.Float) {
		t.Fatalf("I4: float sum %v, want %v", h.Sum.Float, want.Sum.Float)
	}
	h.Sum, want.Sum = Sum{}, Sum{}
	if h != want {
		t.Fatalf("I4: header\n%+v, want\n%+v", h, want)
	}
}

func TestRoundTrip(t *testing.T) {
	var e Encoder
	rapid.Check(t, func(t *rapid.T) {
		off, words := genMarked(t)
		check(t, &e, off, words)
	})
}

func TestRangeIsSliceOfWhole(t *testing.T) {
	var e Encoder
	rapid.Check(t, func(t *rapid.T) {
		off, words := genMarked(t)
		src := encodeEither(t, &e, off, words)
		if len(src) == 0 {
			return
		}
		var whole, part [Slots]uint64
		if err := DecodeRange(whole[:], src, 0); err != nil {
			t.Fatal(err)
		}
		from := rapid.IntRange(0, Slots).Draw(t, "from")
		to := rapid.IntRange(from, Slots).Draw(t, "to")
		if rapid.Bool().Draw(t, "a lane") {
			from = from / Lane * Lane
			to = min(from+Lane, Slots)
		}
		if err := DecodeRange(part[from:to], src, from); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(part[from:to], whole[from:to]) {
			t.Fatalf("[%d, %d) differs from the slice of the whole", from, to)
		}
	})
}

func TestNewerChunkIsLaidOver(t *testing.T) {
	var e Encoder
	rapid.Check(t, func(t *rapid.T) {
		var got, want [Slots]uint64
		for range 3 {
			off, words := genMarked(t)
			for i, w := range words {
				want[off+i] = point.Overwrite(w, want[off+i])
			}
			if src := encodeEither(t, &e, off, words); len(src) > 0 {
				if err := DecodeRange(got[:], src, 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got != want {
			t.Fatalf("overlay differs from the last write of every slot")
		}
	})
}

func TestNothingSet(t *testing.T) {
	var e Encoder
	for _, n := range []int{0, 1, Slots} {
		if got := e.Append(nil, 0, make([]uint64, n)); got != nil {
			t.Errorf("%d unset slots became %x", n, got)
		}
	}
}

func TestSlotsOutsideTheChunk(t *testing.T) {
	var e Encoder
	src := e.Append(nil, 0, []uint64{point.FromInt(1)})
	for _, c := range []struct{ from, n int }{{-1, 1}, {Slots, 1}, {1, Slots}} {
		if err := DecodeRange(make([]uint64, c.n), src, c.from); err == nil {
			t.Errorf("range of %d slots from %d was accepted", c.n, c.from)
		}
	}
	defer func() {
		if recover() == nil {
			t.Errorf("Append accepted slots behind the chunk")
		}
	}()
	e.Append(nil, Slots, []uint64{1})
}

// Damage must end in an error or in words that some chunk could hold; the
// checksum of the segment tells the two apart (I5).
func TestDamageNeverPanics(t *testing.T) {
	var e Encoder
	for _, c := range kinds() {
		for _, n := range []int{1, 7, 60, 720} {
			words := c.make(n)
			for _, words := range [][]uint64{words, append(words, point.Stale)[max(0, n+1-Slots):]} {
				for _, src := range encodeBoth(&e, 0, words) {
					if len(src) > 0 {
						damage(t, src)
					}
				}
			}
		}
	}
}

// damage cuts src off everywhere, and flips every bit of its begin.
func damage(t *testing.T, src []byte) {
	t.Helper()
	for i := range src {
		if err := decodeAll(t, src[:i]); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%d of %d bytes: error %v", i, len(src), err)
		}
	}
	for i := range min(8*len(src), 6000) {
		bad := slices.Clone(src)
		bad[i/8] ^= 1 << (i & 7)
		decodeAll(t, bad)
	}
}

// decodeAll reads src in every way; the words it finds have to be legal, and
// there are none where it does not decode.
func decodeAll(t failer, src []byte) error {
	t.Helper()
	src = slices.Clip(src)
	h, err := ParseHeader(src)
	if err == nil && h != (Header{}) && (h.Count < 1 || h.FirstOff < 0 || h.LastOff >= Slots ||
		h.LastOff-h.FirstOff+1 < h.Count) {
		t.Fatalf("impossible header %+v", h)
	}
	if err == nil && h.Count == 0 && !HasStale(src) {
		t.Fatalf("a chunk without stale markers has no value")
	}
	if n, err := Count(src); (err == nil && h.Count != 0) && n != h.Count &&
		!(HasStale(src) && n > h.Count) {
		t.Fatalf("%d points, the header has %d", n, h.Count)
	}
	var dst [Slots]uint64
	err2 := DecodeRange(dst[:], src, 0)
	for i, w := range dst {
		if w > point.Stale && w>>56 != 1 && w < firstFloat {
			t.Fatalf("slot %d holds %016x, which is no word", i, w)
		}
	}
	checkSteps(t, src, Steps{From: 7, To: 700, Cut: 77, Every: 2*Lane + 5})
	if err2 != nil && dst != [Slots]uint64{} {
		t.Fatalf("words of a chunk that does not decode: %v", err2)
	}
	// A range of a multi-part chunk passes over damage in other pieces.
	if err3 := DecodeRange(dst[:Lane], src, 5*Lane+7); (err2 == nil) != (err3 == nil) &&
		(err3 != nil || !IsMultiPart(src)) {
		t.Fatalf("whole: %v, range: %v", err2, err3)
	}
	return errors.Join(err, err2)
}

func TestNoAllocations(t *testing.T) {
	var e Encoder
	dst := make([]byte, 0, 16<<10)
	var out [Slots]uint64
	for _, c := range kinds() {
		words := c.make(Slots)
		e.Append(dst, 0, words)
		for _, encode := range []func([]byte, int, []uint64) []byte{e.Append, e.AppendDense} {
			// The race detector has a pool lose a fourth of what it is given: too few of many
			// runs to count.
			n := testing.AllocsPerRun(100, func() {
				src := encode(dst, 0, words)
				if _, err := ParseHeader(src); err != nil {
					t.Fatal(err)
				}
				if err := DecodeRange(out[:], src, 0); err != nil {
					t.Fatal(err)
				}
			})
			if n != 0 {
				t.Errorf("%s: %v allocations", c.name, n)
			}
		}
	}
}
