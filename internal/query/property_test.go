package query_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/query"
	"dalmatiner/internal/query/reference"
)

// TestEngineEqualsReference compares random queries over random series. With
// integers and functions that keep them whole, results are equal; otherwise
// they differ by rounding at most.
func TestEngineEqualsReference(t *testing.T) {
	// A check takes microseconds; the rare meetings of seams want many.
	for range 30 {
		rapid.Check(t, checkEngine(t))
	}
}

func checkEngine(t *testing.T) func(rt *rapid.T) {
	return func(rt *rapid.T) {
		g := generator{t: rt, exact: rapid.Bool().Draw(rt, "exact")}
		source := g.source(t)
		now := g.now()
		source.now = now.UnixMilli()
		text := g.query()
		e := engine(source, now.UnixMilli())
		if rapid.Bool().Draw(rt, "aggregates") {
			e.Source = sourceOf(adder{source})
		}
		e.Readers = query.NewReaders(rapid.IntRange(0, 3).Draw(rt, "readers"))
		old := reference.Old{Compat: rapid.IntRange(0, 2).Draw(rt, "compat") == 0,
			Restart: rapid.SampledFrom([]int64{2, 3, 50, 1000}).Draw(rt, "restart")}
		if old.Compat { // the original has no ON
			text = strings.NewReplacer(" ON 1", "", " ON (1, 2)", "").Replace(text)
		}
		rounds := rapid.Int64Range(1, 300).Draw(rt, "rounds")
		opt := query.Options{Compat: old.Compat, Confidence: true,
			NoAggregates: rapid.IntRange(0, 9).Draw(rt, "without") == 0}
		got, err := e.WithRounds(rounds).WithCompatSlots(old.Restart).Query(context.Background(), text,
			opt)
		want, wantErr := reference.Evaluate(plain{source}, text, now, old)
		switch {
		case wantErr == nil && len(want) == 0:
			wantErr = query.ErrNoResults
			fallthrough
		case wantErr != nil:
			if !sameError(err, wantErr) {
				rt.Fatalf("%s: error %v, want %v", text, err, wantErr)
			}
			return
		case err != nil:
			rt.Fatalf("%s: %v", text, err)
		}
		if len(got.Series) != len(want) {
			rt.Fatalf("%s: %d series, want %d", text, len(got.Series), len(want))
		}
		for i, w := range want {
			if err := g.compare(got, got.Series[i], w); err != nil {
				rt.Fatalf("%s: series %d: %v\ngot  %v\nwant %v", text, i, err, got.Series[i].Values, w.Values)
			}
		}
	}
}

func sameError(got, want error) bool {
	if errors.Is(want, reference.ErrMixedResolutions) {
		return got != nil && strings.Contains(got.Error(), "mix resolutions")
	}
	if errors.Is(want, reference.ErrZero) {
		return got != nil && strings.Contains(got.Error(), "division by the constant 0")
	}
	if errors.Is(want, reference.ErrPairs) {
		return got != nil &&
			(strings.Contains(got.Error(), "belong") || strings.Contains(got.Error(), "ON "))
	}
	return errors.Is(got, want)
}
