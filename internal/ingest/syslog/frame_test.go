package syslog

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// split cuts a stream that comes in pieces of n bytes.
func split(stream []byte, n int) (got []string, err error) {
	var s splitter
	var buf []byte
	for len(stream) > 0 || len(buf) > 0 {
		k := min(n, len(stream))
		buf, stream = append(buf, stream[:k]...), stream[k:]
		for len(buf) > 0 {
			msg, used, ok, tooLong, err := s.next(buf)
			if err != nil {
				return got, err
			}
			if ok {
				got = append(got, string(msg))
			}
			if tooLong {
				got = append(got, "too long")
			}
			if buf = buf[used:]; used == 0 {
				break
			}
		}
		if k == 0 {
			break
		}
	}
	return got, nil
}

func TestSplit(t *testing.T) {
	long := strings.Repeat("x", MaxMessage+1)
	for _, c := range []struct {
		in, want string
		bad      bool
	}{
		{"<1>a\n<2>b\r\n\n<3>c\x00<4>cut", "<1>a|<2>b\r||<3>c", false},
		{"5 <1>ab6 <2>a\nb4 <3>", "<1>ab|<2>a\nb", false},
		{"5 <1>ab<2>c\n5 <3>de", "<1>ab|<2>c|<3>de", false},
		{"<1>" + long + "\n<2>b\n", "too long|<2>b", false},
		{fmt.Sprintf("%d %s<2>b\n", len(long), long), "too long|<2>b", false},
		{fmt.Sprintf("%d %s<2>b\n", MaxMessage, long[:MaxMessage]), long[:MaxMessage] + "|<2>b", false},
		{long[:MaxMessage] + "\n<2>b\n", long[:MaxMessage] + "|<2>b", false},
		{"1x <1>", "", true},
		{"123456789 <1>", "", true},
		{"99999999 <1>", "", true},
		{"2026x", "", true},
		{"12.x", "", true},
		{"2026-01-01", "", false}, // a line without its end
		{"2026-01-01 00:00:00 h a: x\n5 <1>ab", "2026-01-01 00:00:00 h a: x|<1>ab", false},
		{"1/2/2026 x\n29.11.2026 x\n12:00:00 x\n", "1/2/2026 x|29.11.2026 x|12:00:00 x", false},
		{"29-Nov-2026 x\n1990-1-1 x\n", "29-Nov-2026 x|1990-1-1 x", false},
		{"10.0.0.1 x\n", "10.0.0.1 x", false},
		{"20260101T000000Z x\n20260101 00:00:00 x\n", "20260101T000000Z x|20260101 00:00:00 x", false},
		{"2026 Jan  1 00:00:00 x\n", "2026 Jan  1 00:00:00 x", false},
		{"2026 " + long[:2026] + "<1>a\n", long[:2026] + "|<1>a", false},
		{"2026 Jane" + long[:2022] + "<1>a\n", "Jane" + long[:2022] + "|<1>a", false},
		{"20260101 <1>cut", "too long", false},
	} {
		for _, n := range []int{1, 7, 1 << 20} {
			if len(c.in) > 1000 && n == 1 {
				n = 1000
			}
			got, err := split([]byte(c.in), n)
			if s := strings.Join(got, "|"); s != c.want || errors.Is(err, errFraming) != c.bad {
				t.Errorf("%.40q in pieces of %d: got %.60q, %v", c.in, n, s, err)
			}
		}
	}
}

// FuzzSplit feeds a stream whole and in pieces: the messages must be the same.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("<1>a\n5 <1>ab\x00\n12 x"), 3)
	f.Add([]byte("70000 abc"), 1)
	f.Add([]byte("2026-01-01 x\n2026 Jan 1\n20260101 0\n20260101T"), 1)
	f.Fuzz(func(t *testing.T, stream []byte, n int) {
		if n < 1 || len(stream) > 1<<20 || len(stream)/n > 1000 {
			return
		}
		whole, err := split(bytes.Clone(stream), len(stream)+1)
		pieces, err2 := split(bytes.Clone(stream), n)
		if strings.Join(whole, "|") != strings.Join(pieces, "|") || (err == nil) != (err2 == nil) {
			t.Fatalf("whole %q, %v; in pieces %q, %v", whole, err, pieces, err2)
		}
	})
}
