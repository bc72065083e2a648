package term

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/klauspost/compress/zlib"
)

// Normalize checks that src is one whole external term within the limits, and returns it without
// compression: src itself, or new memory for a term that was compressed. The error wraps
// ErrMalformed, ErrTooLarge or ErrUnsupported.
func Normalize(src []byte) ([]byte, error) {
	if len(src) > MaxSize {
		return nil, tooLarge("%d bytes, the limit is %d", len(src), MaxSize)
	}
	if len(src) < 2 || src[0] != version {
		return nil, malformed("%d bytes that do not start with %d and a tag", len(src), version)
	}
	if src[1] == tagCompressed {
		var err error
		if src, err = inflate(src[2:]); err != nil {
			return nil, err
		}
	}
	c := checker{src: src[1:]}
	if err := c.value(0); err != nil {
		return nil, err
	}
	if len(c.src) > 0 {
		return nil, malformed("%d bytes behind its end", len(c.src))
	}
	return src, nil
}

// inflate returns the term, with its version, from a size and what zlib made of it.
func inflate(src []byte) ([]byte, error) {
	if len(src) < 4 {
		return nil, malformed("it ends inside the size of a compressed one")
	}
	size := binary.BigEndian.Uint32(src)
	if size >= MaxSize {
		return nil, tooLarge("%d bytes when inflated, the limit is %d", size, MaxSize)
	}
	z, err := zlib.NewReader(bytes.NewReader(src[4:]))
	if err != nil {
		return nil, malformed("compressed: %v", err)
	}
	defer z.Close()
	var out bytes.Buffer
	out.WriteByte(version)
	// One byte more than the size shows that there is more, and reads the checksum otherwise.
	n, err := io.Copy(&out, io.LimitReader(z, int64(size)+1))
	if err != nil {
		return nil, malformed("compressed: %v", err)
	}
	if n != int64(size) {
		return nil, malformed("compressed, with another size than its %d bytes", size)
	}
	if size > 0 && out.Bytes()[1] == tagCompressed {
		return nil, malformed("compressed twice")
	}
	return out.Bytes(), nil
}

// checker walks over a term once.
type checker struct {
	src   []byte
	count int
}

// value takes one value off the front.
func (c *checker) value(depth int) error {
	if c.count++; c.count > MaxElements {
		return tooLarge("more than %d values", MaxElements)
	}
	if depth > MaxDepth {
		return tooLarge("it nests deeper than %d levels", MaxDepth)
	}
	if len(c.src) == 0 {
		return malformed("it ends where a value is expected")
	}
	tag := c.src[0]
	head, body, err := extent(c.src)
	if err != nil {
		return err
	}
	content := c.src[head : head+body]
	c.src = c.src[head+body:]
	if err := checkContent(tag, content); err != nil {
		return err
	}
	n, ok := members(tag, content)
	if !ok {
		return nil
	}
	if n > uint64(len(c.src)) {
		return malformed("%d elements in %d bytes", n, len(c.src))
	}
	for range n {
		if err := c.value(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

// extent returns the length of the tag and its lengths, and that of the bytes behind them that
// belong to the value itself. For lists, tuples and maps the latter is the number of elements.
func extent(src []byte) (head, body int, err error) {
	var n uint64
	switch tag := src[0]; tag {
	case tagNil:
		head = 1
	case tagSmallInt:
		head, n = 1, 1
	case tagInt:
		head, n = 1, 4
	case tagFloat:
		head, n = 1, 8
	case tagOldFloat:
		head, n = 1, 31
	case tagTuple:
		head, n = 1, 1
	case tagLargeTuple, tagList, tagMap:
		head, n = 1, 4
	case tagSmallAtom, tagSmallUTF8, tagBig:
		if len(src) > 1 {
			n = uint64(src[1])
		}
		head = 2
	case tagAtom, tagAtomUTF8, tagByteList:
		if len(src) > 2 {
			n = uint64(binary.BigEndian.Uint16(src[1:]))
		}
		head = 3
	case tagBinary, tagLargeBig:
		if len(src) > 4 {
			n = uint64(binary.BigEndian.Uint32(src[1:]))
		}
		head = 5
	default:
		return 0, 0, fmt.Errorf("%w: tag %d (%s)", ErrUnsupported, tag, tagName(tag))
	}
	if src[0] == tagBig || src[0] == tagLargeBig {
		n++ // the sign
	}
	if uint64(len(src)) < uint64(head)+n {
		return 0, 0, malformed("it ends inside a value of %d bytes", uint64(head)+n)
	}
	return head, int(n), nil
}

// members returns the number of values that follow a list, a tuple or a map as its elements.
func members(tag byte, content []byte) (n uint64, ok bool) {
	switch tag {
	case tagTuple:
		return uint64(content[0]), true
	case tagLargeTuple:
		return uint64(binary.BigEndian.Uint32(content)), true
	case tagList:
		return uint64(binary.BigEndian.Uint32(content)) + 1, true // the tail
	case tagMap:
		return 2 * uint64(binary.BigEndian.Uint32(content)), true
	}
	return 0, false
}

// checkContent checks what a value says beyond its length.
func checkContent(tag byte, content []byte) error {
	switch tag {
	case tagFloat:
		f := math.Float64frombits(binary.BigEndian.Uint64(content))
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return malformed("a float that is no number")
		}
	case tagOldFloat:
		if _, ok := oldFloat(content); !ok {
			return malformed("an old float %q", bytes.TrimRight(content, "\x00"))
		}
	case tagAtomUTF8, tagSmallUTF8:
		if !utf8.Valid(content) {
			return malformed("an atom that is not UTF-8")
		}
		if n := utf8.RuneCount(content); n > MaxAtom {
			return tooLarge("an atom of %d characters, the limit is %d", n, MaxAtom)
		}
	case tagAtom, tagSmallAtom:
		if len(content) > MaxAtom {
			return tooLarge("an atom of %d characters, the limit is %d", len(content), MaxAtom)
		}
	case tagBig, tagLargeBig:
		if n := len(content) - 1; n > MaxInteger {
			return tooLarge("an integer of %d bytes, the limit is %d", n, MaxInteger)
		}
		if content[0] > 1 {
			return malformed("sign %d of an integer", content[0])
		}
	}
	return nil
}

// oldFloat reads the 31 bytes of text that releases before 2014 wrote.
func oldFloat(content []byte) (float64, bool) {
	text := bytes.TrimRight(content, "\x00")
	for _, c := range text {
		// ParseFloat takes more than Erlang wrote: hexadecimal, underscores, inf.
		if (c < '0' || c > '9') && c != '.' && c != 'e' && c != '+' && c != '-' {
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(string(text), 64)
	return f, err == nil
}

func tagName(tag byte) string {
	switch tag {
	case tagCompressed:
		return "compressed, inside a term"
	case 77:
		return "bit string"
	case 88, 103:
		return "process"
	case 89, 102, 120:
		return "port"
	case 90, 101, 114:
		return "reference"
	case 112, 113, 117:
		return "function"
	case 82:
		return "atom of a cache"
	case 121:
		return "node's own form"
	}
	return "unknown"
}
