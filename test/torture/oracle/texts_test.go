package oracle

import (
	"maps"
	"slices"
	"strconv"
	"testing"
)

// faults collects what a judge finds.
type faults []Class

func (f *faults) found(x Finding) { *f = append(*f, x.Class) }

// TestEventsAreJudged: one wrong answer of each kind is named as what it is, and a right one is
// not.
func TestEventsAreJudged(t *testing.T) {
	first := func(n uint32) bool { return n == 1 }
	for name, c := range map[string]struct {
		change func(e *Events, read []Read) []Read
		gaps   []Gap
		lost   func(uint32) bool
		want   []Class
	}{
		"right": {func(_ *Events, r []Read) []Read { return r }, nil, nil, nil},
		"one is missing": {func(_ *Events, r []Read) []Read {
			return r[1:]
		}, nil, nil, []Class{Missing}},
		"one is there twice": {func(_ *Events, r []Read) []Read {
			return slices.Insert(r, 1, r[0])
		}, nil, nil, []Class{Answer}},
		"two are out of order": {func(_ *Events, r []Read) []Read {
			r[0], r[1] = r[1], r[0]
			return r
		}, nil, nil, []Class{Answer}},
		"another time": {func(_ *Events, r []Read) []Read {
			r[0].Time--
			return r
		}, nil, first, []Class{Foreign, Missing}},
		"of another directory": {func(_ *Events, r []Read) []Read {
			return append(r, Read{r[2].Time + 1, Term("2", "foreign")})
		}, nil, nil, []Class{Foreign}},
		"came back": {func(e *Events, r []Read) []Read {
			e.fates[0] = absent
			return r
		}, nil, nil, []Class{Foreign}},
		"a gap without damage": {func(_ *Events, r []Read) []Read {
			return r
		}, []Gap{{0, 1, 1}}, nil, []Class{Missing}},
		"lost and named": {func(_ *Events, r []Read) []Read {
			return r[1:]
		}, []Gap{{0, 1 << 62, 1}}, first, nil},
		"lost and not named": {func(_ *Events, r []Read) []Read {
			return r[1:]
		}, nil, first, []Class{Missing}},
		"lost elsewhere": {func(_ *Events, r []Read) []Read {
			return r[:2]
		}, []Gap{{0, 1 << 62, 1}}, first, []Class{Missing}},
		"more lost than named": {func(_ *Events, r []Read) []Read {
			return nil
		}, []Gap{{0, 1 << 62, 2}}, func(uint32) bool { return true }, []Class{Missing}},
	} {
		var book Book
		book.Texts(1e18, nil)
		e, read := book.Events, []Read(nil)
		for range 3 {
			n, at, text := e.Next(1000)
			read = append(read, Read{at, Term(strconv.Itoa(int(n)), text)})
		}
		e.Ack(1, 3)
		read = c.change(e, read)
		var got faults
		e.Judge(read, c.gaps, false, c.lost, got.found)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestTagsAreJudged is the same for tags.
func TestTagsAreJudged(t *testing.T) {
	for name, c := range map[string]struct {
		change func(tags map[string]string, old string)
		lost   bool
		want   []Class
	}{
		"right": {func(map[string]string, string) {}, false, nil},
		"missing": {func(m map[string]string, _ string) {
			delete(m, "dc")
		}, false, []Class{Missing}},
		"overwritten": {func(m map[string]string, old string) {
			m["dc"] = old
		}, false, []Class{Foreign}},
		"lost, an old one shows": {func(m map[string]string, old string) { m["dc"] = old }, true, nil},
		"of another directory": {func(m map[string]string, _ string) {
			m["dc"] = "1-0"
		}, true, []Class{Foreign}},
	} {
		var book Book
		book.Texts(1e18, [][]string{{"a", "b"}})
		_, old := book.Tags.Next(0, 0)
		n, value := book.Tags.Next(0, 0)
		book.Tags.Ack(1, n)
		read := map[string]string{"dc": value}
		c.change(read, old)
		var got faults
		book.Tags.Judge(map[string]map[string]string{"a.b": maps.Clone(read)}, false, c.lost, got.found)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
