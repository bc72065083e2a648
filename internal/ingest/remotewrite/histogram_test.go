package remotewrite

import (
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/disk/wal"
)

func spanOf(offset int64, length uint64) message {
	return message(nil).zigzag(1, offset).varint(2, length)
}

// A histogram becomes the series of a classic one, with the bounds that its schema has.
func TestHistograms(t *testing.T) {
	ints := func(ms int64) message {
		return message(nil).varint(1, 9).float(3, 18.5).zigzag(4, 0).float(5, 0.001).varint(6, 2).
			bytes(8, spanOf(1, 1)).packed(9, 3).
			bytes(11, spanOf(0, 2)).bytes(11, spanOf(1, 1)).packed(12, 1, 1, -1).varint(15, uint64(ms))
	}
	floats := func(ms int64) message {
		data := message(nil).float(1, 1)[1:]
		data = append(data, message(nil).float(1, 0.5)[1:]...)
		return message(nil).float(2, 1.5).float(3, 7).zigzag(4, customSchema).
			bytes(11, spanOf(0, 2)).bytes(13, data).varint(15, uint64(ms)).float(16, 2.5)
	}
	f := newFixture(t)
	w := f.mustWrite(V1, message(nil).
		bytes(1, series1("__name__", "h", "zone", "a", "job", "x").bytes(4, ints(f.now))).
		bytes(1, series1("__name__", "c").bytes(4, floats(f.now+500))))
	if w.Histograms != 2 || w.Samples != 0 {
		t.Errorf("%+v", w)
	}
	list := []string{
		"'c_bucket'.'le=+Inf' 1.5@500", "'c_bucket'.'le=2.5' 1@500", "'c_count' 1.5@500",
		"'c_sum' 7@500",
	}
	for _, b := range []string{"+Inf' 9", "-0.001' 3", "-1' 3", "-2' 0", "0.001' 5", "0.5' 5",
		"1' 6", "2' 8", "4' 8", "8' 9"} {
		le, n, _ := strings.Cut(b, "' ")
		list = append(list, "'h_bucket'.'job=x'.'le="+le+"'.'zone=a' "+n+"@0")
	}
	list = append(list, "'h_count'.'job=x'.'zone=a' 9@0", "'h_sum'.'job=x'.'zone=a' 18.5@0")
	f.same(list...)
	if got := f.tagged("le", "+Inf"); got != 2 {
		t.Errorf("%d series have the tag le", got)
	}

	stale := message(nil).float(3, math.Float64frombits(staleNaN)).varint(15, uint64(f.now))
	f.mustWrite(V2, symbols("", "__name__", "gone").bytes(5, series2(1, 2).bytes(3, stale)))
	if got := strings.Join(f.series(), "\n"); !strings.Contains(got, "'gone_count' stale@0") ||
		!strings.Contains(got, "'gone_bucket'.'le=+Inf' stale@0") {
		t.Error(got)
	}
}

func TestHistogramsThatAreNone(t *testing.T) {
	f := newFixture(t)
	for want, h := range map[error]message{
		errSchema:  message(nil).zigzag(4, 9).bytes(11, spanOf(0, 1)).packed(12, 1),
		errBuckets: message(nil).zigzag(4, 3).bytes(11, spanOf(0, 2)).packed(12, 1),
		errNegative: message(nil).
			varint(15, 1<<63),
		errProto: message(nil).bytes(11, []byte{0x10}),
	} {
		_, err := f.write(V1, message(nil).bytes(1, series1("__name__", "h").bytes(4, h)))
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	huge := message(nil).bytes(11, spanOf(0, 1<<31))
	if _, err := f.write(V1, message(nil).
		bytes(1, series1("__name__", "h").bytes(4, huge))); !errors.Is(err, errBuckets) {
		t.Error(err)
	}
}

// The counts of the classic form are those of a histogram that was filled value by value: each
// bound has the values at or below it.
func TestClassicForm(t *testing.T) {
	size := rapid.Custom(func(t *rapid.T) float64 {
		v := rapid.Float64Range(1e-6, 1e6).Draw(t, "size")
		return rapid.SampledFrom([]float64{0, v, v, -v}).Draw(t, "value")
	})
	rapid.Check(t, func(t *rapid.T) {
		schema := rapid.IntRange(minSchema, maxSchema).Draw(t, "schema")
		threshold := rapid.SampledFrom([]float64{0, 0x1p-32, 0x1p-16}).Draw(t, "threshold")
		// which is a bound of every schema
		values := rapid.SliceOfN(size, 0, 50).Draw(t, "values")
		base := math.Pow(2, math.Pow(2, -float64(schema)))
		h := histogram{schema: int32(schema), zeroThreshold: threshold, count: float64(len(values))}
		positive, negative := map[int]int{}, map[int]int{}
		for _, v := range values {
			index := int(math.Ceil(math.Log(math.Abs(v)) / math.Log(base)))
			switch {
			case math.Abs(v) <= threshold:
				h.zeroCount++
			case v > 0:
				positive[index]++
			default:
				negative[index]++
			}
		}
		h.positive, h.negative = sideOf(positive), sideOf(negative)
		list, err := h.classic()
		if err != nil {
			t.Skip(err) // more buckets than are taken
		}
		for i, b := range list {
			want := 0
			near := false
			for _, v := range values {
				if v <= b.le {
					want++
				}
				near = near || math.Abs(v-b.le) <= 1e-9*math.Abs(v)+1e-300
			}
			if float64(want) != b.count && !near {
				t.Fatalf("%d values are at most %g, not %g: %v", want, b.le, b.count, list)
			}
			if i > 0 && b.le <= list[i-1].le {
				t.Fatalf("%g comes behind %g", b.le, list[i-1].le)
			}
		}
	})
}

// sideOf returns the buckets of counts by index.
func sideOf(counts map[int]int) (s side) {
	last := math.MinInt
	for i := -20000; i <= 20000; i++ {
		n, ok := counts[i]
		if !ok {
			continue
		}
		switch {
		case last == math.MinInt:
			s.spans = append(s.spans, span{int32(i), 1})
		case i == last+1:
			s.spans[len(s.spans)-1].length++
		default:
			s.spans = append(s.spans, span{int32(i - last - 1), 1})
		}
		s.counts, last = append(s.counts, float64(n)), i
	}
	return s
}

// FuzzWrite takes what nobody sent: it never panics, and what is stored was counted.
func FuzzWrite(f *testing.F) {
	now := int64(1_800_000_000_000)
	f.Add(byte(V1), []byte(message(nil).bytes(1, series1("__name__", "a", "b", "c").
		bytes(2, sample(1, now)))))
	f.Add(byte(V2), []byte(symbols("", "__name__", "a").bytes(5, series2(1, 2).
		bytes(2, sample(1, now)).bytes(3, message(nil).varint(1, 1).bytes(11, spanOf(0, 1)).
		packed(12, 1)))))
	_, server := newServer(f, wal.Off)
	f.Fuzz(func(t *testing.T, v byte, msg []byte) {
		w, err := server.Write(t.Context(), "fuzz", netip.AddrPort{}, V1+Version(v&1), msg)
		if err == nil && uint64(w.Samples) > w.Counts.Received() {
			t.Errorf("%+v", w)
		}
	})
}
