package protobuf

import (
	"bytes"
	"math"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"dalmatiner/internal/testkit/protomsg"
)

// What our reader finds in a message is what was put into it.
func TestFields(t *testing.T) {
	msg := protomsg.Message(nil).Varint(1, 300).Float(2, 0.5).Text(3, "text").Varints(4, 1, 2)
	var got []any
	err := Each(msg, func(f *Field) error {
		switch f.Key() {
		case VarintKey(1):
			got = append(got, f.Value)
		case Fixed64Key(2):
			got = append(got, f.Float())
		case BytesKey(3):
			got = append(got, string(f.Data))
		case BytesKey(4):
			return Packed(f, func(v uint64) { got = append(got, v) })
		}
		return nil
	})
	want := []any{uint64(300), 0.5, "text", uint64(1), uint64(2)}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%v, %v", got, err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d: %v, want %v", i, got[i], want[i])
		}
	}
}

// FuzzNext: fields are those that Google's reader sees; groups, which nobody sends, are malformed.
func FuzzNext(f *testing.F) {
	f.Add([]byte(protomsg.Message(nil).Varint(1, 1<<63).Float(2, math.Pi).Text(3, "x")))
	f.Add([]byte{0x0d, 1, 2, 3, 4, 0x0a, 0x80})
	f.Fuzz(func(t *testing.T, msg []byte) {
		got, rest, err := Next(msg)
		number, wire, n := protowire.ConsumeField(msg)
		if n < 0 || wire == protowire.StartGroupType {
			if err == nil && n < 0 {
				t.Fatalf("%x is a field of %+v", msg, got)
			}
			return
		}
		if err != nil || got.Number != int(number) || got.Wire != int(wire) ||
			!bytes.Equal(rest, msg[n:]) {
			t.Fatalf("%x is %+v, %v", msg, got, err)
		}
	})
}
