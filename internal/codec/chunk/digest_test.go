package chunk

import (
	"encoding/binary"
	"errors"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"dalmatiner/internal/codec/point"
	"pgregory.net/rapid"
)

// splitMix is the generator as its paper states it.
type splitMix struct{ state uint64 }

func (s *splitMix) next() uint64 {
	s.state += 0x9e3779b97f4a7c15
	z := s.state
	z ^= z >> 30
	z *= 0xbf58476d1ce4e5b9
	z ^= z >> 27
	z *= 0x94d049bb133111eb
	return z ^ z>>31
}

func naiveMix(w uint64) uint64 {
	w ^= w >> 32
	w *= 0xbf58476d1ce4e5b9
	return w ^ w>>29
}

// naiveDigest adds the set slots up as integers of any size.
func naiveDigest(words []uint64, off int) uint64 {
	var keys splitMix
	for range off {
		keys.next()
	}
	sum := new(big.Int)
	for _, w := range words {
		key := keys.next()
		if w == point.Unset {
			continue
		}
		k := new(big.Int).SetUint64(key | 1)
		sum.Add(sum, k.Mul(k, new(big.Int).SetUint64(naiveMix(w))))
	}
	return new(big.Int).Mod(sum, new(big.Int).Lsh(big.NewInt(1), 64)).Uint64()
}

// The bytes of a chunk do not matter: the digest is that of its words, whole or
// in pieces.
func TestDigestDependsOnTheWords(t *testing.T) {
	var e Encoder
	var d Digester
	rapid.Check(t, func(t *rapid.T) {
		off, words := genMarked(t)
		want := naiveDigest(words, off)
		if got := DigestWords(words, off); got != want {
			t.Fatalf("digest %x of words, want %x", got, want)
		}
		if src := encodeEither(t, &e, off, words); len(src) > 0 {
			got, err := d.Chunk(src)
			if err != nil || got != want {
				t.Fatalf("digest %x of a chunk, want %x: %v", got, want, err)
			}
		}
		cut := rapid.IntRange(0, len(words)).Draw(t, "cut")
		if got := DigestWords(words[:cut], off) + DigestWords(words[cut:], off+cut); got != want {
			t.Fatalf("digest %x of two parts, want %x", got, want)
		}
	})
}

func TestDigestOfAMultiPartChunk(t *testing.T) {
	var e Encoder
	var d Digester
	for _, k := range kinds() {
		words := k.make(Slots)
		src, _, err := AppendMultiPart(nil, cutParts(&e, words, everyLane(2*Lane)))
		if err != nil {
			src, _, err = AppendMultiPart(nil, cutParts(&e, words, everyLane(Lane)))
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := d.Chunk(src); err != nil || got != naiveDigest(words, 0) {
			t.Errorf("%s: digest %x, want %x: %v", k.name, got, naiveDigest(words, 0), err)
		}
	}
}

// Of two chunks that differ in one slot the digests differ, always.
func TestDigestTellsEverySlotApart(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	words := kinds()[1].make(Slots)
	before := DigestWords(words, 0)
	for i := range words {
		was := words[i]
		for _, w := range append(slices.Clone(special), point.Unset, was^1, was^1<<55, r.Uint64()|1<<63) {
			words[i] = w
			if after := DigestWords(words, 0); (after == before) != (w == was) {
				t.Fatalf("slot %d: digest %x with %x in place of %x", i, after, w, was)
			}
		}
		words[i] = was
	}
	swapped := slices.Clone(words)
	swapped[3], swapped[4] = words[4]+1, words[3]+1
	if DigestWords(swapped, 0) == before || DigestWords(words[:719], 1) == DigestWords(words[:719],
		0) {
		t.Error("the place of a word does not count")
	}
}

// TestDigestIsPublished holds the constants down: nodes of different builds
// compare digests.
func TestDigestIsPublished(t *testing.T) {
	hash := [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	words := make([]uint64, Slots)
	for i := range words {
		words[i] = point.FromInt(int64(i))
	}
	digest := DigestWords(words, 0)
	got := [3]uint64{slotKeys[0], digest, digestSummand(hash, 7, 2_000_000, digest)}
	want := [3]uint64{0xe220a8397b1dcdaf, 0x7751fedfced5fe8a, 0xbbc975ead88d2556}
	if got != want {
		t.Errorf("%#x, want %#x", got, want)
	}
}

// digestSummand returns what a chunk adds to a sum over the chunks of many series.
func digestSummand(hash [16]byte, incarnation uint64, number int64, digest uint64) uint64 {
	return DigestOfSeries(hash, incarnation) * NumberedDigest(number, digest)
}

func TestDigestSummands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var hash [16]byte
		binary.BigEndian.PutUint64(hash[:], rapid.Uint64().Draw(t, "hash"))
		binary.BigEndian.PutUint64(hash[8:], rapid.Uint64().Draw(t, "low half"))
		incarnation, number := rapid.Uint64().Draw(t, "incarnation"), rapid.Int64().Draw(t, "number")
		digest := rapid.Uint64Range(1, 1<<64-1).Draw(t, "digest")
		sum := digestSummand(hash, incarnation, number, digest)
		other := hash
		other[rapid.IntRange(0, 15).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		for what, s := range map[string]uint64{
			"hash":        digestSummand(other, incarnation, number, digest),
			"incarnation": digestSummand(hash, incarnation+1, number, digest),
			"number":      digestSummand(hash, incarnation, number+1, digest),
			"digest":      digestSummand(hash, incarnation, number, digest+1),
		} {
			if s == sum {
				t.Fatalf("the %s does not count", what)
			}
		}
		// The series can come last.
		if DigestOfSeries(hash, incarnation)*(NumberedDigest(number, digest)+NumberedDigest(3, 4)) !=
			sum+digestSummand(hash, incarnation, 3, 4) {
			t.Fatal("the digests of a series are not additive")
		}
	})
}

func TestDigestOfDamage(t *testing.T) {
	var e Encoder
	var d Digester
	for _, k := range kinds() {
		src := e.Append(nil, 0, k.make(Slots))
		for n := range src {
			if _, err := d.Chunk(src[:n]); err == nil {
				t.Errorf("%s: the first %d of %d bytes have a digest", k.name, n, len(src))
			} else if !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s: %v", k.name, err)
			}
		}
	}
}

func BenchmarkDigestWords(b *testing.B) {
	words := kinds()[1].make(Slots)
	for b.Loop() {
		DigestWords(words, 0)
	}
	perPoint(b, Slots, 0)
}

// The digest of an encoded chunk, which has to be decoded.
func BenchmarkDigest(b *testing.B) {
	var d Digester
	forKinds(b, func(b *testing.B, _ []uint64, src []byte) {
		for b.Loop() {
			if _, err := d.Chunk(src); err != nil {
				b.Fatal(err)
			}
		}
	})
}
