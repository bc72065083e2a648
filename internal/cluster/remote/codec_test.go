package remote

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/cluster/call"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/query/source"
)

// drawWords draws words with gaps.
func drawWords(t *rapid.T, n int) []uint64 {
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	words, kind := make([]uint64, n), rapid.IntRange(0, 3).Draw(t, "kind")
	for i := range words {
		switch {
		case kind == 0 || random.IntN(4) == 0:
		case kind == 1 || kind == 2 && random.IntN(2) == 0:
			words[i] = point.FromInt(random.Int64N(2*point.MaxInt) - point.MaxInt)
		default:
			words[i] = point.FromFloat([]float64{random.NormFloat64(), math.NaN(), math.Inf(-1),
				math.Copysign(0, -1), 1e300}[random.IntN(5)])
		}
	}
	return words
}

// drawAnswer draws what is said of one key, and of all its slots where the key is asked as a whole.
func drawAnswer(t *rapid.T, q *request, whole bool) *answer {
	a := &answer{incarnation: rapid.Uint64().Draw(t, "incarnation"),
		exists: rapid.Bool().Draw(t, "exists"), newer: rapid.Bool().Draw(t, "newer"),
		digests: [2]uint64{rapid.Uint64().Draw(t, "digest"), rapid.Uint64().Draw(t, "digest")}}
	a.cost = source.Cost{Headers: 1, Rollups: 2, Decoded: 3, Bytes: 1 << 40, MoreUnknown: 5}
	for at := int64(720); at < 2000 && rapid.Bool().Draw(t, "more"); at += 100 {
		a.cost.Unknown = append(a.cost.Unknown, source.Unknown{From: at, Past: at + 30,
			Why: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "why")})
	}
	switch {
	case q.kind == askExtent:
		a.first, a.past = 5, 7
	case q.kind == askSlots:
		a.words = drawWords(t, q.count)
		if q.times {
			a.times = drawWords(t, q.count)
		}
	case whole:
		a.headers = make([]chunk.Header, q.count)
		for k := range a.headers {
			a.headers[k] = chunk.Summarize(drawWords(t, int(min(q.step, chunk.Slots))), 0)
		}
	}
	return a
}

// TestRepliesSurvive: what a node says is what the asker gets, however many parts it takes.
func TestRepliesSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := request{kind: kind(rapid.IntRange(int(askExists), int(askAggregates)).Draw(t, "kind")),
			from: 720, count: rapid.IntRange(1, 3000).Draw(t, "count"),
			step: rapid.Int64Range(1, 1000).Draw(t, "step"), times: rapid.Bool().Draw(t, "times")}
		var want []*answer
		for i := range rapid.IntRange(0, 5).Draw(t, "keys") {
			q.keys, q.whole = append(q.keys, []byte{byte(i)}),
				append(q.whole, q.kind == askAggregates && rapid.Bool().Draw(t, "whole"))
			want = append(want, drawAnswer(t, &q, q.whole[i]))
		}
		var parts [][]byte
		w := &writer{reply: func(b []byte) error { parts = append(parts, bytes.Clone(b)); return nil }}
		for _, a := range want {
			if err := w.answer(a); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.flush(); err != nil {
			t.Fatal(err)
		}
		var got []*answer
		d := &decoder{q: &q, answer: func(i int, a *answer) error { got = append(got, a); return nil }}
		for _, part := range parts {
			if len(part) > call.MaxPart {
				t.Fatalf("a part of %d bytes", len(part))
			}
			if err := d.part(part); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.end(); err != nil || len(got) != len(want) {
			t.Fatalf("%d answers of %d, %v", len(got), len(want), err)
		}
		for i := range want {
			g, o := got[i], want[i]
			for k := range o.headers {
				if !reflect.DeepEqual(appendHeader(nil, &g.headers[k]), appendHeader(nil, &o.headers[k])) {
					t.Fatalf("step %d is %+v, was %+v", k, g.headers[k], o.headers[k])
				}
			}
			g.headers, o.headers = nil, nil
			if !reflect.DeepEqual(g, o) {
				t.Fatalf("answer %d is %+v, was %+v", i, g, o)
			}
		}
	})
}

// FuzzRequest has a node ask anything.
func FuzzRequest(f *testing.F) {
	for k := askMetrics; k < kinds; k++ {
		q := request{kind: k, version: ring.Version{Number: 1, Sum: 2}, bucket: 3, name: "b",
			prefix: []byte("p"), partitions: []byte{7},
			keys: [][]byte{[]byte("key"), nil}, whole: []bool{true, false}, from: 720, count: 10, step: 60,
			split: 4, digest: true}
		f.Add(q.append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := parseRequest(b)
		if err != nil {
			return
		}
		again, err := parseRequest(q.append(nil))
		if err != nil || !reflect.DeepEqual(q, again) {
			t.Fatalf("%+v becomes %+v, %v", q, again, err)
		}
		if len(q.keys) > maxKeys || q.kind == askSlots && q.count > source.MaxSlots ||
			q.kind == askAggregates && q.count > maxSteps {
			t.Fatalf("beyond the bounds: %+v", q)
		}
	})
}

// FuzzReply has a node answer anything: what is kept of it is bounded by the request.
func FuzzReply(f *testing.F) {
	for k := askMetrics; k < kinds; k++ {
		var all []byte
		w := &writer{reply: func(b []byte) error { all = append(all, b...); return nil }}
		a := &answer{incarnation: 9, digests: [2]uint64{1, 2}, exists: true, past: 3,
			cost: source.Cost{Unknown: []source.Unknown{{From: 5, Past: 9, Why: "lost"}}}}
		switch k {
		case askMetrics:
			_ = w.key([]byte("key"))
		case askSlots:
			a.words = []uint64{0, point.FromInt(4), 0, point.FromFloat(2.5)}
		case askAggregates:
			a.headers = []chunk.Header{
				{}, chunk.Summarize([]uint64{point.FromInt(1), 0, point.FromFloat(3)}, 0)}
		}
		_ = w.answer(a)
		_ = w.flush()
		f.Add(byte(k), all)
	}
	f.Fuzz(func(_ *testing.T, k byte, b []byte) {
		q := &request{kind: kind(k), keys: [][]byte{nil, nil}, whole: []bool{true, false}, count: 100,
			step: 60, times: true}
		d := &decoder{q: q, answer: func(_ int, a *answer) error {
			if len(a.headers) > 100 || len(a.words) > 100 || len(a.cost.Unknown) > source.MaxSlots {
				panic("more than was asked for")
			}
			return nil
		}}
		if q.kind == askMetrics {
			d.key = func([]byte) error { return nil }
		}
		for len(b) > 0 { // parts are whole records, so most of these are none
			n := min(len(b), 4000)
			if d.part(b[:n]) != nil {
				return
			}
			b = b[n:]
		}
		_ = d.end()
	})
}
