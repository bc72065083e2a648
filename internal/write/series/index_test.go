package series

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"dalmatiner/internal/model/metric"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func key(n int) []byte { return metric.AppendPart(nil, fmt.Sprintf("m%d", n)) }

// To look up many series at once finds what one look-up after the other finds.
func TestIndexLookUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x Index
		id := func(n int) metric.SeriesID { return metric.Series(1, key(n)) }
		for i := range rapid.IntRange(0, 3000).Draw(t, "series") {
			switch i % 7 {
			case 3:
				x.Define(id(i), inactiveRef(uint32(i)))
			case 4:
				x.Define(id(i), 5)
				x.Delete(id(i))
			default:
				x.Define(id(i), RefAt(uint32(i), i&0xff))
			}
		}
		var ids []metric.SeriesID
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 3500), 0, 2048).Draw(t, "asked") {
			ids = append(ids, id(n))
		}
		refs, order := make([]Ref, len(ids)), make([]uint16, len(ids))
		x.LookupAll(ids, refs, order)
		for i := range ids {
			want, ok := x.Lookup(ids[i])
			if !ok || want.Inactive() {
				want = NoColumn
			}
			if refs[i] != want {
				t.Fatalf("series %d of %d is at %x, want %x", i, len(ids), refs[i], want)
			}
		}
	})
}
