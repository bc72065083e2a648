package segment

import (
	"bytes"
	"fmt"
	"testing"
)

// Every form of an identity reads back: with and without a position, a name, an
// incarnation, and the mark of a series that was deleted. An incarnation of 0 takes
// nothing.
func TestIdentitiesReadBack(t *testing.T) {
	var src []byte
	var all []Series
	for _, since := range []uint64{0, 1, 1 << 40} {
		for _, below := range []uint64{0, 1, 1<<64 - 1} {
			for _, incarnation := range []uint64{0, 1, 1 << 60} {
				for _, key := range []string{"", "a name"} {
					s := Series{Bucket: 7, Hash: Hash{1, 2, 3}, Group: 1<<23 - 1, Column: 255, Since: since,
						DeleteSequence: below, Incarnation: incarnation, Key: []byte(key)}
					all, src = append(all, s), appendSeries(src, &s)
				}
			}
		}
	}
	for i, want := range all {
		got, rest, err := parseSeries(src)
		if err != nil {
			t.Fatalf("identity %d: %v", i, err)
		}
		if n := len(src) - len(rest); !bytes.Equal(got.Key, want.Key) ||
			fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%d bytes of identity %d are %+v, want %+v", n, i, got, want)
		}
		plain := want
		plain.Incarnation = 0
		if n := int64(len(src) - len(rest)); want.Incarnation == 0 && n != SeriesSize(&plain) ||
			want.Incarnation != 0 && n == SeriesSize(&plain) {
			t.Errorf("identity %d takes %d bytes, %d without its incarnation", i, n, SeriesSize(&plain))
		}
		if n := int64(len(src) - len(rest)); SeriesSize(&got) != n {
			t.Errorf("identity %d is said to take %d bytes and takes %d", i, SeriesSize(&got), n)
		}
		for cut := range len(src) - len(rest) {
			if _, _, err := parseSeries(src[:cut:cut]); err == nil {
				t.Errorf("identity %d reads from %d of %d bytes", i, cut, len(src)-len(rest))
			}
		}
		src = rest
	}
}
