package graphite

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// pushText pushes a text.
func (u *unpickler) pushText(op byte) error {
	start := len(u.text)
	var err error
	switch op {
	case 'S':
		err = u.quoted()
	case 'V':
		err = u.rawUnicode()
	case 'U', 'C', 0x8c:
		err = u.counted(1)
	case 'T', 'X', 'B':
		err = u.counted(4)
	default:
		err = u.counted(8)
	}
	if err != nil {
		return err
	}
	return u.push(cell{kind: kindText, n: uint32(len(u.text) - start), v: uint64(start)})
}

// counted takes a text behind its length, which has size bytes.
func (u *unpickler) counted(size int) error {
	n, err := u.unsigned(size)
	if err != nil {
		return err
	}
	b, err := u.take(int(min(n, math.MaxInt32))) // more than any frame holds
	u.text = append(u.text, b...)
	return err
}

// quoted takes a byte string as Python 2 prints it.
func (u *unpickler) quoted() error {
	line, err := u.textLine()
	if err != nil {
		return err
	}
	line = bytes.TrimSpace(line)
	n := len(line)
	if n < 2 || line[0] != line[n-1] || line[0] != '\'' && line[0] != '"' {
		return fmt.Errorf("%w: %.40q is no quoted text", errPickle, line)
	}
	for s := line[1 : n-1]; len(s) > 0; {
		if s[0] != '\\' {
			u.text, s = append(u.text, s[0]), s[1:]
			continue
		}
		if len(s) < 2 {
			return fmt.Errorf("%w: %.40q ends in an escape", errPickle, line)
		}
		b, length := s[1], 2
		switch s[1] {
		case 'n':
			b = '\n'
		case 't':
			b = '\t'
		case 'r':
			b = '\r'
		case 'x':
			v, ok := hexNumber(s[2:], 2)
			if !ok {
				return fmt.Errorf("%w: %.40q holds a bad escape", errPickle, line)
			}
			b, length = byte(v), 4
		}
		u.text, s = append(u.text, b), s[length:]
	}
	return nil
}

// rawUnicode takes a text of which only what lies beyond Latin-1 is escaped;
// the bytes are Latin-1.
func (u *unpickler) rawUnicode() error {
	line, err := u.textLine()
	if err != nil {
		return err
	}
	for len(line) > 0 {
		r, length := rune(line[0]), 1
		if r == '\\' && len(line) > 1 && (line[1] == 'u' || line[1] == 'U') {
			digits := 4
			if line[1] == 'U' {
				digits = 8
			}
			v, ok := hexNumber(line[2:], digits)
			if !ok {
				return fmt.Errorf("%w: %.40q begins with a bad escape", errPickle, line)
			}
			r, length = rune(v), 2+digits
		}
		u.text = utf8.AppendRune(u.text, r)
		line = line[length:]
	}
	return nil
}

// hexNumber reads exactly the given number of hexadecimal digits.
func hexNumber(s []byte, digits int) (uint32, bool) {
	if len(s) < digits {
		return 0, false
	}
	v, err := strconv.ParseUint(string(s[:digits]), 16, 32)
	return uint32(v), err == nil
}
