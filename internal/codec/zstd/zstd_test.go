package zstd

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// blocks are of every kind of content, around the sizes that matter.
func blocks() (all [][]byte) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 10, 255, 256, 1000, 8 << 10, 32 << 10, 64<<10 + 1, 200 << 10} {
		text, noise, skewed := make([]byte, n), make([]byte, n), make([]byte, n)
		for i := range text {
			text[i] = "the same again, and again; "[i%27]
			noise[i] = byte(r.Uint32())
			skewed[i] = byte(r.ExpFloat64() * 4)
		}
		all = append(all, text, noise, skewed)
	}
	return all
}

func TestRoundTrip(t *testing.T) {
	e := NewEncoder()
	for i, b := range blocks() {
		packed := e.Append([]byte("ab"), b)
		got := make([]byte, len(b))
		if err := Decode(got, packed[2:]); err != nil || !bytes.Equal(got, b) ||
			string(packed[:2]) != "ab" {
			t.Errorf("block %d of %d bytes: %v", i, len(b), err)
		}
	}
}

// TestEncodersAgree: what an encoder compressed before does not show.
func TestEncodersAgree(t *testing.T) {
	all, used := blocks(), NewEncoder()
	for range 3 {
		for i, b := range all {
			if !bytes.Equal(used.Append(nil, b), NewEncoder().Append(nil, b)) {
				t.Errorf("block %d of %d bytes differs between a new encoder and a used one", i, len(b))
			}
		}
		used.Release()
		used = NewEncoder()
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
}

// TestAnotherLengthIsRefused: neither a longer nor a shorter block is taken, and nothing is
// written behind the destination.
func TestAnotherLengthIsRefused(t *testing.T) {
	for i, b := range blocks() {
		packed := NewEncoder().Append(nil, b)
		for _, n := range []int{0, len(b) - 1, len(b) + 1, len(b) + 5000} {
			if n < 0 || n == len(b) {
				continue
			}
			dst := bytes.Repeat([]byte{0xaa}, n+8)
			if err := Decode(dst[:n], packed); err == nil {
				t.Errorf("block %d of %d bytes was taken as one of %d", i, len(b), n)
			}
			if !bytes.Equal(dst[n:], bytes.Repeat([]byte{0xaa}, 8)) {
				t.Errorf("block %d of %d bytes was written behind %d", i, len(b), n)
			}
		}
	}
}

// TestABombAllocatesNothing: a frame of a few bytes that stands for very many.
func TestABombAllocatesNothing(t *testing.T) {
	enc, err := zstd.NewWriter(nil, zstd.WithWindowSize(zstd.MaxWindowSize/64))
	if err != nil {
		t.Fatal(err)
	}
	bomb := enc.EncodeAll(make([]byte, 64<<20), nil)
	dst := make([]byte, 1000)
	if err := Decode(dst, bomb); err == nil {
		t.Fatal("a bomb was taken")
	}
	if n := testing.AllocsPerRun(10, func() { _ = Decode(dst, bomb) }); n > 20 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzDecode(f *testing.F) {
	for _, b := range blocks()[:15] {
		f.Add(NewEncoder().Append(nil, b), len(b))
	}
	f.Fuzz(func(t *testing.T, src []byte, n int) {
		if n < 0 || n > 1<<16 {
			return
		}
		dst := bytes.Repeat([]byte{0xaa}, n+8)
		_ = Decode(dst[:n], src)
		if !bytes.Equal(dst[n:], bytes.Repeat([]byte{0xaa}, 8)) {
			t.Fatal("written behind the destination")
		}
	})
}

// TestBlocks: content comes back from either form, and is never longer stored than it is.
func TestBlocks(t *testing.T) {
	e := NewEncoder()
	for i, b := range blocks() {
		for _, plain := range []int{0, len(b) / 2, len(b)} {
			for _, enc := range []*Encoder{e, nil} {
				stored := AppendBlock([]byte("ab"), b, plain, enc)
				if len(stored) > 2+1+len(b) {
					t.Errorf("block %d of %d bytes is stored in %d", i, len(b), len(stored)-2)
				}
				got, _, err := Content(nil, stored[2:], len(b))
				if err != nil || !bytes.Equal(got, b) {
					t.Errorf("block %d of %d bytes, %d plain: %v", i, len(b), plain, err)
				}
				if _, _, err := Content(nil, stored[2:], len(b)-1); err == nil {
					t.Errorf("block %d of %d bytes was taken for less", i, len(b))
				}
			}
		}
	}
}

// FuzzContent: no bytes give more content than is allowed, or memory for it.
func FuzzContent(f *testing.F) {
	for _, b := range blocks()[:12] {
		f.Add(AppendBlock(nil, b, len(b)/3, NewEncoder()))
		f.Add(AppendBlock(nil, b, 0, nil))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		const limit = 5000
		content, buf, err := Content(nil, src, limit)
		if len(content) > limit || cap(buf) > 2*limit || err != nil && content != nil {
			t.Fatalf("%d bytes in memory of %d: %v", len(content), cap(buf), err)
		}
	})
}

// TestShrinks: noise does not look as if it could be compressed, and what repeats itself does.
func TestShrinks(t *testing.T) {
	e := NewEncoder()
	for i, b := range blocks() {
		saves, looks := len(b)-len(e.Append(nil, b)), e.Shrinks(b)
		if saves > len(b)/20 && !looks || saves <= 0 && looks && len(b) >= shrinksMin {
			t.Errorf("block %d of %d bytes saves %d: %v", i, len(b), saves, looks)
		}
	}
}
