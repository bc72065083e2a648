package chunk

import (
	"fmt"
	"testing"

	"dalmatiner/internal/codec/intlist"
	"pgregory.net/rapid"
)

// checkSteps compares with what the decoded words say, for damaged chunks too.
func checkSteps(t failer, src []byte, s Steps) {
	t.Helper()
	var words [Slots]uint64
	want := DecodeRange(words[:s.To-s.From], src, s.From)
	got := make([]Header, s.Count())
	for i := range got {
		got[i].Count = 77 // what was there goes
	}
	if err := new(Adder).Steps(got, src, s); (err == nil) != (want == nil) {
		t.Fatalf("%+v: %v, decoding: %v", s, err, want)
	}
	for i, at := 0, s.From; at < s.To; i++ {
		end := s.Cut + i*s.Every
		end = min(end, s.To)
		want := Summarize(words[at-s.From:end-s.From], at)
		if want.Rises != got[i].Rises && headerTells(src, got[i].Rises) {
			want.Rises = got[i].Rises
		}
		if !sameHeader(got[i], want) {
			t.Fatalf("%+v, step %d of slots %d to %d (form %#x):\n%+v, want\n%+v", s, i, at, end, src[0],
				got[i], want)
		}
		at = end
	}
}

// headerTells reports whether the header of a chunk, perhaps a damaged one, says of all its
// values together whether they rise.
func headerTells(src []byte, rises bool) bool {
	h, err := ParseHeader(src)
	return err == nil && h.Rises == rises
}

func sameHeader(a, b Header) bool {
	same := sameFloat(a.Sum.Float, b.Sum.Float)
	a.Sum.Float, b.Sum.Float = 0, 0 // NaN is not equal to itself
	return same && a == b
}

func genSteps(t *rapid.T) Steps {
	var s Steps
	s.Every = rapid.SampledFrom([]int{Lane, Lane, 1, 59, 2 * Lane, 300, Slots}).Draw(t, "step")
	if rapid.Bool().Draw(t, "any step") {
		s.Every = rapid.IntRange(1, Slots).Draw(t, "length")
	}
	s.From = rapid.IntRange(0, Slots-1).Draw(t, "from")
	s.To = rapid.IntRange(s.From+1, Slots).Draw(t, "to")
	if rapid.Bool().Draw(t, "all") {
		s.From, s.To = 0, Slots
	}
	s.Cut = s.From + rapid.IntRange(1, s.Every).Draw(t, "cut")
	if rapid.Bool().Draw(t, "in step") {
		s.Cut = s.From + s.Every - s.From%s.Every
	}
	return s
}

func TestStepsEqualTheWords(t *testing.T) {
	var e Encoder
	rapid.Check(t, func(t *rapid.T) {
		off, words := genMarked(t)
		src := encodeEither(t, &e, off, words)
		if len(src) == 0 {
			return
		}
		for range 4 {
			checkSteps(t, src, genSteps(t))
		}
	})
}

// Every kind of data in every alignment to lanes and steps, and whether its
// words are needed.
func TestStepsOfEveryKind(t *testing.T) {
	decoded := map[string]bool{
		"decimals-and-NaN": true, "ints-and-floats": true, "every-tenth": true, "outage": true,
		"random-gaps": true,
	}
	var e Encoder
	for _, c := range kinds() {
		for _, n := range []int{Slots, Slots - Lane, 131, 61, Lane, 7, 1} {
			for _, src := range encodeBoth(&e, Slots-n, c.make(n)) {
				for from := 0; len(src) > 0 && from < 2*Lane; from += 7 {
					for _, every := range []int{Lane, 100, Slots} {
						checkSteps(t, src, Steps{From: from, To: Slots - from/3, Cut: from + every - from%every,
							Every: every})
					}
				}
			}
		}
		for _, src := range encodeBoth(&e, 0, c.make(Slots)) {
			for cut := range Lane {
				checkSteps(t, src, Steps{To: Slots, Cut: 1 + cut, Every: Lane})
				checkSteps(t, src, Steps{From: 2 * Lane, To: 5 * Lane, Cut: 2*Lane + 1 + cut, Every: Lane})
			}
			done, err := new(Adder).fold(make([]Header, Slots/Lane), src,
				Steps{To: Slots, Cut: Lane, Every: Lane})
			if err != nil || done == decoded[c.name] {
				t.Errorf("%s: added up without its words: %v, %v", c.name, done, err)
			}
		}
	}
}

// Values that no encoder writes have words that are not what was added up.
func TestStepsOfWrappedValues(t *testing.T) {
	for _, k := range []transform{asInt, asDecimal + 2, asBits + 9} {
		l := list{kind: k}
		v := make([]int64, Slots)
		for i := range v {
			v[i] = int64(i) << 40 * int64(i%3)
		}
		var s intlist.Scratch
		var p intlist.List
		ex := intlist.Measure(v)
		p.Plan(v, &ex, &s)
		body := p.AppendTo(nil, v, &s)
		r := newReader(body)
		const beyond = 1 << 62
		if err := r.List(&l.ints, Slots, ex.Min+beyond, uint64(ex.Max-ex.Min), v[0]+beyond); err != nil {
			t.Fatal(err)
		}
		steps := Steps{To: Slots, Cut: Lane, Every: Lane}
		dst := make([]Header, steps.Count())
		var f stepper
		f.begin(dst, steps, &frame{Header: Header{LastOff: Slots - 1}})
		if f.lanes(&l, new(folder)) != (k >= asBits) {
			t.Errorf("kind %d: integers beyond 2^62 were added up", k)
		}
	}
}

func TestStepsDoNotAllocate(t *testing.T) {
	var e Encoder
	var a Adder
	dst := make([]Header, Slots/Lane)
	for _, c := range kinds() {
		src := e.Append(nil, 0, c.make(Slots))
		if n := testing.AllocsPerRun(10, func() {
			if err := a.Steps(dst, src, Steps{To: Slots, Cut: Lane, Every: Lane}); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}

// FuzzSteps reads any bytes in any steps.
func FuzzSteps(f *testing.F) {
	var e Encoder
	for _, c := range kinds() {
		for _, src := range encodeBoth(&e, 0, c.make(Slots)) {
			f.Add(src, uint16(0), uint16(Slots), uint16(0), uint16(Lane))
		}
		f.Add(e.Append(nil, 60, c.make(131)), uint16(17), uint16(333), uint16(5), uint16(100))
	}
	f.Fuzz(func(t *testing.T, src []byte, from, n, cut, every uint16) {
		if len(src) == 0 {
			return
		}
		s := Steps{From: int(from) % Slots, Every: 1 + int(every)%Slots}
		s.To = s.From + 1 + int(n)%(Slots-s.From)
		s.Cut = s.From + 1 + int(cut)%s.Every
		checkSteps(t, src, s)
	})
}

// BenchmarkSteps adds up minutes of whole chunks, and of those words.
func BenchmarkSteps(b *testing.B) {
	var e Encoder
	var a Adder
	dst := make([]Header, Slots/Lane+1)
	steps, cut := Steps{To: Slots, Cut: Lane, Every: Lane}, Steps{To: Slots, Cut: 17, Every: Lane}
	for _, c := range kinds() {
		src := e.Append(nil, 0, c.make(Slots))
		for name, run := range map[string]func() error{
			"fold": func() error { return a.Steps(dst, src, steps) },
			"cut":  func() error { return a.Steps(dst, src, cut) },
			"decode": func() error {
				var words [Slots]uint64
				err := DecodeRange(words[:], src, 0)
				for i := range Slots / Lane {
					dst[i] = Summarize(words[i*Lane:(i+1)*Lane], i*Lane)
				}
				return err
			},
		} {
			b.Run(fmt.Sprintf("%s/%s", c.name, name), func(b *testing.B) {
				for b.Loop() {
					if err := run(); err != nil {
						b.Fatal(err)
					}
				}
				perPoint(b, Slots, len(src))
			})
		}
	}
}
