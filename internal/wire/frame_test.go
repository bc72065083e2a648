package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

// Lengths at and beyond the limit, of 2^31 and more among them, for which a signed
// number of 32 bits is negative.
func TestFrameLengths(t *testing.T) {
	const limit = 1 << 20
	for _, c := range []struct {
		n        uint32
		tooLarge bool
	}{
		{0, false}, {1, false}, {limit - 1, false}, {limit, false}, {limit + 1, true},
		{math.MaxInt32 - 1, true}, {math.MaxInt32, true}, {1 << 31, true}, {1<<31 + 1, true},
		{1<<31 + limit, true}, {math.MaxUint32 - 3, true}, {math.MaxUint32, true},
	} {
		head := binary.BigEndian.AppendUint32(nil, c.n)
		_, rest, err := ParseFrame(head, limit)
		if got := errors.Is(err, ErrTooLarge); got != c.tooLarge || !bytes.Equal(rest, head) && c.n > 0 {
			t.Errorf("a frame of %d bytes: %v, rest %x", c.n, err, rest)
		}
		if !c.tooLarge && c.n > 0 && !errors.Is(err, ErrIncomplete) {
			t.Errorf("a frame of %d bytes of which none is there: %v", c.n, err)
		}
		if _, err := ReadFrame(bytes.NewReader(head), nil, limit); errors.Is(err,
			ErrTooLarge) != c.tooLarge || !c.tooLarge && c.n > 0 && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("reading a frame of %d bytes: %v", c.n, err)
		}
	}
	for _, text := range []string{"GET / HTTP/1.1", "put cpu 1 2", "a.b 1 2"} {
		_, _, err := ParseFrame([]byte(text), limit)
		if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "http.addr") {
			t.Errorf("%s: %v", text, err)
		}
	}
	// With the largest limit there is, lengths of 2^31 and more are waited for.
	for _, n := range []uint32{math.MaxInt32, 1 << 31, math.MaxUint32} {
		src := append(binary.BigEndian.AppendUint32(nil, n), 1, 2, 3)
		if payload, rest, err := ParseFrame(src, math.MaxUint32); !errors.Is(err, ErrIncomplete) ||
			payload != nil || !bytes.Equal(rest, src) {
			t.Errorf("%d bytes are announced and three are there: %x, %x, %v", n, payload, rest, err)
		}
	}
}

// Every cut of two frames is incomplete until the first one is whole.
func TestFrameCutAnywhere(t *testing.T) {
	src := AppendFrame(AppendFrame(nil, []byte("first")), []byte("second"))
	for n := range len(src) + 1 {
		payload, rest, err := ParseFrame(src[:n], 5)
		whole := n >= frameHeader+5
		if whole != (err == nil) || !whole && !errors.Is(err, ErrIncomplete) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if whole && (string(payload) != "first" || len(rest) != n-frameHeader-5 || cap(payload) != 5) {
			t.Fatalf("%d bytes: %q, %d left", n, payload, len(rest))
		}
	}
}
