package cardinality

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// meter counts what is charged, up to a limit.
type meter struct{ charged, limit int64 }

var errMeter = errors.New("no memory")

func (m *meter) Grow(bytes int64) error {
	if m.charged += bytes; m.charged > m.limit {
		return errMeter
	}
	return nil
}

// TestBestHoldsLittle: of very many elements, each better or each worse than those before, a list
// holds few, and charges what it holds.
func TestBestHoldsLittle(t *testing.T) {
	for _, rising := range []bool{false, true} {
		var m meter
		m.limit = 1 << 40
		b, made := best{limit: 10, memory: &m}, 0
		for i := range 100_000 {
			series := i
			if !rising {
				series = 100_000 - i
			}
			b.add(series, 0, []byte(fmt.Sprint(i)), nil, func() Element {
				made++
				return Element{Text: strings.Repeat("x", 1000)}
			})
			if len(b.list) > 20 {
				t.Fatalf("%d elements are held", len(b.list))
			}
		}
		if m.charged != bestStep || !rising && made != 20 {
			t.Errorf("rising %t: %d elements were made, %d bytes charged", rising, made, m.charged)
		}
		list := b.elements()
		if len(list) != 10 || b.err != nil || rising && list[0].Series != 99_999 || !rising &&
			list[9].Series != 99_991 {
			t.Errorf("rising %t: %d elements, %v; the first has %d series", rising, len(list), b.err,
				list[0].Series)
		}
	}
}

// TestBestChargesWhatItHolds: a list of long texts is charged, and ends where there is no memory
// for it.
func TestBestChargesWhatItHolds(t *testing.T) {
	m := meter{limit: 3 << 20}
	b, made := best{limit: 1000, memory: &m}, int64(0)
	for i := range 10 {
		b.add(i, 0, nil, nil, func() Element {
			made++
			return Element{Text: strings.Repeat("x", 1<<19)}
		})
		if b.err == nil && m.charged < made<<19 {
			t.Fatalf("%d elements, %d bytes charged", made, m.charged)
		}
	}
	if !errors.Is(b.err, errMeter) || made < 5 || made > 7 {
		t.Errorf("%d elements were made: %v", made, b.err)
	}
}

// TestBestHasAnOrder: equal counts are told apart by the texts, whose memory the caller uses again.
func TestBestHasAnOrder(t *testing.T) {
	for _, byNew := range []bool{false, true} {
		b := best{limit: 3, byNew: byNew, memory: &meter{limit: 1 << 40}}
		var first, second [1]byte
		for _, e := range []struct {
			series, recent int
			text           string
		}{{1, 9, "ba"}, {5, 1, "ab"}, {5, 1, "aa"}, {5, 1, "ca"}, {5, 2, "zz"}, {5, 1, "a0"},
			{9, 0, "qq"}, {5, 1, "b0"}, {1, 9, "bb"}} {
			first[0], second[0] = e.text[0], e.text[1]
			b.add(e.series, e.recent, first[:], second[:], func() Element { return Element{Text: e.text} })
		}
		want := "qq 9 0, zz 5 2, a0 5 1"
		if byNew {
			want = "ba 1 9, bb 1 9, zz 5 2"
		}
		var got []string
		for _, e := range b.elements() {
			got = append(got, fmt.Sprintf("%s %d %d", e.Text, e.Series, e.New))
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("by new %t: %s, want %s", byNew, text, want)
		}
	}
}
