package syslog

import (
	"bytes"
	"errors"
	"strconv"
	"time"
)

// MaxMessage is the longest message in bytes. Longer ones are refused, whole.
const MaxMessage = 64 << 10

// maxSkip is the longest message that is passed over. One that announces more is no message.
const maxSkip = 64 << 20

// errFraming is the error of a stream that is no syslog.
var errFraming = errors.New("the length of a message is no number from 1 to 67108864")

// splitter cuts a stream of TCP into messages (RFC 6587). One that begins with a digit from 1 to 9
// has its length before it; any other ends with a newline or a zero byte, and so does one that
// begins with a date. A message that starts with `<` is never taken for a length, so that a sender
// may mix both.
type splitter struct {
	skip     int  // bytes of a message with a length that are passed over
	skipLine bool // the rest of a line is passed over
}

// next takes the next message off the front of src. used says how many bytes of src are done
// with. ok says that there is a message; without it and with used == 0, more bytes are needed.
// tooLong says that a message begins which is passed over.
func (s *splitter) next(src []byte) (msg []byte, used int, ok, tooLong bool, err error) {
	switch {
	case s.skip > 0:
		n := min(s.skip, len(src))
		s.skip -= n
		return nil, n, false, false, nil
	case s.skipLine:
		if i := lineEnd(src); i >= 0 {
			s.skipLine = false
			return nil, i + 1, false, false, nil
		}
		return nil, len(src), false, false, nil
	case beginsWithLength(src):
		if _, known := beginsWithDate(src); !known {
			return nil, 0, false, false, nil
		}
		return s.counted(src)
	}
	if i := lineEnd(src); i > MaxMessage {
		return nil, i + 1, false, true, nil
	} else if i >= 0 {
		return src[:i], i + 1, true, false, nil
	}
	if len(src) > MaxMessage {
		s.skipLine = true
		return nil, len(src), false, true, nil
	}
	return nil, 0, false, false, nil
}

// lineEnd returns where the first newline or zero byte is, or -1.
func lineEnd(src []byte) int {
	end := bytes.IndexByte(src, '\n')
	if end >= 0 {
		src = src[:end]
	}
	if zero := bytes.IndexByte(src, 0); zero >= 0 {
		return zero
	}
	return end
}

// beginsWithLength reports whether a stream begins with the length of a message. While it takes
// more bytes to tell a length from a date, it is taken for one.
func beginsWithLength(src []byte) bool {
	if len(src) == 0 || src[0] < '1' || src[0] > '9' {
		return false
	}
	dated, _ := beginsWithDate(src)
	return !dated
}

// beginsWithDate reports whether a stream that begins with a digit begins with a date, a time or an
// address, such as 2026-11-29, 29.11.2026, 12:39:22, 20261129T013922 and `2026 Nov 29`. A length is
// not followed by these signs. known is false while it takes more bytes to tell.
func beginsWithDate(src []byte) (dated, known bool) {
	const year, day = 4, 8 // digits of a year, and of a whole date
	digits := 0
	for digits < len(src) && digits <= day && isDigit(src[digits]) {
		digits++
	}
	if digits == len(src) {
		return false, digits > day
	}
	century := digits >= year && (src[0] == '1' && src[1] == '9' || src[0] == '2' && src[1] == '0')
	sign, behind := src[digits], src[digits+1:]
	switch {
	case sign == '-' || sign == '/' || sign == '.' || sign == ':':
		number := len(behind) > 0 && isDigit(behind[0])
		month := len(behind) > 0 && isLetter(behind[0]) && sign == '-' // 29-Nov-2026
		return number || month, len(behind) > 0
	case digits == day && century && sign == 'T':
		return true, true
	case digits == day && century && sign == ' ':
		return len(behind) > 0 && isDigit(behind[0]), len(behind) > 0
	case digits == year && century && sign == ' ':
		return beginsWithMonth(behind)
	}
	return false, true
}

// beginsWithMonth reports whether the name of a month and a blank come next, such as `Nov `. known
// is false while it takes more bytes to tell.
func beginsWithMonth(src []byte) (month, known bool) {
	for m := time.January; m <= time.December; m++ {
		name := m.String()[:3] + " "
		if len(src) < len(name) && name[:len(src)] == string(src) {
			return false, false
		}
		if bytes.HasPrefix(src, []byte(name)) {
			return true, true
		}
	}
	return false, true
}

// counted takes a message that has its length before it.
func (s *splitter) counted(src []byte) (msg []byte, used int, ok, tooLong bool, err error) {
	const digits = 8
	blank := bytes.IndexByte(src[:min(len(src), digits+1)], ' ')
	if blank < 0 {
		for _, c := range src[:min(len(src), digits+1)] {
			if !isDigit(c) {
				return nil, 0, false, false, errFraming
			}
		}
		if len(src) > digits {
			return nil, 0, false, false, errFraming
		}
		return nil, 0, false, false, nil
	}
	n, err := strconv.Atoi(string(src[:blank]))
	if err != nil || n > maxSkip {
		return nil, 0, false, false, errFraming
	}
	switch start := blank + 1; {
	case n > MaxMessage:
		s.skip = n
		return nil, start, false, true, nil
	case len(src) < start+n:
		return nil, 0, false, false, nil
	default:
		return src[start : start+n], start + n, true, false, nil
	}
}
