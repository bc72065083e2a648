package intlist

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// genMask draws members below n: noise of some density, or blocks.
func genMask(t *rapid.T, n int) (m Mask, want []bool) {
	want = make([]bool, n)
	period := rapid.IntRange(1, MaxLen).Draw(t, "period")
	on := rapid.IntRange(0, period).Draw(t, "on")
	for i := range want {
		want[i] = i%period < on
	}
	for range rapid.IntRange(0, 20).Draw(t, "flips") {
		if n > 0 {
			i := rapid.IntRange(0, n-1).Draw(t, "flip")
			want[i] = !want[i]
		}
	}
	for i, in := range want {
		if in {
			m.Set(i)
		}
	}
	return m, want
}

func TestMaskRoundTrip(t *testing.T) {
	var s Scratch
	rapid.Check(t, func(t *rapid.T) {
		s.Dense = rapid.Bool().Draw(t, "dense")
		n := rapid.IntRange(0, MaxLen).Draw(t, "n")
		m, want := genMask(t, n)
		p := PlanMask(&m, n, &s)
		src := p.AppendTo(nil, n)
		if len(src) != p.Size {
			t.Fatalf("%d bytes, planned %d", len(src), p.Size)
		}
		if len(src) > 1+(n+7)/8 {
			t.Fatalf("%d bytes for %d positions are more than the bitmap", len(src), n)
		}
		r := NewReader(append(src, 0xff))
		got, err := r.Mask(n)
		if err != nil || len(r.Src) != 1 {
			t.Fatalf("error %v, %d bytes left of 1", err, len(r.Src))
		}
		rank := 0
		for i, in := range want {
			if got.Has(i) != in || got.Rank(i) != rank {
				t.Fatalf("position %d: member %v, rank %d; want %v, %d", i, got.Has(i), got.Rank(i), in, rank)
			}
			if in {
				rank++
			}
		}
		if got != m {
			t.Fatalf("members behind the last position")
		}
	})
}

func TestMaskSize(t *testing.T) {
	var s Scratch
	for _, c := range []struct {
		name string
		in   func(i int) bool
		size int
	}{
		{"none", func(int) bool { return false }, 3},
		{"all", func(int) bool { return true }, 3},
		{"every tenth", func(i int) bool { return i%10 == 9 }, 3},
		{"all but every tenth", func(i int) bool { return i%10 != 9 }, 4},
		{"one outage", func(i int) bool { return i < 200 || i >= 500 }, 7},
		{"noise at the start, one at the end", func(i int) bool {
			return i < 140 && i*i%7 < 3 || i == 719
		}, 55},
		{"noise", func(i int) bool { return i*i%7 < 3 }, 91},
	} {
		var m Mask
		for i := range MaxLen {
			if c.in(i) {
				m.Set(i)
			}
		}
		p := PlanMask(&m, MaxLen, &s)
		if p.Size > c.size {
			t.Errorf("%s: %d bytes, the limit is %d", c.name, p.Size, c.size)
		}
		r := NewReader(p.AppendTo(nil, MaxLen))
		if got, err := r.Mask(MaxLen); err != nil || got != m {
			t.Errorf("%s: came back as %x, error %v", c.name, got, err)
		}
	}
}

// Every lag is undone, also those that no encoder chooses.
func TestEdges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, lag := rapid.IntRange(0, MaxLen).Draw(t, "n"), rapid.IntRange(1, maxLag).Draw(t, "lag")
		m, in := genMask(t, n)
		edges := m.edges(n, lag)
		for i := range in {
			if want := in[i] != (i >= lag && in[i-lag]); edges.Has(i) != want {
				t.Fatalf("position %d: edge %t, want %t", i, !want, want)
			}
		}
		if edges.Rank(MaxLen) != edges.Rank(n) {
			t.Fatal("edges behind the last position")
		}
		if got := edges.fromEdges(n, lag); got != m {
			t.Fatalf("%x came back as %x", m, got)
		}
	})
}

// A mask that follows a period but for some positions takes what these take.
func TestMaskOfAPeriod(t *testing.T) {
	var m Mask
	for i := range MaxLen {
		if (i%5 == 3) != (i%97 == 40) {
			m.Set(i)
		}
	}
	s := Scratch{Dense: true}
	p := PlanMask(&m, MaxLen, &s)
	if p.lag != 5 || p.Size > 24 {
		t.Errorf("lag %d, %d bytes", p.lag, p.Size)
	}
	src := p.AppendTo(nil, MaxLen)
	for _, lag := range []byte{0, 1, maxLag + 1} {
		src[1] = lag
		r := NewReader(src)
		if _, err := r.Mask(MaxLen); err == nil {
			t.Errorf("lag %d was read", lag)
		}
	}
	src[0], src[1] = src[0]&^3|maskOnes, 5
	r := NewReader(src)
	if _, err := r.Mask(MaxLen); err == nil {
		t.Error("a lag of members was read")
	}
}

// Fields read one after the other are those read one by one, up to the end and
// beyond it.
func TestFieldsAt(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for size := range 40 {
		src := make([]byte, size)
		for i := range src {
			src[i] = byte(r.Uint32())
		}
		for width := range uint(65) {
			var got [MaxLanes]uint64
			pos := r.IntN(8*size + 1)
			fieldsAt(got[:], src, pos, width)
			for i, v := range got {
				want := new(big.Int)
				for k := range size {
					want.Or(want, new(big.Int).Lsh(big.NewInt(int64(src[k])), uint(8*k)))
				}
				want.Rsh(want, uint(pos)+uint(i)*width)
				want.And(want, new(big.Int).SetUint64(1<<width-1))
				if one := bitsAt(src, pos+i*int(width), width); v != want.Uint64() || one != v {
					t.Fatalf("field %d of %d bits from bit %d on of %x: %#x, alone %#x, want %#x", i, width, pos,
						src, v, one, want)
				}
			}
		}
	}
}
