package graphite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
)

// What Python writes for [("a.b", (1500000000, 1.5)), ("c.é", (1500000000, 7))].
var pythonFrames = []string{
	"(lp0\n(Va.b\np1\n(I1500000000\nF1.5\ntp2\ntp3\na(Vc.\xe9\np4\n(I1500000000\nI7\ntp5\ntp6\na.",
	"]q\x00((X\x03\x00\x00\x00a.bq\x01(J\x00/hYG?\xf8\x00\x00\x00\x00\x00\x00tq\x02tq\x03(X\x04\x00\x00\x00c.\xc3\xa9q\x04(J\x00/hYK\x07tq\x05tq\x06e.",
	"\x80\x02]q\x00(X\x03\x00\x00\x00a.bq\x01J\x00/hYG?\xf8\x00\x00\x00\x00\x00\x00\x86q\x02\x86q\x03X\x04\x00\x00\x00c.\xc3\xa9q\x04J\x00/hYK\x07\x86q\x05\x86q\x06e.",
	"\x80\x04\x95/\x00\x00\x00\x00\x00\x00\x00]\x94(\x8c\x03a.b\x94J\x00/hYG?\xf8\x00\x00\x00\x00\x00\x00\x86\x94\x86\x94\x8c\x04c.\xc3\xa9\x94J\x00/hYK\x07\x86\x94\x86\x94e.",
	// Python 2, byte strings.
	"(lp0\n(S'a.b'\np1\n(I1500000000\nF1.5\ntp2\ntp3\na(S'c.\\xc3\\xa9'\np4\n(L1500000000L\nI7\ntp5\ntp6\na.",
	"\x80\x02]q\x01(U\x03a.bq\x02J\x00/hYG?\xf8\x00\x00\x00\x00\x00\x00\x86q\x03\x86q\x04T\x04\x00\x00\x00c.\xc3\xa9q\x05\x8a\x04\x00/hYK\x07\x86q\x06\x86q\x07e.",
	// Lists for tuples, texts for numbers, a value used twice.
	"]](U\x03a.b](U\x0a1500000000q\x00U\x031.5ee" + "a](U\x04c.\xc3\xa9](h\x00U\x017eea.",
}

// describe prints what a frame became.
func describe(frame []byte) string {
	var u unpickler
	top, err := u.run(frame)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	a := appender{dec: *newDecoder(1000)}
	for _, c := range u.items(top) {
		_, r := a.entry(&u, c)
		fmt.Fprintln(&b, a.dec.shown(r))
	}
	return b.String()
}

func TestPickledLists(t *testing.T) {
	want := "'a'.'b' @1500000000 float 1.5\n'c'.'é' @1500000000 int 7\n"
	for i, frame := range pythonFrames {
		if got := describe([]byte(frame)); got != want {
			t.Errorf("frame %d: got\n%s", i, got)
		}
	}
}

// TestOptimizedMemos: what pickletools.optimize of Python 2.7 leaves of a frame has gaps in the
// numbers of its memo, in every protocol of pickle and cPickle.
func TestOptimizedMemos(t *testing.T) {
	want := "'a'.'b' @1500000000 float 1.5\n'c'.'é' @1500000000 int 7\n'c'.'é' @1500000000 int " +
		"8\n'a'.'b' @1500000000 float 2.5\n"
	for i, frame := range []string{
		"(l(S'a.b'\np1\n(I1500000000\nF1.5\ntta(Vc.\xe9\np4\n(I1500000000\nI7\ntta(g4\n(I1500000000\nI8\ntta(g1\n(I1500000000\nF2.5\ntta.",
		"]((U\x03a.bq\x01(J\x00/hYG?\xf8\x00\x00\x00\x00\x00\x00tt(X\x04\x00\x00\x00c.\xc3\xa9q\x04(J\x00/hYK\x07tt(h\x04(J\x00/hYK\x08tt(h\x01(J\x00/hYG@\x04\x00\x00\x00\x00\x00\x00tte.",
		"\x80\x02](U\x03a.bq\x02J\x00/hYG?\xf8\x00\x00\x00\x00\x00\x00\x86\x86X\x04\x00\x00\x00c.\xc3\xa9q\x04J\x00/hYK\x07\x86\x86h\x04J\x00/hYK\x08\x86\x86h\x02J\x00/hYG@\x04\x00\x00\x00\x00\x00\x00\x86\x86e.",
		// The numbers behind the gap are reached by others, and put again.
		"\x80\x02](U\x03c.dq\x03\x30U\x03a.bq\x00J\x00/hYG?\xf8\x00\x00\x00\x00\x00\x00\x86q\x01\x86q\x02X\x04\x00\x00\x00c.\xc3\xa9q\x04q\x03J\x00/hYK\x07\x86\x86h\x03J\x00/hYK\x08\x86\x86h\x00J\x00/hYG@\x04\x00\x00\x00\x00\x00\x00\x86\x86e.",
	} {
		if got := describe([]byte(frame)); got != want {
			t.Errorf("frame %d: got\n%s", i, got)
		}
	}
	// Numbers far apart take memory for what is put, not for the gaps, and that is bounded.
	hostile := []byte("K\x01")
	for i := range uint32(maxCells) {
		hostile = binary.LittleEndian.AppendUint32(append(hostile, 'r'), math.MaxUint32-i)
	}
	u := unpickler{most: 1000}
	if _, err := u.run(hostile); err == nil || len(u.far) > 1000/farCost {
		t.Errorf("%d numbers far apart: %v", len(u.far), err)
	}
}

func TestPickledEntriesAreRefusedAlone(t *testing.T) {
	f := func(entry, want string) {
		t.Helper()
		if got := describe([]byte("](" + entry + "e.")); got != want+"\n" {
			t.Errorf("%q: got %s, want %s", entry, got, want)
		}
	}
	f("U\x01aK\x05K\x07\x86\x86", "'a' @5 int 7")
	f("U\x05a;k=vJ\xff\xff\xff\xffK\x07\x86\x86", "'a'.'k=v' @1600000000 int 7")
	f("U\x01aK\x05\x88\x86\x86", "'a' @5 int 1")
	f("U\x01aI5\nI01\n\x86\x86", "'a' @5 int 1")
	f("U\x01a\x8a\x02\x05\x00\x8a\x01\xff\x86\x86", "'a' @5 int -1")
	f("U\x01aU\x015U\x041e-1\x86\x86", "'a' @5 float 0.1")
	f("U\x01aK\x05N\x86\x86", "bad_value")
	f("U\x01aK\x05Fnan\n\x86\x86", "'a' @5 unset")
	f("U\x01aK\x05L99999999999999999999L\n\x86\x86", "'a' @5 float 1e+20")
	f("U\x01aK\x05L"+strings.Repeat("9", 400)+"L\n\x86\x86", "bad_value")
	f("U\x01aNK\x05\x86\x86", "bad_timestamp")
	f("U\x01aJ\xfe\xff\xff\xffK\x05\x86\x86", "bad_timestamp")
	f("U\x02a;K\x05K\x05\x86\x86", "bad_tag")
	f("U\x00K\x05K\x05\x86\x86", "malformed")
	f("K\x01K\x05K\x05\x86\x86", "malformed")
	f("U\x01aK\x05K\x05\x87", "malformed")
	f("U\x01aK\x05\x85\x86", "malformed")
	f("K\x01", "malformed")
}

func TestPicklesThatAreRefused(t *testing.T) {
	f := func(frame, want string) {
		t.Helper()
		if got := describe([]byte(frame)); !strings.Contains(got, want) {
			t.Errorf("%q: got %s, want %s", frame, got, want)
		}
	}
	f("", "ends within")
	f("]", "ends within")
	f("]U\x05a", "ends within")
	f("X\xff\xff\xff\xffa", "ends within")
	f("\x8e\xff\xff\xff\xff\xff\xff\xff\xffa", "ends within")
	f("\x8b\xff\xff\xff\xffa", "ends within")
	f(".", "too little")
	f("K\x01\x86.", "too little")
	f("K\x01(K\x01\x86.", "too little")
	f("(K\x01q\x05h\x04.", "never put")
	f("h\x05.", "never put")
	f("r\xff\xff\xff\xff.", "too little")
	f("K\x01r\xff\xff\xff\xffh\xff.", "never put")
	f("K\x01p-1\n.", "no number of the memo")
	f("K\x01a.", "finds no list")
	f("e.", "no mark")
	f("Sabc\n.", "no quoted text")
	f("S'a\\x4'\n.", "bad escape")
	f("V\\u12\n.", "bad escape")
	f("Ix\n.", "no integer")
	f("Fx\n.", "no float")
	f("cos\nsystem\n(S'ls'\ntR.", "opcode 0x63")
	f("}.", "opcode 0x7d")
	f(strings.Repeat("N", maxCells+1)+".", "more than")
}

// TestAListInItself: a value may hold itself, and nothing follows it forever.
func TestAListInItself(t *testing.T) {
	if got := describe([]byte("]q\x00h\x00a.")); got != "malformed\n" {
		t.Errorf("got %s", got)
	}
}

// appendEntry writes one entry in protocol 2.
func appendEntry(dst []byte, path string, seconds int32, value float64) []byte {
	dst = append(dst, 'X')
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(path)))
	dst = append(append(dst, path...), 'J')
	dst = append(binary.LittleEndian.AppendUint32(dst, uint32(seconds)), 'G')
	dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(value))
	return append(dst, 0x86, 0x86)
}

func TestPickledListsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frame := []byte("\x80\x02](")
		var want strings.Builder
		d := newDecoder(1000)
		for range rapid.IntRange(0, 20).Draw(t, "entries") {
			path := rapid.StringMatching(`[a-z.=;é]{1,12}`).Draw(t, "path")
			seconds := rapid.Int32().Draw(t, "seconds")
			value := rapid.Float64().Draw(t, "value")
			frame = appendEntry(frame, path, seconds, value)
			fmt.Fprintln(&want,
				d.shown(d.anyLine(fmt.Appendf(nil, "%s %s %d", path, strconv.FormatFloat(value, 'e', -1, 64),
					seconds))))
		}
		if got := describe(append(frame, "e."...)); got != want.String() {
			t.Fatalf("got\n%s\nwant\n%s", got, &want)
		}
	})
}

func FuzzPickle(f *testing.F) {
	for _, frame := range pythonFrames {
		f.Add([]byte(frame))
	}
	f.Add([]byte("](K\x01K\x02\x85q\x00h\x0020(K\x031e."))
	f.Add([]byte("K\x01r\xff\xff\xff\xff\x8b\xff\xff\xff\x7fV\\U0010ffff\n."))
	f.Fuzz(func(t *testing.T, frame []byte) {
		var u unpickler
		top, err := u.run(frame)
		if err != nil {
			if !errors.Is(err, errPickle) {
				t.Fatalf("%v is no error of the language", err)
			}
			return
		}
		if u.cells > maxCells || len(u.text) > 4*len(frame) {
			t.Fatalf("%d values and %d bytes of text from %d bytes", u.cells, len(u.text), len(frame))
		}
		a := appender{dec: *newDecoder(1000)}
		for _, c := range u.items(top) {
			if path, r := a.entry(&u, c); r == accepted && !bytes.Contains(u.text, path) {
				t.Fatalf("path %q is no text of the frame", path)
			}
		}
	})
}

// TestLongIntegersAreTheNearestDouble compares every way in which an integer of
// any length is written with arithmetic of any length.
func TestLongIntegersAreTheNearestDouble(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 140).Draw(t, "bytes"))
		if rapid.Bool().Draw(t, "negative") {
			n.Neg(n)
		}
		f, _ := n.Float64()
		want, known := point.FromFloat(f), !math.IsInf(f, 0)
		if n.IsInt64() {
			want = point.FromInt(n.Int64())
		}
		// Two's complement, the lowest byte first, with a byte or more for the sign.
		size := len(n.Bytes()) + rapid.IntRange(1, 3).Draw(t, "more")
		bits := new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*size)))
		le := bits.FillBytes(make([]byte, size+1))[1:]
		slices.Reverse(le)
		for _, number := range []string{"\x8a" + string(append([]byte{byte(size)}, le...)), "L" +
			n.String() + "L\n", "I" + n.String() + "\n"} {
			d := newDecoder(1000)
			var u unpickler
			top, err := u.run([]byte(number + "."))
			if err != nil {
				t.Fatalf("%q: %v", number, err)
			}
			if r := d.cellValue(&u, top); (r == accepted) != known || known && d.word != want {
				t.Fatalf("%q of %s is %x (reason %v), want %x", number, n, d.word, r, want)
			}
		}
		word, ok := parseValue([]byte(n.String()))
		if ok != known || known && word != want {
			t.Fatalf("the text %s is %x, want %x", n, word, want)
		}
	})
}
