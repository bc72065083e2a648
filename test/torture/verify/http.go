package verify

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"dalmatiner/test/torture/oracle"
	"dalmatiner/test/torture/subject"
)

// overHTTP asks queries about a series whose values came over the wire and were
// judged, and holds the answers against these values. After damage an aggregate
// may know more than the points show, because rollups stand apart.
func overHTTP(n *subject.Node, s *oracle.Series, values []byte, damaged bool, rng *rand.Rand,
	r *Report) error {
	words := wordsOf(values)
	wrong := func(q, text string) {
		r.Found(oracle.Finding{Class: oracle.Answer, Text: fmt.Sprintf("%s: %s", q, text)})
	}
	b := s.Bucket
	lo := rng.IntN(len(words))
	hi := lo + 1 + rng.IntN(min(len(words)-lo, 3000))
	q := fmt.Sprintf("SELECT %s BUCKET '%s' %s", oracle.Text(s.Key), b.Name, between(b, lo, hi))
	res, err := ask(n, q)
	r.Queries++
	if err != nil {
		return err
	}
	if res == nil {
		return nil
	}
	compareValues(res, words[lo:hi], func(text string) { wrong(q, text) })
	for _, f := range []string{"count", "max", "sum"} {
		span := []int{60, 720, 7200}[rng.IntN(3)]
		lo := rng.IntN(len(words)) / span * span
		hi := lo + span*(1+rng.IntN(max((len(words)-lo)/span, 1)))
		if hi > len(words) {
			continue
		}
		q := fmt.Sprintf("SELECT %s(%s BUCKET '%s', %dms) %s", f, oracle.Text(s.Key), b.Name,
			int64(span)*b.Resolution, between(b, lo, hi))
		res, err := ask(n, q)
		r.Queries++
		if err != nil {
			return err
		}
		if res != nil {
			compareSpans(f, res, words[lo:hi], span, damaged, func(text string) { wrong(q, text) })
		}
	}
	return nil
}

func between(b *oracle.Bucket, lo, hi int) string {
	return fmt.Sprintf("AFTER %d FOR %dms", (b.First+int64(lo))*b.Resolution,
		int64(hi-lo)*b.Resolution)
}

// ask returns the one series of an answer, or nil when the node says that
// nothing matches.
func ask(n *subject.Node, q string) (*subject.Result, error) {
	res, err := n.Query(q)
	var status *subject.StatusError
	if errors.As(err, &status) && status.Code == 404 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", q, err)
	}
	if len(res) != 1 {
		return nil, fmt.Errorf("%s: %d results", q, len(res))
	}
	return &res[0], nil
}

func wordsOf(values []byte) []uint64 {
	words := make([]uint64, 0, len(values)/8)
	for ; len(values) > 0; values = values[8:] {
		words = append(words, binary.BigEndian.Uint64(values))
	}
	return words
}

func compareValues(res *subject.Result, words []uint64, wrong func(string)) {
	if len(res.Values) != len(words) {
		wrong(fmt.Sprintf("%d values, want %d", len(res.Values), len(words)))
		return
	}
	set := 0
	for i, w := range words {
		if w != 0 {
			set++
		}
		switch v := res.Values[i]; {
		case (v == nil) != (w == 0):
			wrong(fmt.Sprintf("slot %d: there: %v over HTTP, %v over the wire", i, v != nil, w != 0))
			return
		case v != nil && *v != oracle.Number(w):
			wrong(fmt.Sprintf("slot %d: %v, want %v", i, *v, oracle.Number(w)))
			return
		}
	}
	// Of a slow sender more is covered than slots are set.
	if least := float64(set) / float64(len(words)); res.Coverage < least-1e-9 || res.Coverage > 1 {
		wrong(fmt.Sprintf("coverage %v, want at least %v and at most 1", res.Coverage, least))
	}
}

// compareSpans computes an aggregate from the points by the rule of the language: a span without
// any point is null, or 0 of count.
func compareSpans(f string, res *subject.Result, words []uint64, span int, damaged bool,
	wrong func(string)) {
	if len(res.Values) != len(words)/span {
		wrong(fmt.Sprintf("%d values, want %d", len(res.Values), len(words)/span))
		return
	}
	for i := range res.Values {
		count, sum, top := 0.0, 0.0, math.Inf(-1)
		for _, w := range words[i*span : (i+1)*span] {
			if w != 0 {
				v := oracle.Number(w)
				count, sum, top = count+1, sum+v, max(top, v)
			}
		}
		want := map[string]float64{"count": count, "sum": sum, "max": top}[f]
		v := res.Values[i]
		switch {
		case damaged && f != "count":
			continue // an aggregate that is whole knows points whose chunks are lost
		case v == nil:
			if count > 0 {
				wrong(fmt.Sprintf("span %d: null, want %v", i, want))
				return
			}
		case damaged && *v >= want && *v <= float64(span):
		case count == 0 && f != "count":
			wrong(fmt.Sprintf("span %d: %v, and it has no point", i, *v))
			return
		case math.Abs(*v-want) > 1e-9*math.Abs(want):
			wrong(fmt.Sprintf("span %d: %v, want %v", i, *v, want))
			return
		}
	}
}
