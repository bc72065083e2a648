package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func TestRequestErrors(t *testing.T) {
	f := func(payload string, kind error, mention string) {
		t.Helper()
		b, err := hex.DecodeString(payload)
		if err != nil {
			t.Fatal(err)
		}
		_, err = ParseRequest(b)
		if !errors.Is(err, kind) || !strings.Contains(err.Error(), mention) {
			t.Errorf("%s: %v, want %v that mentions %q", payload, err, kind, mention)
		}
	}
	f("", ErrMalformed, "no opcode")
	f("fe", ErrMalformed, "no opcode")
	f("fe00000000000000010000000000000002", ErrMalformed, "no opcode")
	f("fe00000000000000010000000000000002fe", ErrMalformed, "inside a traced request")
	f("01", ErrMalformed, "inside a field")
	f("0105666f", ErrMalformed, "inside a field")
	f("0100", ErrMalformed, "no bucket")
	f("0300", ErrMalformed, "1 bytes too many")
	f("0101620000", ErrMalformed, "2 bytes too many")
	f("0201620001610000000000000000000000", ErrMalformed, "inside a field")
	f("020162000161000000000000000000000001ff", ErrMalformed, "options of 1 bytes")
	f("020162000161000000000000000000000001040202", ErrMalformed, "flags 4")
	f("020162000161000000000000000000000001000300", ErrMalformed, "read repair option 3")
	f("0201620001610000000000000000000000010001020173"+"00000000", ErrMalformed, "over 0 points")
	f("0201620001610000000000000000000000010001020973"+"00000001", ErrMalformed, "inside a field")
	f("1202050162", ErrMalformed, "hpts flag 2")
	f("2003010162", ErrUnsupported, "version 3")
	f("080162"+"0000000000000001"+"0000000000000001"+"0000000000000000"+"02", ErrMalformed,
		"hpts flag 2")
	f("080162"+"0000000000000001"+"0000000000000001"+"0000000000000000"+"00", ErrMalformed,
		"hpts flag 0")
	f("080162"+"0000000000000001"+"0000000000000001"+"0000000000000000"+"0100", ErrMalformed,
		"2 bytes too many")
	f("0d0200", ErrMalformed, "inside a field")
	f("0e0162"+"0000000000000001", ErrMalformed, "inside a field")
	f("0e0162"+"0000000000000001"+"0000000000000002"+"00", ErrMalformed, "1 bytes too many")
	f("0f", ErrUnknownOpcode, "15 (0x0f)")
	f("10", ErrUnknownOpcode, "16 (0x10)")
	f("00", ErrUnsupported, "UDP")
	f("05", ErrUnknownOpcode, "5 (0x05)")
	f("21", ErrUnknownOpcode, "33 (0x21)")
	f("ff0161", ErrUnknownOpcode, "255")
}

func TestAppendRequestRefusesLongNames(t *testing.T) {
	f := func(q Request, mention string) {
		t.Helper()
		if _, err := AppendRequest(nil, &q); err == nil || !strings.Contains(err.Error(), mention) {
			t.Errorf("%v, want an error that mentions %q", err, mention)
		}
	}
	f(Request{Op: OpList}, "1 to 255")
	f(Request{Op: OpList, Bucket: make([]byte, 256)}, "1 to 255")
	f(Request{Op: OpGet, Bucket: []byte("b"), Key: make([]byte, 65536)}, "65535")
	f(Request{Op: OpEntry, Bucket: []byte("b")}, "no request")
}

func TestAckStreamRequest(t *testing.T) {
	q := Request{Op: OpAckStream, Delay: 3, Bucket: []byte("b")}
	b, err := AppendRequest(nil, &q)
	if err != nil || !bytes.Equal(b, []byte{0x20, 1, 3, 1, 'b'}) {
		t.Fatalf("%x, %v", b, err)
	}
	got, err := ParseRequest(b)
	if err != nil || requestText(&got) != `ackstream "b" delay 3` {
		t.Errorf("%s, %v", requestText(&got), err)
	}
}

func TestFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payloads := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 200_000), 1, 4).Draw(t, "payloads")
		var all []byte
		for i, p := range payloads {
			if i%2 == 0 {
				all = AppendFrame(all, p)
				continue
			}
			var mark int
			all, mark = BeginFrame(all)
			all = append(all, p...)
			EndFrame(all, mark)
		}
		r := iotest.HalfReader(bytes.NewReader(all))
		var buf []byte
		for i, want := range payloads {
			got, rest, err := ParseFrame(all, 200_000)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("frame %d parsed: %d bytes, %v", i, len(got), err)
			}
			all = rest
			buf, err = ReadFrame(r, buf, 200_000)
			if err != nil || !bytes.Equal(buf, want) {
				t.Fatalf("frame %d read: %d bytes, %v", i, len(buf), err)
			}
		}
		if _, err := ReadFrame(r, buf, 1); err != io.EOF || len(all) != 0 {
			t.Fatalf("at the end: %v and %d bytes left, want EOF and 0", err, len(all))
		}
	})
}

func TestFrameErrors(t *testing.T) {
	frame := AppendFrame(nil, []byte("abcde"))
	for n := range frame {
		if _, _, err := ParseFrame(frame[:n], 5); err != ErrIncomplete {
			t.Errorf("%d of %d bytes parsed: %v, want %v", n, len(frame), err, ErrIncomplete)
		}
		_, err := ReadFrame(bytes.NewReader(frame[:n]), nil, 5)
		if n == 0 && err != io.EOF || n > 0 && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d of %d bytes read: %v", n, len(frame), err)
		}
	}
	if _, _, err := ParseFrame(frame, 4); !errors.Is(err, ErrTooLarge) ||
		!strings.Contains(err.Error(), "limit is 4") {
		t.Errorf("beyond the limit: %v", err)
	}
	if _, err := ReadFrame(bytes.NewReader(frame), nil, 4); !errors.Is(err, ErrTooLarge) {
		t.Errorf("beyond the limit: %v", err)
	}
}
