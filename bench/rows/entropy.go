package rows

import (
	"math"

	"dalmatiner/haggar"
)

// What the entropy of the mix is counted from: some series of each kind, some
// slots of each.
const (
	entropySeries = 20
	entropySlots  = 36_000
)

// entropy returns the bits that one draw from these counts carries.
func entropy(counts map[int64]int) float64 {
	total := 0
	for _, n := range counts {
		total += n
	}
	bits := 0.0
	for _, n := range counts {
		p := float64(n) / float64(total)
		bits -= p * math.Log2(p)
	}
	return bits
}

// entropyOfUniform returns the bits of a uniform value, counted from the values
// haggar sends: each is drawn on its own.
func entropyOfUniform() float64 {
	var d haggar.Data
	counts := map[int64]int{}
	for i := range 10 * entropySeries {
		it := d.Series(0, i)
		countValues(counts, &it)
	}
	return entropy(counts)
}

// entropyOfMix returns the bits per point of the published mix: the mean of its
// ten kinds of series. What is drawn at a step is the value of a uniform
// series, and of all others the difference to the step before.
func entropyOfMix() float64 {
	d := haggar.Data{Walk: true}
	sum := 0.0
	for kind := range 10 {
		counts := map[int64]int{}
		for i := range entropySeries {
			it := d.Series(0, kind+10*i)
			if haggar.MixKind(kind) == haggar.Uniform {
				countValues(counts, &it)
			} else {
				countSteps(counts, &it)
			}
		}
		sum += entropy(counts)
	}
	return sum / 10
}

func countValues(counts map[int64]int, it *haggar.Iter) {
	it.At(haggar.Origin)
	for range entropySlots {
		counts[it.Next()]++
	}
}

func countSteps(counts map[int64]int, it *haggar.Iter) {
	last := it.At(haggar.Origin)
	for range entropySlots {
		v := it.Next()
		counts[v-last]++
		last = v
	}
}
