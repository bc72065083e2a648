package haggar

import "dalmatiner/internal/codec/point"

// Kind is the shape of a series.
type Kind uint8

// The kinds of series. A step is one slot.
const (
	Uniform  Kind = iota // uniform in 0…999, every slot on its own
	Constant             // one value for ever
	Gauge                // with probability 1/60 a step moves by a uniform −5…5
	Counter              // a step adds a uniform 0…20
	Sparse               // with probability 1/10 a step adds 1
	Walk                 // a step adds a uniform −8…8, from near 50,000
)

// MixKind returns the kind of the metric with the number i in the published
// mix.
func MixKind(i int) Kind {
	return [10]Kind{Constant, Constant, Gauge, Gauge, Counter, Counter, Sparse, Sparse, Walk,
		Uniform}[i%10]
}

// Origin is the slot at which counters have their start value: the first
// second of 2026. Before it they are lower, and may be negative.
const Origin int64 = 1_767_225_600

// A series that integrates is cut into windows of windowSize slots. The
// increments of a window are one fixed multiset in an order of its own, so
// that every window adds the same sum and the value at its start is known
// without visiting the windows before it.
const (
	windowBits = 12
	windowSize = 1 << windowBits
	windowMask = windowSize - 1

	gaugeMoves = 68  // of 4096: 1/60
	sparseAdds = 410 // of 4096: 1/10
	counterSum = 40950
)

// Iter walks over the values of one series. Copies are independent.
type Iter struct {
	kind   Kind
	key    uint64 // of the series; of its agent for Uniform
	index  uint64 // Uniform: the golden-ratio step of the metric
	base   int64  // value at the start of window 0
	phase  int64  // added to slots, so that series change windows apart
	at     int64  // slot + phase of value; the window of order
	order  uint64 // arranges the increments of the window
	value  int64
	placed bool
}

// Series returns the values of metric i of an agent, of the given kind.
func Series(kind Kind, seed uint64, agent, i int) Iter {
	row := agentKey(seed, agent)
	if kind == Uniform {
		return Iter{kind: kind, key: row, index: uint64(i) * golden}
	}
	key := mix(mix(row+uint64(i)*golden) + uint64(kind))
	it := Iter{kind: kind, key: key, phase: int64(key & windowMask)}
	start := int64(key >> 20)
	switch kind {
	case Constant, Gauge:
		it.base = start % 1000
	case Counter, Sparse:
		it.base = start%1_000_000 - (Origin+it.phase)>>windowBits*it.windowSum()
	case Walk:
		it.base = 49_000 + start%2000
	}
	return it
}

// Word returns the value at slot as the point that is sent.
func (it Iter) Word(slot int64) uint64 { return point.FromInt(it.At(slot)) }

// At moves to slot and returns its value. The slot after the last one costs
// a few nanoseconds, any other up to 4096 times that.
func (it *Iter) At(slot int64) int64 {
	switch it.kind {
	case Uniform:
		it.at = slot
		return uniform(rowKey(it.key, slot) + it.index)
	case Constant:
		it.at = slot
		return it.base
	}
	to := slot + it.phase
	if !it.placed || to < it.at || to>>windowBits != it.at>>windowBits {
		it.enter(to >> windowBits)
	}
	for it.at < to {
		it.at++
		it.value += it.increment(it.at & windowMask)
	}
	return it.value
}

// Next moves to the slot after the one of the last At or Next and returns
// its value.
func (it *Iter) Next() int64 { return it.At(it.at - it.phase + 1) }

// enter moves to the first slot of a window.
func (it *Iter) enter(window int64) {
	it.placed = true
	it.at = window << windowBits
	it.order = mix(it.key + uint64(window)*golden)
	it.value = it.base + window*it.windowSum() + it.increment(0)
}

func (it *Iter) windowSum() int64 {
	switch it.kind {
	case Counter:
		return counterSum
	case Sparse:
		return sparseAdds
	}
	return 0
}

// increment returns what the slot j of the window adds. The rank is a
// permutation of the window's slots. Where increments have a sign, the ranks
// 2n and 2n+1 cancel.
func (it *Iter) increment(j int64) int64 {
	r := int64(permute(uint64(j), it.order))
	switch it.kind {
	case Counter:
		return r * 21 >> windowBits
	case Sparse:
		return int64(uint64(r-sparseAdds) >> 63)
	case Gauge:
		if r >= gaugeMoves {
			return 0
		}
		return signed(r>>1*11/(gaugeMoves/2)-5, r)
	}
	return signed(r>>1*17>>(windowBits-1)-8, r)
}

// signed returns v for an even rank and −v for an odd one.
func signed(v, rank int64) int64 {
	odd := -(rank & 1)
	return v ^ odd - odd
}

// permute is a permutation of the 4096 slots of a window, chosen by order:
// rounds of an odd multiplier, which moves differences up, and a shift, which
// brings them down.
func permute(j, order uint64) uint64 {
	x := (j + order) * (order>>12 | 1) & windowMask
	x ^= x >> 5
	x = (x + order>>24) * (order>>36 | 5) & windowMask
	x ^= x >> 7
	x = x * (order>>48 | 3) & windowMask
	return x ^ x>>6
}

// golden is 2^64 divided by the golden ratio: multiples of it spread evenly.
const golden = 0x9e3779b97f4a7c15

// mix is a bijection of 64 bits in which every input bit reaches every output
// bit.
func mix(x uint64) uint64 {
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	return x ^ x>>32
}

func agentKey(seed uint64, agent int) uint64 { return mix(mix(seed+golden) + uint64(agent)*golden) }

func rowKey(agent uint64, slot int64) uint64 { return mix(agent + uint64(slot)*golden) }

// uniform maps a key to 0…999.
func uniform(key uint64) int64 { return int64(mix(key) >> 32 * 1000 >> 32) }
