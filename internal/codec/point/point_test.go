package point

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Vectors 1 to 16 of internal/wire/testdata/vectors.txt.
func TestVectors(t *testing.T) {
	f := func(raw uint64, kind Kind, value float64) {
		t.Helper()
		w, ok := Normalize(raw)
		if !ok {
			t.Fatalf("Normalize(%016x) refused", raw)
		}
		if KindOf(w) != kind {
			t.Errorf("kind of %016x = %d, want %d", raw, KindOf(w), kind)
		}
		if got := Float(w); math.Float64bits(got) != math.Float64bits(value) {
			t.Errorf("value of %016x = %v, want %v", raw, got, value)
		}
	}
	f(0x0000000000000000, KindUnset, 0)
	f(0x010000000000002a, KindInt, 42)
	f(0x01ffffffffffffff, KindInt, -1)
	f(0x017fffffffffffff, KindInt, 36028797018963967)
	f(0x0180000000000000, KindInt, -36028797018963968)
	f(0x9ff8000000000000, KindFloat, 1.0)
	f(0xdff8000000000000, KindFloat, -1.0)
	f(0x9ff0000000000000, KindFloat, 0.5)
	f(0x9fdccccccccccccd, KindFloat, 0.1)
	f(0xa02f6e978d4fdf3b, KindFloat, 123.45599999999999)
	f(0xaa5924d692ca61be, KindFloat, 9.999999999999998e99)
	f(0x8000000000000000, KindFloat, 0)
	f(0xc000000000000000, KindFloat, math.Copysign(0, -1))
	f(0x02fd00000001e240, KindFloat, 123.456)
	f(0x202f6e978d4fdf3b, KindFloat, 123.456)
	f(0x02fffffffffffff1, KindFloat, -1.5)
	f(0x0202000000000005, KindInt, 500)
	f(0x0001020304050607, KindUnset, 0)
}

func TestEncode(t *testing.T) {
	f := func(got, want uint64) {
		t.Helper()
		if got != want {
			t.Errorf("got %016x, want %016x", got, want)
		}
	}
	f(FromInt(42), 0x010000000000002a)
	f(FromInt(-1), 0x01ffffffffffffff)
	f(FromInt(MaxInt), 0x017fffffffffffff)
	f(FromInt(MinInt), 0x0180000000000000)
	f(FromInt(MaxInt+1), FromFloat(float64(MaxInt+1)))
	f(FromInt(math.MinInt64), FromFloat(math.MinInt64))
	f(FromFloat(1), 0x9ff8000000000000)
	f(FromFloat(0.1), 0x9fdccccccccccccd)
	f(FromFloat(123.456), 0x202f6e978d4fdf3b)
	f(EvenWord(FromFloat(123.456)), 0xa02f6e978d4fdf3b)
	f(FromFloat(0.3), 0x1fe9999999999999)
	f(FromFloat(math.SmallestNonzeroFloat64), 0x8000000000000000)
	f(FromFloat(-math.SmallestNonzeroFloat64), 0x4000000000000000)
	f(FromFloat(math.Copysign(0, -1)), 0xc000000000000000)
}

func TestTheUndefinedTypeIsRefused(t *testing.T) {
	if w, ok := Normalize(3<<56 | 5); ok {
		t.Errorf("type 03 accepted as %016x", w)
	}
	for tag := uint64(4); tag < 0x100; tag++ {
		if w, ok := Normalize(tag<<56 | 5); !ok || w != tag<<56|5 {
			t.Errorf("type %02x became %016x, %v", tag, w, ok)
		}
	}
}

func TestFloatRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		checkRoundTrip(t, v)
		for _, k := range []float64{100, 1000, 1e6} {
			checkRoundTrip(t, math.Round(math.Mod(v, 1e6)*k)/k)
		}
	})
}

func TestEdgesRoundTrip(t *testing.T) {
	for _, v := range []float64{0, 0.1, 0.3, 123.456, 1e100, 0x1p-895, math.SmallestNonzeroFloat64,
		math.MaxFloat64, math.Inf(1), math.NaN(),
		math.Float64frombits(0x7ff0000000000001), math.Float64frombits(0x7fffffffffffffff)} {
		for _, near := range []float64{v, math.Nextafter(v, 0), math.Nextafter(v, math.Inf(1))} {
			checkRoundTrip(t, near)
			checkRoundTrip(t, -near)
		}
	}
}

// checkRoundTrip allows the one exception: positive odd doubles below 2^-895 lose their
// lowest bit.
func checkRoundTrip(t interface{ Fatalf(string, ...any) }, v float64) {
	w, want := FromFloat(v), math.Float64bits(v)
	if want < math.Float64bits(0x1p-895) {
		want &^= 1
	}
	if got := math.Float64bits(Float(w)); KindOf(w) != KindFloat || got != want ||
		math.Float64bits(Double(w)) != want {
		t.Fatalf("%x came back as %x", math.Float64bits(v), got)
	}
	if n, ok := Normalize(w); !ok || n != w {
		t.Fatalf("Normalize makes %x of the float word %x", n, w)
	}
	if e := EvenWord(w); e < floatMarker || math.Float64bits(Double(e)) != want&^1 {
		t.Fatalf("%x became %x for old clients", want, math.Float64bits(Double(e)))
	}
}

func TestIntsAreEven(t *testing.T) {
	for _, v := range []int64{0, 1, -1, MaxInt, MinInt} {
		if w := FromInt(v); EvenWord(w) != w || Int(w) != v {
			t.Errorf("%d became %016x and %016x", v, w, EvenWord(w))
		}
	}
	if EvenWord(Unset) != Unset {
		t.Error("an unset word was set")
	}
}

// The words of floats whose lowest bit is 1 begin with 04 to 7f.
func TestOddFloats(t *testing.T) {
	for w, value := range map[uint64]float64{
		0x0400000000000000: 0x1.0000000000001p-895,
		0x1fe9999999999999: 0x1.3333333333333p-2, // 0.3
		0x5fe9999999999999: -0x1.3333333333333p-2,
		0x4000000000000000: -5e-324,
		0x3ff0000000000000: math.Float64frombits(0x7fe0000000000001),
	} {
		if got := Float(w); KindOf(w) != KindFloat || got != value {
			t.Errorf("value of %016x is %v, want %v", w, got, value)
		}
	}
	for tag := range uint64(4) {
		if w := tag<<56 | 5; KindOf(w) == KindFloat {
			t.Errorf("%016x is a float", w)
		}
	}
}

// A slot keeps a value against a stale marker, and a stale marker against an unset word.
func TestOver(t *testing.T) {
	for _, c := range [][3]uint64{
		{Unset, Unset, Unset}, {Unset, Stale, Stale}, {Unset, FromInt(5), FromInt(5)},
		{Stale, Unset, Stale}, {Stale, Stale, Stale}, {Stale, FromInt(-1), FromInt(-1)},
		{Stale, FromFloat(0), FromFloat(0)},
		{FromInt(5), Unset, FromInt(5)}, {FromInt(5), Stale, FromInt(5)},
		{FromInt(5), FromFloat(7), FromInt(5)},
		{Stale, Unknown, Unknown}, {Unknown, Stale, Unknown},
	} {
		if got := Overwrite(c[0], c[1]); got != c[2] {
			t.Errorf("%x over %x is %x, want %x", c[0], c[1], got, c[2])
		}
	}
}

// Only who may send stale markers sends one with payload 1 of type 00.
func TestStaleMarkers(t *testing.T) {
	for raw, want := range map[uint64]uint64{0: Unset, 1: Stale, 2: Unset, 1<<56 - 1: Unset,
		FromInt(1): FromInt(1)} {
		if w, ok := NormalizeMarked(raw); !ok || w != want {
			t.Errorf("%x became %x, %v, want %x", raw, w, ok, want)
		}
		if w, _ := Normalize(raw); w == Stale {
			t.Errorf("%x became a stale marker", raw)
		}
	}
	if _, ok := NormalizeMarked(3 << 56); ok {
		t.Error("the undefined type was taken")
	}
	if KindOf(Stale) != KindUnset || EvenWord(Stale) != Stale {
		t.Error("a stale marker is a value")
	}
}

func FuzzNormalize(f *testing.F) {
	f.Add(uint64(0x02fd00000001e240))
	f.Add(uint64(0x0280ffffffffffff))
	f.Fuzz(func(t *testing.T, raw uint64) {
		w, ok := Normalize(raw)
		if !ok {
			return
		}
		if again, ok := Normalize(w); !ok || again != w {
			t.Fatalf("Normalize(%016x) = %016x is not stable", raw, w)
		}
		if KindOf(w) == KindInt && FromInt(Int(w)) != w {
			t.Fatalf("integer word %016x does not round trip", w)
		}
	})
}
