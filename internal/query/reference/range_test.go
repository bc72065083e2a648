package reference

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// expression draws an expression whose outputs depend on what is before them, and not on where the
// range begins, if that is a multiple of 60 s.
func expression(r *rand.Rand, depth int) string {
	if depth == 0 {
		return fmt.Sprintf("x.%d BUCKET b", r.IntN(3))
	}
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	sub := func() string { return expression(r, r.IntN(depth)) }
	span := pick("2s", "10s", "30s", "1m")
	switch r.IntN(8) {
	case 0:
		fn := pick("sum", "avg", "min", "last", "count", "empty", "increase", "rate", "variance")
		return fmt.Sprintf("%s(%s, %s)", fn, sub(), span)
	case 1:
		return fmt.Sprintf("%s(%s)", pick("derivate", "increase", "rate", "confidence", "abs"), sub())
	case 2:
		return fmt.Sprintf("mavg(%s, %s)", sub(), span)
	case 3:
		return fmt.Sprintf("(%s %s %s)", sub(), pick("+", "-", "*", "/"), sub())
	case 4:
		return fmt.Sprintf("%s(%s, %s, 1)", pick("topk", "bottomk"), sub(), sub())
	case 5:
		return fmt.Sprintf("max(histogram(%s, 1000, 2, %s))", sub(), span)
	case 6:
		return fmt.Sprintf("quantile(%s, %s, 0.5)", sub(), sub())
	}
	return fmt.Sprintf("%s(%s, x.%d BUCKET b)", pick("sum", "avg", "min", "max", "diff"), sub(),
		r.IntN(3))
}

// TestOutputsDoNotDependOnTheRange: a range that begins later shows the same, as far as it goes.
func TestOutputsDoNotDependOnTheRange(t *testing.T) {
	compared, values := 0, 0
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 1))
		data := ""
		for i := range 3 {
			var points []string
			every := []int{1, 3, 10, 60}[r.IntN(4)]
			for at := 1 + r.IntN(every); at < 3600; at += every {
				switch {
				case r.IntN(100) == 0:
					at += r.IntN(800)
				case r.IntN(10) > 0:
					points = append(points, fmt.Sprintf("@%d %d", at+r.IntN(1+every/4), r.IntN(100)))
				}
			}
			data += fmt.Sprintf("b x.%d %s\n", i, strings.Join(points, " "))
		}
		text := expression(r, 3)
		early, late := 600+60*r.IntN(20), 1800+60*r.IntN(25)
		end := late + r.IntN(400)
		ask := func(start int) ([]Series, error) {
			text := fmt.Sprintf("SELECT %s BETWEEN %d AND %d", text, start*1000, end*1000)
			return Evaluate(fakeOf(t, data), text, farFuture, Old{})
		}
		want, err := ask(early)
		got, _ := ask(late)
		if err != nil { // series of different resolutions
			continue
		}
		for _, g := range got {
			compared++
			// Those of topk that show nothing in the later range are left out there.
			same := func(w Series) bool {
				skip := int(int64(late-early) * 1000 / w.Resolution)
				return shown(w.Values[skip:]) == shown(g.Values) &&
					shown(w.Confidence[skip:]) == shown(g.Confidence)
			}
			if !slices.ContainsFunc(want, same) {
				t.Fatalf("seed %d, %s from %d and %d to %d:\n%s\n%s", seed, text, early, late, end,
					shown(want[0].Values), shown(g.Values))
			}
			values += len(strings.Fields(strings.ReplaceAll(shown(g.Values), "_", "")))
		}
	}
	if compared < 300 || values < 5_000 {
		t.Errorf("compared %d series with %d values only", compared, values)
	}
}
