package chunk

import (
	"bytes"
	"math"
	"math/rand/v2"

	"dalmatiner/internal/codec/point"
	"pgregory.net/rapid"
)

// kind is a kind of data; make returns n slots, the same for the same n.
type kind struct {
	name string
	make func(n int) []uint64
	// limit is what 720 set slots may take, in bits per point with the header.
	limit float64
}

func kinds() []kind {
	return []kind{
		{"constant", series(constantAt(42), point.FromInt), .25},
		{"random", series(drawnValues(func(r *rand.Rand) float64 { return float64(r.IntN(1000)) }),
			point.FromInt), 10.3},
		{"counter", series(walk(567_890, func(r *rand.Rand) float64 { return float64(r.IntN(21)) }),
			point.FromInt), 4.9},
		{"walk", series(walk(50_000, func(r *rand.Rand) float64 { return float64(r.IntN(17) - 8) }),
			point.FromInt), 4.6},
		{"sparse-counter", series(sparseCounter, point.FromInt), .8},
		{"slow-gauge", series(slowGauge, point.FromInt), .4},
		{"line", series(curve(func(i int) float64 { return float64(1000 + 37*i) }),
			point.FromInt), .4},
		{"parabola", series(curve(func(i int) float64 { return float64(i * i * 50) }),
			point.FromInt), 1},
		{"two-decimals", series(func(r *rand.Rand, i int, v float64) float64 {
			return math.Round((start(i, 21, v)+float64(r.IntN(21)-10)/100)*100) / 100
		}, point.FromFloat), 5.2},
		{"decimal-constant", series(constantAt(0.1), point.FromFloat), .25},
		{"floats", series(drawnValues(func(r *rand.Rand) float64 { return r.Float64() }),
			point.FromFloat), 63},
		{"smooth-floats", series(curve(func(i int) float64 { return 20 + math.Sin(float64(i)/100) }),
			point.FromFloat), 47},
		{"float32", series(drawnValues(func(r *rand.Rand) float64 { return float64(r.Float32()) }),
			point.FromFloat), 33},
		{"decimals-and-NaN", series(func(r *rand.Rand, i int, _ float64) float64 {
			if i%100 == 50 {
				return math.NaN()
			}
			return float64(r.IntN(1000)) / 10
		}, point.FromFloat), 11.5},
		{"ints-and-floats", intsAndFloats, 11.5},
		{"spikes", series(spikes, point.FromInt), 5.5},
		{"resets", series(resets, point.FromInt), 5.6},
		{"latency", series(drawnValues(func(r *rand.Rand) float64 {
			return math.Round(1000 * math.Exp(r.NormFloat64()))
		}), point.FromInt), 13.6},
		{"normal-walk", series(walk(70_000, func(r *rand.Rand) float64 {
			return math.Round(r.NormFloat64() * 9)
		}), point.FromInt), 6.3},
		{"normal",
			series(drawnValues(func(r *rand.Rand) float64 { return math.Round(r.NormFloat64() * 30) }),
				point.FromInt), 7.8},
		{"requests", series(walk(1e6, func(r *rand.Rand) float64 {
			return math.Floor(r.ExpFloat64() * 40)
		}), point.FromInt), 8.7},
		{"idle-requests", series(idleRequests, point.FromInt), 5.6},
		{"idle-gauge", series(idleGauge, point.FromInt), 3.9},
		{"kilobytes", series(walk(8e5, func(r *rand.Rand) float64 {
			return 4 * math.Round(r.NormFloat64()*9)
		}), point.FromInt), 8.3},
		{"bursts", series(bursts(1, false), point.FromInt), 12.5},
		{"idle-bursts", series(bursts(3, false), point.FromInt), 12.5},
		{"swings", series(bursts(1, true), point.FromInt), 13.5},
		{"idle-swings", series(bursts(2, true), point.FromInt), 13.5},
		{"seconds", series(func(r *rand.Rand, i int, v float64) float64 {
			return math.Round((start(i, 21, v)+float64(r.IntN(21))/100)*100) / 100
		}, point.FromFloat), 5.2},
		{"batches", series(batches, point.FromInt), 10.5},
		{"every-fifth", series(everyFifth, point.FromInt), 3.4},
		{"every-tenth", everyTenth, 1.3},
		{"outage", outage, 9},
		{"random-gaps", randomGaps, 7},
	}
}

// constantAt stays at one value.
func constantAt(value float64) func(*rand.Rand, int, float64) float64 {
	return func(*rand.Rand, int, float64) float64 { return value }
}

// curve has in each slot what at says.
func curve(at func(i int) float64) func(*rand.Rand, int, float64) float64 {
	return func(_ *rand.Rand, i int, _ float64) float64 { return at(i) }
}

// drawnValues has values that are drawn one by one.
func drawnValues(draw func(*rand.Rand) float64) func(*rand.Rand, int, float64) float64 {
	return func(r *rand.Rand, _ int, _ float64) float64 { return draw(r) }
}

// walk begins one step from first and goes a step in each slot.
func walk(first float64, step func(*rand.Rand) float64) func(*rand.Rand, int, float64) float64 {
	return func(r *rand.Rand, i int, v float64) float64 { return start(i, first, v) + step(r) }
}

func start(i int, first, v float64) float64 {
	if i == 0 {
		return first
	}
	return v
}

// batches is a counter that stands still in one slot of four, and elsewhere grows by about
// the same.
func batches(r *rand.Rand, i int, v float64) float64 {
	if v = start(i, 4e6, v); r.IntN(4) == 0 {
		return v
	}
	return v + 900 + float64(r.IntN(60))
}

// everyFifth is a counter that nearly always grows in every fifth slot, and seldom elsewhere.
func everyFifth(r *rand.Rand, i int, v float64) float64 {
	v = start(i, 800, v)
	if i%5 == 3 != (r.IntN(25) == 0) {
		v += 1 + float64(r.IntN(300))
	}
	return v
}

func sparseCounter(r *rand.Rand, i int, v float64) float64 {
	v = start(i, 1234, v)
	if r.IntN(10) == 0 {
		v++
	}
	return v
}

func slowGauge(r *rand.Rand, i int, v float64) float64 {
	v = start(i, 500, v)
	if r.IntN(60) == 0 {
		v += float64(r.IntN(11) - 5)
	}
	return v
}

// idleRequests is a counter that stands still most of the time.
func idleRequests(r *rand.Rand, i int, v float64) float64 {
	if v = start(i, 1e6, v); r.IntN(5) < 2 {
		v += 1 + math.Floor(r.ExpFloat64()*40)
	}
	return v
}

// idleGauge holds its value half of the time, and goes up or down a little in the other.
func idleGauge(r *rand.Rand, i int, v float64) float64 {
	if v = start(i, 1e4, v); r.IntN(2) == 0 {
		v += math.Round(r.NormFloat64() * 2)
	}
	return v
}

// bursts changes once in a number of slots, by amounts of any magnitude up to e^8.
func bursts(every int, signed bool) func(r *rand.Rand, i int, v float64) float64 {
	return func(r *rand.Rand, i int, v float64) float64 {
		v = start(i, 1e6, v)
		if r.IntN(every) > 0 {
			return v
		}
		change := math.Floor(math.Exp(8 * r.Float64()))
		if signed && r.IntN(2) == 0 {
			change = -change
		}
		return v + change
	}
}

// spikes is a gauge of 0..20 that now and then holds a large value.
func spikes(r *rand.Rand, _ int, _ float64) float64 {
	if r.IntN(50) == 0 {
		return float64(r.IntN(1_000_000))
	}
	return float64(r.IntN(21))
}

// resets is a counter that starts again every 300 slots.
func resets(r *rand.Rand, i int, v float64) float64 {
	if i%300 == 0 {
		v = 1e9
	}
	if i%300 == 299 {
		return 0
	}
	return v + float64(r.IntN(21))
}

// series makes every value from the one before.
func series[T int64 | float64](next func(r *rand.Rand, i int, v float64) float64,
	word func(T) uint64) func(int) []uint64 {
	return func(n int) []uint64 {
		r := rand.New(rand.NewPCG(1, 2))
		words := make([]uint64, n)
		v := 0.0
		for i := range words {
			v = next(r, i, v)
			words[i] = word(T(v))
		}
		return words
	}
}

func intsAndFloats(n int) []uint64 {
	r := rand.New(rand.NewPCG(1, 2))
	words := make([]uint64, n)
	for i := range words {
		k := r.IntN(1000)
		words[i] = point.FromFloat(float64(k) / 10)
		if k%10 == 0 {
			words[i] = point.FromInt(int64(k / 10))
		}
	}
	return words
}

func everyTenth(n int) []uint64 {
	words := make([]uint64, n)
	for i := 3; i < n; i += 10 {
		words[i] = point.FromInt(int64(i * i % 1000))
	}
	return words
}

func outage(n int) []uint64 {
	words := kinds()[1].make(n)
	clear(words[n/3 : n/2])
	return words
}

func randomGaps(n int) []uint64 {
	r := rand.New(rand.NewPCG(1, 2))
	words := kinds()[1].make(n)
	for i := range words {
		if r.IntN(2) == 0 {
			words[i] = point.Unset
		}
	}
	return words
}

// encodeEither encodes words in one of the two ways.
func encodeEither(t *rapid.T, e *Encoder, off int, words []uint64) []byte {
	if rapid.Bool().Draw(t, "dense") {
		return e.AppendDense(nil, off, words)
	}
	return e.Append(nil, off, words)
}

// encodeBoth encodes words in both ways, of which it returns one if they are the same.
func encodeBoth(e *Encoder, off int, words []uint64) [][]byte {
	plain, dense := e.Append(nil, off, words), e.AppendDense(nil, off, words)
	if bytes.Equal(plain, dense) {
		return [][]byte{plain}
	}
	return [][]byte{plain, dense}
}

// special words: extremes, signed zero, the infinities, NaN with payloads.
var special = []uint64{
	point.FromInt(0), point.FromInt(1), point.FromInt(-1), point.FromInt(point.MaxInt),
	point.FromInt(point.MinInt),
	1 << 63, 1<<63 | 1<<62, 1<<64 - 1, 1<<63 | 1, 1 << 58, 1<<63 - 1, 1 << 62,
	point.FromFloat(math.Inf(1)), point.FromFloat(math.Inf(-1)), point.FromFloat(math.NaN()),
	point.FromFloat(math.NaN()) | 12345, point.FromFloat(math.MaxFloat64),
	point.FromFloat(-math.MaxFloat64),
	point.FromFloat(math.SmallestNonzeroFloat64 * 2), point.FromFloat(1), point.FromFloat(-1),
	point.FromFloat(0.1),
	point.FromFloat(1 << 50), point.FromFloat(1 << 52), point.FromFloat(-(1 << 51)),
	point.FromFloat(1e-9),
	point.FromFloat(1 << 55), point.FromFloat(1<<55 - 8), point.FromFloat(0.3), point.FromFloat(-0.3),
	point.FromFloat(0x1p-895), point.FromFloat(0x1.0000000000001p-896),
	point.FromFloat(-math.SmallestNonzeroFloat64),
}

// genPart draws a piece of a chunk whose values and gaps come from a few very
// different sources, so that every form is reached.
func genPart(t *rapid.T) (off int, words []uint64) {
	n := rapid.SampledFrom([]int{720, 60, 719, 120, 61, 59, 3, 2, 1}).Draw(t, "n")
	if rapid.Bool().Draw(t, "any length") {
		n = rapid.IntRange(1, Slots).Draw(t, "length")
	}
	off = rapid.IntRange(0, Slots-n).Draw(t, "off")
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	next := genValues(t, r)
	other := genValues(t, r)
	otherRate := rapid.SampledFrom([]int{0, 0, 0, 1, 10, 50}).Draw(t, "other values of 100")
	words = make([]uint64, n)
	for i := range words {
		if words[i] = next(i); r.IntN(100) < otherRate {
			words[i] = other(i)
		}
	}
	genGaps(t, r, words)
	return off, words
}

// genMarked is genPart with stale markers: none, one at the end as nearly always, or many.
func genMarked(t *rapid.T) (off int, words []uint64) {
	off, words = genPart(t)
	genMarkers(t, words)
	return off, words
}

func genMarkers(t *rapid.T, words []uint64) {
	switch rate := rapid.SampledFrom([]int{0, 0, 1, 2, 30, 99, 100}).Draw(t,
		"stale markers of 100"); rate {
	case 0:
	case 1:
		words[rapid.IntRange(0, len(words)-1).Draw(t, "stale marker")] = point.Stale
	default:
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "markers"), 1))
		for i := range words {
			if r.IntN(100) < rate {
				words[i] = point.Stale
			}
		}
	}
}

// genValues draws a source of words.
func genValues(t *rapid.T, r *rand.Rand) func(i int) uint64 {
	span := int64(1) << rapid.IntRange(0, 54).Draw(t, "bits of the span")
	span += r.Int64N(span)
	rate := rapid.SampledFrom([]int{1, 5, 20, 100}).Draw(t, "changes of 100")
	scale := math.Pow10(rapid.IntRange(0, 12).Draw(t, "decimals"))
	v, d := r.Int64N(span), r.Int64N(max(span/1000, 1))
	walk := func(int) int64 {
		if r.IntN(100) < rate {
			v += r.Int64N(span) - span/2
		}
		return v
	}
	sources := []func(i int) uint64{
		func(int) uint64 { return point.FromInt(r.Int64N(span) - span/2) },
		func(i int) uint64 { return point.FromInt(walk(i)) },
		func(i int) uint64 { return point.FromInt(int64(i) * d) },
		func(i int) uint64 { return point.FromInt(int64(i*i)*d + r.Int64N(3)) },
		func(i int) uint64 { return point.FromFloat(float64(walk(i)) / scale) },
		func(i int) uint64 { return point.EvenWord(point.FromFloat(float64(walk(i)) / scale)) },
		func(int) uint64 { return point.FromFloat(float64(r.Int64N(span)-span/2) / scale) },
		func(int) uint64 { return point.FromFloat(r.NormFloat64()) },
		func(int) uint64 { return r.Uint64() | 1<<63 },
		func(int) uint64 { return max(r.Uint64(), firstFloat) },
		func(int) uint64 { return 1<<56 | r.Uint64()>>8 },
		func(int) uint64 { return special[r.IntN(len(special))] },
		func(int) uint64 { return special[int(span)%len(special)] },
	}
	return sources[rapid.IntRange(0, len(sources)-1).Draw(t, "source")]
}

// genGaps removes words: none, at random, in runs, or all but every k-th.
func genGaps(t *rapid.T, r *rand.Rand, words []uint64) {
	rate := rapid.IntRange(0, 100).Draw(t, "gaps of 100")
	switch rapid.IntRange(0, 4).Draw(t, "gaps") {
	case 0:
		for i := range words {
			if r.IntN(100) < rate {
				words[i] = point.Unset
			}
		}
	case 1:
		for range rate / 20 {
			from := r.IntN(len(words))
			clear(words[from:min(len(words), from+r.IntN(200))])
		}
	case 2:
		for i := range words {
			if i%(rate+1) != rate/2 {
				words[i] = point.Unset
			}
		}
	}
}
