package eventing

import (
	"bytes"
	"reflect"
	"testing"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/store/events"
)

// message is a request, or a reply without a kind.
type message interface {
	append(dst []byte) []byte
	parse(b []byte) error
}

// digestList is a reply to digested.
type digestList struct{ list []events.Digest }

func (m *digestList) append(dst []byte) []byte { return appendDigests(dst, m.list) }

func (m *digestList) parse(b []byte) (err error) {
	m.list, err = parseDigests(b)
	return err
}

// messages are one of each type. kind is how many bytes are before what parse reads.
func messages() []struct {
	m    message
	kind int
} {
	v := ring.Version{Number: 3, Sum: 1 << 63}
	list := []events.Event{{Time: 1, ID: events.ID{1}, Body: []byte("body")},
		{Time: 1 << 62, Body: []byte{}}}
	return []struct {
		m    message
		kind int
	}{
		{&storeRequest{v, 7, []byte("defined"), list}, 1},
		{&pageRequest{v, 7, -5, 1 << 62, true, true, position{9, events.ID{2}}, pageBytes}, 1},
		{&page{list, true, []events.Gap{{Start: -3, End: 4, Events: 5}}}, 0},
		{&sumsRequest{-1}, 1},
		{&sums{v, map[uint64]halves{7: {1, 2}}}, 0},
		{&digestsRequest{7, 0, 1 << 60, second}, 1},
		{&digestList{[]events.Digest{{Start: 5, Events: 6, Sum: 7}, {Start: 8}}}, 0},
		{&countRequest{v, 7, 1, 1 << 60, 17}, 1},
		{&cellList{[]events.Digest{{Start: 5, Events: 6, Sum: 7}},
			[]events.Gap{{Start: -3, End: 4, Events: 5}}}, 0},
		{&followRequest{[]uint64{7, 8}}, 1},
		{&tailBatch{1, 2, 7, 3, list}, 1},
	}
}

// TestMessages: what is appended is what is parsed, and nothing that is cut short or too long is
// taken for a message that is whole.
func TestMessages(t *testing.T) {
	for _, c := range messages() {
		b := c.m.append(nil)[c.kind:]
		got := reflect.New(reflect.TypeOf(c.m).Elem()).Interface().(message)
		if err := got.parse(b); err != nil || !reflect.DeepEqual(got, c.m) {
			t.Errorf("%T: %+v, %v", c.m, got, err)
		}
		for n := range len(b) {
			short := reflect.New(reflect.TypeOf(c.m).Elem()).Interface().(message)
			if err := short.parse(b[:n:n]); err == nil && !bytes.Equal(short.append(nil)[c.kind:], b[:n]) {
				t.Errorf("%T: %d of %d bytes are %+v", c.m, n, len(b), short)
			}
		}
	}
}

// FuzzMessages: whatever comes is refused, or appended again as it was understood.
func FuzzMessages(f *testing.F) {
	for i, c := range messages() {
		f.Add(byte(i), c.m.append(nil)[c.kind:])
	}
	f.Fuzz(func(t *testing.T, which byte, b []byte) {
		all := messages()
		c := all[int(which)%len(all)]
		fresh := func() message { return reflect.New(reflect.TypeOf(c.m).Elem()).Interface().(message) }
		m := fresh()
		if m.parse(b) != nil {
			return
		}
		again := fresh()
		if err := again.parse(m.append(nil)[c.kind:]); err != nil || !reflect.DeepEqual(m, again) {
			t.Errorf("%x is %+v, and then %+v, %v", b, m, again, err)
		}
	})
}
