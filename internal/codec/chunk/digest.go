package chunk

import "encoding/binary"

// The digest of a chunk is
//
//	Σ key(slot) × mix(word)  mod 2^64
//
// over its set slots. It depends on the words alone and not on how they are
// encoded, and it is additive: the digests of two sets of slots without one in
// common give that of both. mix is a bijection and every key is odd, so chunks
// that differ in one slot never have the same digest; others do with a chance of
// 2^-64. It finds differences between copies, it does not withstand an attacker.
//
// Keys are the output of SplitMix64 (Steele, Lea, Flood, "Fast Splittable
// Pseudorandom Number Generators", OOPSLA 2014) for the seed 0, with the lowest
// bit set. mix is one round of such a finalizer: the product with the key spreads
// what differs upwards, so what is left to do is to bring it down to the lowest
// bits, which floats of few digits do not use. mix(0) is 0: an unset slot adds
// nothing.

const (
	golden     = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
	multiplier = 0xbf58476d1ce4e5b9 // the first of SplitMix64's finalizer
)

func mix(w uint64) uint64 {
	w = (w ^ w>>32) * multiplier
	return w ^ w>>29
}

// scramble is the finalizer of SplitMix64.
func scramble(z uint64) uint64 {
	z = (z ^ z>>30) * multiplier
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// slotKeys are the keys of the slots of a chunk.
var slotKeys = func() (keys [Slots]uint64) {
	for i := range keys {
		keys[i] = scramble(uint64(i+1)*golden) | 1
	}
	return keys
}()

// keySums are the sums of the keys below a slot: a word that stands for many
// slots is multiplied once.
var keySums = func() (sums [Slots + 1]uint64) {
	for i, k := range slotKeys {
		sums[i+1] = sums[i] + k
	}
	return sums
}()

// DigestWords returns the digest of words, which are the slots
// [off, off+len(words)) of a chunk. Unset ones add nothing, so the digests of two sets of
// slots without a common one add up to that of both. It panics when the slots are not
// within the chunk.
func DigestWords(words []uint64, off int) uint64 {
	var sum uint64
	keys := slotKeys[off:][:len(words)]
	for len(words) >= 4 && len(keys) >= 4 { // side by side: products take time to come
		sum += mix(words[0])*keys[0] + mix(words[1])*keys[1] + mix(words[2])*keys[2] +
			mix(words[3])*keys[3]
		words, keys = words[4:], keys[4:]
	}
	for i, w := range words {
		sum += keys[i] * mix(w)
	}
	return sum
}

// Digester makes digests of encoded chunks. It holds scratch memory. The zero value is
// ready; it must not be used by two goroutines at once.
type Digester struct{ words [Slots]uint64 }

// Chunk returns the digest of the chunk src: that of DigestWords for its words, however
// they are encoded. It decodes the whole chunk, unless all its slots from the first to the
// last one hold the same word. The error wraps ErrCorrupt.
func (d *Digester) Chunk(src []byte) (uint64, error) {
	if !IsMultiPart(src) && !HasStale(src) {
		var f frame
		r := newReader(src)
		if err := f.parse(&r); err != nil {
			return 0, err
		}
		if f.constant && f.shape != shapeMask {
			return mix(f.First) * (keySums[f.LastOff+1] - keySums[f.FirstOff]), r.end()
		}
	}
	clear(d.words[:])
	if err := DecodeRange(d.words[:], src, 0); err != nil {
		return 0, err
	}
	return DigestWords(d.words[:], 0), nil
}

// DigestOfSeries returns the factor of a series in the digest of many series. hash is the
// identity of the series. incarnation is the clock of its last deletion, 0 for none. The
// summand of a series is this factor times the sum of NumberedDigest over its chunks, in
// arithmetic modulo 2^64. So the sum over chunks can be stored without the incarnation.
func DigestOfSeries(hash [16]byte, incarnation uint64) uint64 {
	h := scramble(binary.BigEndian.Uint64(hash[:]) + golden)
	h = scramble(h ^ binary.BigEndian.Uint64(hash[8:]))
	return scramble(h^scramble(incarnation+golden)) | 1
}

// NumberedDigest mixes the number of a chunk, its first slot divided by Slots, into its
// digest. The results of all chunks of a series are added up.
func NumberedDigest(number int64, digest uint64) uint64 {
	return digest * (scramble(uint64(number)+golden) | 1)
}
