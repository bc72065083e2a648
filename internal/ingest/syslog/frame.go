package syslog

import (
	"bytes"
	"errors"
	"strconv"
)

// MaxMessage is the longest message in bytes. Longer ones are refused, whole.
const MaxMessage = 64 << 10

// maxSkip is the longest message that is passed over. One that announces more is no message.
const maxSkip = 64 << 20

// errFraming is the error of a stream that is no syslog.
var errFraming = errors.New("the length of a message is no number from 1 to 67108864")

// splitter cuts a stream of TCP into messages (RFC 6587). One that begins with a digit from 1 to 9
// has its length before it; any other ends with a newline or a zero byte. A message that starts
// with `<` is never taken for a length, so that a sender may mix both.
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
	case len(src) > 0 && src[0] >= '1' && src[0] <= '9':
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
