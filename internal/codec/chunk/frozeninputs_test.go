package chunk

import (
	"math"
	"math/rand/v2"
	"slices"

	"dalmatiner/internal/codec/point"
)

// frozenInputs are the words of the chunks, by name: every class, shape, list
// form and mask. They are used to make files that are missing; what counts is
// in the files.
func frozenInputs() map[string]frozenChunk {
	all := map[string]frozenChunk{
		"constant-part":   {off: 17, words: repeatWord(40, point.FromInt(-3))},
		"constant-bits":   {words: repeatWord(Slots, point.FromFloat(1.0/3))},
		"one-slot":        {off: 719, words: repeatWord(1, point.FromInt(1))},
		"only-NaN":        {off: 3, words: repeatWord(30, point.FromFloat(math.NaN()))},
		"special":         {off: 60, words: special},
		"extremes":        {words: extremes(130)},
		"few-gaps":        {words: withoutSlots(kindNamed("walk").make(300), 60, 61, 200)},
		"few-set":         {off: 5, words: onlySlots(kindNamed("random").make(700), 0, 31, 32, 400, 699)},
		"slow-decimals":   {words: holdWords(kindNamed("two-decimals").make(200), 17)},
		"slow-floats":     {words: holdWords(kindNamed("floats").make(200), 23)},
		"slow-mixture":    {words: holdWords(kindNamed("ints-and-floats").make(200), 11)},
		"decimal-gaps":    {words: withoutSlots(kindNamed("two-decimals").make(100), 3, 4, 5, 77)},
		"float-gaps":      {words: withoutSlots(kindNamed("floats").make(70), 3, 4, 5, 66)},
		"mixture-gaps":    {words: withoutSlots(kindNamed("ints-and-floats").make(130), 9, 99)},
		"outage-constant": {words: withoutSlots(repeatWord(300, point.FromInt(7)), span(100, 180)...)},
		"digits":          {words: digits(120)},
		"even-decimals":   {words: evenWords(kindNamed("two-decimals").make(250))},
		"even-constant":   {words: repeatWord(Slots, point.EvenWord(point.FromFloat(0.3)))},
		"even-and-NaN":    {words: evenWords(kindNamed("decimals-and-NaN").make(250))},
		"signs":           {words: signs(70)},
		"near-decimals":   {words: sums(250, 1)},
		"nearer-decimals": {words: sums(5, 1)},
		"nearly-decimals": {words: sums(250, 30)},
		"near-and-others": {words: alternating(sums(61, 1), point.FromFloat(math.Pi))},
		"split-constant":  {words: alternating(kindNamed("floats").make(61), point.FromInt(5))},
		"composite":       {height: 60, words: padWords(kindNamed("counter").make(300))},
		"composite-gap": {
			height: 120, words: padWords(withoutSlots(kindNamed("random").make(480), span(120, 240)...))},
		"composite-float": {height: 60, words: padWords(kindNamed("two-decimals").make(120))},
	}
	for name, c := range map[string]frozenChunk{
		"stale-end":    {words: endWithStale(kindNamed("counter").make(400), 400)},
		"stale-floats": {off: 100, words: endWithStale(kindNamed("two-decimals").make(61), 61)},
		"stale-first":  {off: 719, words: []uint64{point.Stale}},
		"stale-alone":  {off: 7, words: repeatWord(300, point.Stale)},
		"stale-often": {words: alternating(withoutSlots(kindNamed("walk").make(100), 11, 12, 40),
			point.Stale)},
	} {
		all[name] = c
		c.dense = true
		all["dense-"+name] = c
	}
	for name, n := range map[string]int{
		"constant": Slots, "random": Slots, "counter": Slots, "walk": Slots, "sparse-counter": Slots,
		"slow-gauge": Slots,
		"line":       Slots, "parabola": Slots, "two-decimals": 250, "decimal-constant": Slots,
		"floats":        70,
		"smooth-floats": 130,
		"float32":       130, "decimals-and-NaN": 250, "ints-and-floats": 200, "spikes": Slots,
		"resets":      Slots,
		"latency":     130,
		"every-tenth": Slots, "outage": 300, "random-gaps": 300,
		"normal-walk": 500, "normal": 300, "requests": 300, "idle-requests": 300, "idle-gauge": 300,
		"kilobytes": 200, "bursts": 300, "idle-bursts": 600, "swings": 300, "idle-swings": 300,
		"seconds": 90, "batches": 300, "every-fifth": 600,
	} {
		all[name] = frozenChunk{words: kindNamed(name).make(n)}
		all["dense-"+name] = frozenChunk{dense: true, words: kindNamed(name).make(n)}
	}
	return all
}

func kindNamed(name string) kind {
	all := kinds()
	return all[slices.IndexFunc(all, func(k kind) bool { return k.name == name })]
}

func repeatWord(n int, w uint64) []uint64 { return slices.Repeat([]uint64{w}, n) }

func span(from, to int) (slots []int) {
	for i := from; i < to; i++ {
		slots = append(slots, i)
	}
	return slots
}

func withoutSlots(words []uint64, slots ...int) []uint64 {
	for _, i := range slots {
		words[i] = point.Unset
	}
	return words
}

func onlySlots(words []uint64, slots ...int) []uint64 {
	out := make([]uint64, len(words))
	for _, i := range slots {
		out[i] = words[i]
	}
	return out
}

// evenWords makes the words of a sender that drops the lowest bit of floats.
func evenWords(words []uint64) []uint64 {
	for i := range words {
		words[i] = point.EvenWord(words[i])
	}
	return words
}

// signs are floats with all bits on both sides of zero.
func signs(n int) []uint64 {
	r := rand.New(rand.NewPCG(7, 8))
	words := make([]uint64, n)
	for i := range words {
		words[i] = point.FromFloat(r.NormFloat64() / 3)
	}
	return words
}

// sums are decimals that were added up, most of which miss the nearest double; of every few
// the others are exact.
func sums(n, every int) []uint64 {
	r := rand.New(rand.NewPCG(9, 10))
	words := make([]uint64, n)
	sum, exact := 0.0, 0
	for i := range words {
		k := r.IntN(1000)
		exact += k
		sum += float64(k) / 1000
		words[i] = point.FromFloat(sum)
		if i%every != 0 {
			words[i] = point.FromFloat(float64(exact) / 1000)
		}
	}
	return words
}

// holdWords repeats every n-th word until the next of these.
func holdWords(words []uint64, n int) []uint64 {
	for i := range words {
		words[i] = words[i/n*n]
	}
	return words
}

// digits have groups of three in ten bits.
func digits(n int) []uint64 {
	r := rand.New(rand.NewPCG(5, 6))
	words := make([]uint64, n)
	for i := range words {
		words[i] = point.FromInt(r.Int64N(10))
	}
	return words
}

func alternating(words []uint64, other uint64) []uint64 {
	for i := 1; i < len(words); i += 2 {
		words[i] = other
	}
	return words
}

func padWords(words []uint64) []uint64 { return append(words, make([]uint64, Slots-len(words))...) }

func extremes(n int) []uint64 {
	r := rand.New(rand.NewPCG(3, 4))
	words := make([]uint64, n)
	for i := range words {
		words[i] = point.FromInt([]int64{point.MinInt, point.MaxInt, 0, r.Int64N(1 << 54)}[r.IntN(4)])
	}
	return words
}
