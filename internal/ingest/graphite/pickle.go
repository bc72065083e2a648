package graphite

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// maxCells bounds the values of one frame, on the stack, in tuples, in lists
// and in the memo, 16 bytes each. A point takes 13 of them, so that it holds all
// the points of a frame of 1 MiB with names of three bytes.
const maxCells = 1 << 20

// cell is one value of the pickle machine. It is copied freely: lists are
// shared through their number, as the language wants it.
type cell struct {
	kind kind
	n    uint32 // of text and tuples: the length
	v    uint64 // number: bits; text, tuple: where it starts; list: its number
}

type kind uint8

const (
	kindOther kind = iota // None, and integers beyond all doubles
	kindInt
	kindFloat
	kindText
	kindTuple
	kindList
)

// unpickler runs the part of the pickle language in which a list of tuples of
// texts and numbers is written, protocols 0 to 5. It knows no opcode that
// names a class or calls anything, so that no input can make it do more than
// build lists. Its memory is used again by the next frame.
type unpickler struct {
	src   []byte
	cells int // made so far
	most  int // cells that may be made, at most maxCells; 0 stands for that
	stack []cell
	marks []int // heights of the stack
	memo  []cell
	far   map[uint64]cell // of the memo, behind a gap in its numbers; nil for none
	tuple []cell          // all tuples, one after the other
	lists [][]cell
	text  []byte // all texts
}

var (
	errPickle   = errors.New("malformed pickle")
	errShort    = fmt.Errorf("%w: it ends within an opcode", errPickle)
	errStack    = fmt.Errorf("%w: an opcode finds too little on the stack", errPickle)
	errManyVals = fmt.Errorf("%w: more than %d values", errPickle, maxCells)
)

// run interprets src and returns what it leaves: one value. The value is valid
// until the next call.
func (u *unpickler) run(src []byte) (cell, error) {
	*u = unpickler{
		src: src, most: u.most, stack: u.stack[:0], marks: u.marks[:0], memo: u.memo[:0],
		tuple: u.tuple[:0], lists: u.lists[:0], text: u.text[:0],
	}
	for {
		op, err := u.take(1)
		if err != nil {
			return cell{}, err
		}
		if op[0] == '.' {
			return u.pop()
		}
		if err := u.step(op[0]); err != nil {
			return cell{}, err
		}
	}
}

// step interprets one opcode.
func (u *unpickler) step(op byte) error {
	switch op {
	case '(':
		u.marks = append(u.marks, len(u.stack))
		return u.count(1)
	case ']', 'l':
		return u.list(op == 'l')
	case ')':
		return u.makeTuple(len(u.stack))
	case 't':
		return u.tupleToMark()
	case 0x85, 0x86, 0x87:
		return u.makeTuple(len(u.stack) - int(op-0x84))
	case 'a':
		return u.appendFrom(len(u.stack) - 1)
	case 'e':
		mark, err := u.mark()
		if err != nil {
			return err
		}
		return u.appendFrom(mark)
	case '0':
		_, err := u.pop()
		return err
	case '1':
		mark, err := u.mark()
		if err == nil {
			u.stack = u.stack[:mark]
		}
		return err
	case 'N':
		return u.push(cell{})
	case 0x88, 0x89:
		return u.push(cell{kind: kindInt, v: uint64(0x89 - op)})
	case 0x80: // the protocol's number
		_, err := u.take(1)
		return err
	case 0x95: // a frame: a hint to readers of files
		_, err := u.take(8)
		return err
	case 'p', 'q', 'r', 0x94:
		return u.put(op)
	case 'g', 'h', 'j', '2':
		return u.get(op)
	case 'I', 'L', 'F', 'K', 'M', 'J', 'G', 0x8a, 0x8b:
		return u.number(op)
	case 'S', 'V', 'U', 'T', 'X', 'C', 'B', 0x8c, 0x8d, 0x8e:
		return u.pushText(op)
	}
	return fmt.Errorf("%w: opcode %#02x is none of lists, tuples, texts and numbers", errPickle, op)
}

// items returns what a tuple or a list holds, nothing for other values.
func (u *unpickler) items(c cell) []cell {
	switch c.kind {
	case kindTuple:
		return u.tuple[c.v : c.v+uint64(c.n)]
	case kindList:
		return u.lists[c.v]
	}
	return nil
}

// bytes returns a text. It is valid until the next call of run.
func (u *unpickler) bytes(c cell) []byte { return u.text[c.v : c.v+uint64(c.n)] }

// take returns the next n bytes.
func (u *unpickler) take(n int) ([]byte, error) {
	if n < 0 || n > len(u.src) {
		return nil, errShort
	}
	b := u.src[:n]
	u.src = u.src[n:]
	return b, nil
}

// unsigned reads a little-endian number of n bytes, at most 8.
func (u *unpickler) unsigned(n int) (uint64, error) {
	b, err := u.take(n)
	if err != nil {
		return 0, err
	}
	var le [8]byte
	copy(le[:], b)
	return binary.LittleEndian.Uint64(le[:]), nil
}

// textLine returns the bytes before the next newline.
func (u *unpickler) textLine() ([]byte, error) {
	i := bytes.IndexByte(u.src, '\n')
	if i < 0 {
		return nil, errShort
	}
	b := u.src[:i]
	u.src = u.src[i+1:]
	return b, nil
}

// count takes n cells off the bound.
func (u *unpickler) count(n int) error {
	if u.cells += n; u.cells > cmp.Or(u.most, maxCells) {
		return errManyVals
	}
	return nil
}

func (u *unpickler) push(c cell) error {
	u.stack = append(u.stack, c)
	return u.count(1)
}

func (u *unpickler) pop() (cell, error) {
	n := len(u.stack) - 1
	if n < u.base() {
		return cell{}, errStack
	}
	c := u.stack[n]
	u.stack = u.stack[:n]
	return c, nil
}

// base is the height of the stack that opcodes must not reach below: values
// under a mark belong to the collection outside.
func (u *unpickler) base() int {
	if n := len(u.marks); n > 0 {
		return u.marks[n-1]
	}
	return 0
}

// mark removes the last mark and returns its height.
func (u *unpickler) mark() (int, error) {
	if len(u.marks) == 0 {
		return 0, fmt.Errorf("%w: an opcode finds no mark", errPickle)
	}
	height := u.base()
	u.marks = u.marks[:len(u.marks)-1]
	return height, nil
}

func (u *unpickler) tupleToMark() error {
	mark, err := u.mark()
	if err != nil {
		return err
	}
	return u.makeTuple(mark)
}

// makeTuple replaces what stands on the stack from the given height on.
func (u *unpickler) makeTuple(from int) error {
	if from < u.base() {
		return errStack
	}
	items := u.stack[from:]
	c := cell{kind: kindTuple, n: uint32(len(items)), v: uint64(len(u.tuple))}
	u.tuple = append(u.tuple, items...)
	u.stack = u.stack[:from]
	return errors.Join(u.count(int(c.n)), u.push(c))
}

// list pushes a new list: empty, or of what stands above the mark.
func (u *unpickler) list(marked bool) error {
	from := len(u.stack)
	if marked {
		mark, err := u.mark()
		if err != nil {
			return err
		}
		from = mark
	}
	items := append([]cell(nil), u.stack[from:]...)
	u.stack = u.stack[:from]
	u.lists = append(u.lists, items)
	return errors.Join(u.count(len(items)+1),
		u.push(cell{kind: kindList, v: uint64(len(u.lists) - 1)}))
}

// appendFrom appends what stands on the stack from the given height on to the
// list below it.
func (u *unpickler) appendFrom(from int) error {
	if from-1 < u.base() || from > len(u.stack) || u.stack[from-1].kind != kindList {
		return fmt.Errorf("%w: an append finds no list", errPickle)
	}
	items := u.stack[from:]
	list := &u.lists[u.stack[from-1].v]
	*list = append(*list, items...)
	u.stack = u.stack[:from]
	return u.count(len(items))
}

// farCost is what a value behind a gap of the memo counts for, in cells.
const farCost = 4

// put remembers the top of the stack. Numbers in the memo count up in what is
// written by programs; the oldest C implementation starts at 1, and Python's
// optimizer leaves the numbers out that are never asked for.
func (u *unpickler) put(op byte) error {
	i, err := uint64(len(u.memo)+len(u.far)), error(nil)
	if op != 0x94 {
		i, err = u.memoNumber(op, 'p', 'q')
	}
	if err != nil {
		return err
	}
	if len(u.stack) <= u.base() {
		return errStack
	}
	top := u.stack[len(u.stack)-1]
	if i > uint64(len(u.memo))+1 {
		if u.far == nil {
			u.far = make(map[uint64]cell)
		}
		u.far[i] = top
		return u.count(farCost)
	}
	for n := uint64(len(u.memo)); n <= i; n++ {
		u.memo = append(u.memo, u.far[n])
		delete(u.far, n)
		if err := u.count(1); err != nil {
			return err
		}
	}
	u.memo[i] = top
	return nil
}

// get pushes a remembered value, or the top of the stack once more.
func (u *unpickler) get(op byte) error {
	if op == '2' {
		if len(u.stack) <= u.base() {
			return errStack
		}
		return u.push(u.stack[len(u.stack)-1])
	}
	i, err := u.memoNumber(op, 'g', 'h')
	if err != nil {
		return err
	}
	if i < uint64(len(u.memo)) {
		return u.push(u.memo[i])
	}
	if c, ok := u.far[i]; ok {
		return u.push(c)
	}
	return fmt.Errorf("%w: number %d of the memo was never put there", errPickle, i)
}

// memoNumber reads the operand of a memo opcode: a decimal line, one byte, or
// four.
func (u *unpickler) memoNumber(op, decimal, short byte) (uint64, error) {
	switch op {
	case decimal:
		line, err := u.textLine()
		if err != nil {
			return 0, err
		}
		n, err := strconv.ParseUint(string(line), 10, 32)
		if err != nil {
			return 0, fmt.Errorf("%w: %.20q is no number of the memo", errPickle, line)
		}
		return n, nil
	case short:
		return u.unsigned(1)
	}
	return u.unsigned(4)
}

// number pushes a number.
func (u *unpickler) number(op byte) error {
	switch op {
	case 'I', 'L', 'F':
		line, err := u.textLine()
		if err != nil {
			return err
		}
		return u.decimal(op, line)
	case 'K':
		return u.fixed(1)
	case 'M':
		return u.fixed(2)
	case 'J':
		n, err := u.unsigned(4)
		return errors.Join(err, u.push(cell{kind: kindInt, v: uint64(int32(n))}))
	case 'G':
		b, err := u.take(8)
		if err != nil {
			return err
		}
		return u.push(cell{kind: kindFloat, v: binary.BigEndian.Uint64(b)})
	case 0x8a:
		return u.long(1)
	}
	return u.long(4)
}

// fixed pushes an unsigned number of n bytes.
func (u *unpickler) fixed(n int) error {
	v, err := u.unsigned(n)
	return errors.Join(err, u.push(cell{kind: kindInt, v: v}))
}

// long pushes a signed number of any length, whose length has size bytes.
func (u *unpickler) long(size int) error {
	n, err := u.unsigned(size)
	if err != nil {
		return err
	}
	b, err := u.take(int(n))
	if err != nil {
		return err
	}
	if len(b) > 8 {
		return u.push(longCell(b))
	}
	var v int64
	for i := len(b) - 1; i >= 0; i-- {
		v = v<<8 | int64(b[i])
	}
	shift := 64 - 8*len(b)
	return u.push(cell{kind: kindInt, v: uint64(v << shift >> shift)})
}

// longCell is the value of a signed number of more than 8 bytes, the lowest one
// first.
func longCell(b []byte) cell {
	digits := slices.Clone(b)
	slices.Reverse(digits)
	n := new(big.Int).SetBytes(digits)
	if digits[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	if n.IsInt64() { // in more bytes than it needs
		return cell{kind: kindInt, v: uint64(n.Int64())}
	}
	f, _ := n.Float64()
	return largeCell(f)
}

// largeCell is the value of an integer beyond 64 bits: the nearest double, or
// none where it lies beyond all of them.
func largeCell(f float64) cell {
	if math.IsInf(f, 0) {
		return cell{}
	}
	return cell{kind: kindFloat, v: math.Float64bits(f)}
}

// decimal pushes a number written out.
func (u *unpickler) decimal(op byte, line []byte) error {
	if op == 'F' {
		f, err := strconv.ParseFloat(string(line), 64)
		if err != nil {
			return fmt.Errorf("%w: %.40q is no float", errPickle, line)
		}
		return u.push(cell{kind: kindFloat, v: math.Float64bits(f)})
	}
	digits := string(bytes.TrimSuffix(line, []byte("L")))
	n, err := strconv.ParseInt(digits, 10, 64)
	if errors.Is(err, strconv.ErrRange) && strings.Trim(digits[1:], "0123456789") == "" {
		f, _ := strconv.ParseFloat(digits, 64) // infinite where it is beyond all doubles
		return u.push(largeCell(f))
	}
	if err != nil {
		return fmt.Errorf("%w: %.40q is no integer", errPickle, line)
	}
	return u.push(cell{kind: kindInt, v: uint64(n)})
}
