package wire

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
)

// appendGetAggrHeader appends the first payload of a GET reply whose points are
// aggregated, as other servers may send it: each point stands for count slots.
func appendGetAggrHeader(dst []byte, name string, count uint32) []byte {
	dst = append(dst, getHeader, byte(len(name)))
	dst = append(dst, name...)
	return binary.BigEndian.AppendUint32(dst, count)
}

func drawWords(t *rapid.T) []uint64 {
	word := rapid.OneOf(
		rapid.Just(point.Unset),
		rapid.Map(rapid.Int64Range(point.MinInt, point.MaxInt), point.FromInt),
		rapid.Map(rapid.Float64(), point.FromFloat),
	)
	return rapid.SliceOfN(word, 1, 300).Draw(t, "words")
}

func TestGetFramesCarryAnyPoints(t *testing.T) {
	var d Decoder
	rapid.Check(t, func(t *rapid.T) {
		e := GetEncoder{Exact: rapid.Bool().Draw(t, "exact")}
		words := drawWords(t)
		prefix := []byte("kept")
		payload := e.AppendData(prefix, words)
		if string(payload[:4]) != "kept" {
			t.Fatalf("the bytes before the frame became %x", payload[:4])
		}
		f, err := ParseGetFrame(payload[4:])
		if err != nil || f.Kind != GetData {
			t.Fatal(err)
		}
		got, err := d.AppendWords([]uint64{5}, f, len(words))
		if !e.Exact {
			for i, w := range words {
				words[i] = point.EvenWord(w)
			}
		}
		if err != nil || got[0] != 5 || !slices.Equal(got[1:], words) {
			t.Fatalf("got %x, %v, want %x", got, err, words)
		}
		if got, err := d.AppendWords(nil, f, len(words)-1); !errors.Is(err, ErrTooLarge) {
			t.Fatalf("with one slot less allowed: %d words, %v, want %v", len(got), err, ErrTooLarge)
		}
	})
}

func TestLargestGetFrame(t *testing.T) {
	words := make([]uint64, MaxGetSlots)
	for i := range words {
		words[i] = point.FromInt(7)
	}
	var e GetEncoder
	f, err := ParseGetFrame(e.AppendData(nil, words))
	if err != nil {
		t.Fatal(err)
	}
	var d Decoder
	got, err := d.AppendWords(nil, f, MaxGetSlots)
	if err != nil || !slices.Equal(got, words) {
		t.Errorf("%d words, %v", len(got), err)
	}
}

func TestGetDecodeErrors(t *testing.T) {
	var d Decoder
	f := func(frame GetFrame, kind error, mention string) {
		t.Helper()
		got, err := d.AppendWords(nil, frame, 1000)
		if !errors.Is(err, kind) || !strings.Contains(err.Error(), mention) {
			t.Errorf("%d words, %v, want %v that mentions %q", len(got), err, kind, mention)
		}
	}
	f(GetFrame{Padding: 1 << 63}, ErrTooLarge, "at most 1000")
	f(GetFrame{Padding: 1001}, ErrTooLarge, "pads 1001")
	f(GetFrame{Coded: binary.AppendUvarint(nil, 8000)}, ErrMalformed, "claim")
	f(GetFrame{Coded: binary.AppendUvarint(nil, 8008)}, ErrTooLarge, "1001 slots")
	f(GetFrame{Coded: binary.AppendUvarint(nil, 7)}, ErrMalformed, "multiple of 8")
	f(GetFrame{Coded: []byte{0xff}}, ErrMalformed, "get frame")
	f(GetFrame{Coded: []byte{8, 0xff}}, ErrMalformed, "get frame")
	f(GetFrame{Coded: s2.EncodeSnappy(nil, []byte{3, 0, 0, 0, 0, 0, 0, 0})}, ErrMalformed, "type 03")
}

func TestTimestampedPoints(t *testing.T) {
	raw := point.Append(point.Append(nil, point.FromFloat(1.5)), 1500000000123456789)
	var d Decoder
	got, err := d.AppendTimestamped(nil, GetFrame{Coded: s2.EncodeSnappy(nil, raw), Padding: 2}, 3)
	want := []Timestamped{{point.FromFloat(1.5), 1500000000123456789}, {}, {}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestErrorsAreNoOtherReply(t *testing.T) {
	f := func(payload []byte, want bool) {
		t.Helper()
		if _, got := ParseError(payload); got != want {
			t.Errorf("%x is an error: %t, want %t", payload, got, want)
		}
	}
	f(AppendError(nil, ""), true)
	f(AppendError(nil, strings.Repeat("x", 300)), true)
	f(AppendGetHeader(nil), false)
	f(appendGetAggrHeader(nil, "", 1), false)
	f(appendGetAggrHeader(nil, "sum", 60), false)
	f(AppendGetEnd(nil), false)
	f(AppendInfo(nil, Info{Resolution: 1000, TTL: 7}), false)
	f(AppendAck(nil, Ack{Seq: 1 << 63}), false)
	list, mark := BeginNames(nil)
	EndNames(list, mark)
	f(list, false)
}

func TestAckSurvives(t *testing.T) {
	want := Ack{Seq: 1 << 60, Received: 1 << 40, Refused: 3}
	got, err := ParseAck(AppendAck(nil, want))
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := ParseAck(AppendError(nil, "twenty-three characters")); !errors.Is(err, ErrMalformed) {
		t.Errorf("an error frame of 25 bytes: %v", err)
	}
}
