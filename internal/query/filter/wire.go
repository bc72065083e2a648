package filter

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"

	"dalmatiner/internal/model/term"
)

// Parse reads a filter in its form on the wire. The filter keeps nothing of src. The error
// wraps ErrBad.
func Parse(src []byte) (*Filter, error) {
	if len(src) > MaxSize {
		return nil, bad("%d bytes, the limit is %d", len(src), MaxSize)
	}
	p := parser{src: src}
	f, err := p.node(0)
	if err == nil && len(p.src) > 0 {
		err = bad("%d bytes behind its end", len(p.src))
	}
	if err != nil {
		return nil, err
	}
	return &f, nil
}

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrBad}, args...)...)
}

type parser struct {
	src []byte
	budget
}

// block takes a u32, as many bytes, and in between the byte of a kind if there is one.
func (p *parser) block(kind bool) (k byte, body []byte, err error) {
	head := 4
	if kind {
		head = 5
	}
	if len(p.src) < head {
		return 0, nil, bad("it ends inside a length")
	}
	n := binary.BigEndian.Uint32(p.src)
	if uint64(n) > uint64(len(p.src)-head) {
		return 0, nil, bad("%d bytes are announced, %d are there", n, len(p.src)-head)
	}
	if kind {
		k = p.src[4]
	}
	body = p.src[head : head+int(n)]
	p.src = p.src[head+int(n):]
	return k, body, nil
}

func (p *parser) node(depth int) (Filter, error) {
	if depth > MaxDepth {
		return Filter{}, bad("it nests deeper than %d levels", MaxDepth)
	}
	op, body, err := p.block(true)
	if err != nil {
		return Filter{}, err
	}
	in := parser{src: body, budget: p.budget}
	f := Filter{Op: Op(op)}
	switch f.Op {
	case And, Or, Not:
		for err == nil && len(in.src) > 0 {
			var n Filter
			n, err = in.node(depth + 1)
			f.Nodes = append(f.Nodes, n)
		}
		if want := map[Op]int{Or: 2, Not: 1}[f.Op]; err == nil && want > 0 && len(f.Nodes) != want {
			err = bad("%d nodes below operator %02x, it has %d", len(f.Nodes), op, want)
		}
	case Equal, GreaterEqual, LessEqual, Greater, Less, Matches:
		err = in.comparison(&f)
	default:
		err = bad("operator %02x", op)
	}
	p.budget = in.budget
	return f, err
}

func (p *parser) comparison(f *Filter) error {
	_, list, err := p.block(false)
	if err != nil {
		return err
	}
	steps := parser{src: list}
	for len(steps.src) > 0 {
		v, err := steps.value()
		if err != nil {
			return err
		}
		switch v.Kind {
		case Text:
			f.Path = append(f.Path, Step{Name: v.Text})
		case Int:
			f.Path = append(f.Path, Step{Index: v.Int, IsIndex: true})
		default:
			return bad("a path with a float")
		}
	}
	if len(f.Path) == 0 {
		return bad("an empty path")
	}
	if f.Value, err = p.value(); err != nil {
		return err
	}
	if len(p.src) > 0 {
		return bad("%d bytes behind a value", len(p.src))
	}
	if f.Op != Matches {
		return nil
	}
	if f.Value.Kind != Text {
		return bad("a regular expression that is no text")
	}
	return p.compile(f)
}

func (p *parser) value() (Value, error) {
	kind, body, err := p.block(true)
	v := Value{Kind: ValueKind(kind)}
	switch {
	case err != nil:
	case v.Kind == Text:
		v.Text = string(body)
	case v.Kind == Big:
		v.Big, err = bigInteger(body)
	case v.Kind != Int && v.Kind != Float:
		err = bad("a value of type %d", kind)
	case len(body) != 8:
		err = bad("a number of %d bytes", len(body))
	case v.Kind == Int:
		v.Int = int64(binary.BigEndian.Uint64(body))
	default:
		if v.Float = math.Float64frombits(binary.BigEndian.Uint64(body)); math.IsNaN(v.Float) {
			err = bad("a float that is no number")
		}
	}
	return v, err
}

// bigInteger reads a sign and the digits of an integer, the highest first.
func bigInteger(body []byte) (*big.Int, error) {
	if len(body) == 0 {
		return nil, bad("an integer without a sign")
	}
	if n := len(body) - 1; n > term.MaxInteger {
		return nil, bad("an integer of %d bytes, the limit is %d", n, term.MaxInteger)
	}
	if body[0] > 1 {
		return nil, bad("sign %d of an integer", body[0])
	}
	n := new(big.Int).SetBytes(body[1:])
	if body[0] == 1 {
		n.Neg(n)
	}
	return n, nil
}

// Append appends the filter in its form on the wire.
func (f *Filter) Append(dst []byte) []byte {
	op := f.Op
	if op == 0 {
		op = And
	}
	mark := len(dst)
	dst = append(dst, 0, 0, 0, 0, byte(op))
	for i := range f.Nodes {
		dst = f.Nodes[i].Append(dst)
	}
	if op >= Equal {
		path := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		for _, s := range f.Path {
			if s.IsIndex {
				dst = Value{Kind: Int, Int: s.Index}.append(dst)
			} else {
				dst = Value{Kind: Text, Text: s.Name}.append(dst)
			}
		}
		binary.BigEndian.PutUint32(dst[path:], uint32(len(dst)-path-4))
		dst = f.Value.append(dst)
	}
	binary.BigEndian.PutUint32(dst[mark:], uint32(len(dst)-mark-5))
	return dst
}

func (v Value) append(dst []byte) []byte {
	n := 8
	switch v.Kind {
	case Text:
		n = len(v.Text)
	case Big:
		n = 1 + len(v.Big.Bytes())
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(n))
	dst = append(dst, byte(v.Kind))
	switch v.Kind {
	case Text:
		return append(dst, v.Text...)
	case Int:
		return binary.BigEndian.AppendUint64(dst, uint64(v.Int))
	case Big:
		sign := byte(0)
		if v.Big.Sign() < 0 {
			sign = 1
		}
		return append(append(dst, sign), v.Big.Bytes()...)
	}
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(v.Float))
}
