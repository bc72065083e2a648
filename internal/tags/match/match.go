// Package match tells which texts a pattern means, and looks for its literals first.
package match

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// maxExact is how many values a regular expression may stand for and be looked up as these.
const maxExact = 128

// Matcher tells which values a condition means.
type Matcher struct {
	Exact  [][]byte // these and no others, unless nil; no two are equal
	Pieces [][]byte // these with anything between them, unless nil

	// Else the values that re matches: they have these with something between them, which is
	// found out in much less time.
	re   *regexp.Regexp
	must [][]byte
}

// Match reports whether a value is meant.
func (m *Matcher) Match(value []byte) bool {
	switch {
	case m.Exact != nil:
		return slices.ContainsFunc(m.Exact, func(e []byte) bool { return bytes.Equal(e, value) })
	case m.Pieces != nil:
		return Glob(m.Pieces, value)
	}
	return Glob(m.must, value) && m.re.Match(value)
}

// Glob reports whether value consists of pieces with anything between them.
func Glob(pieces [][]byte, value []byte) bool {
	last := len(pieces) - 1
	if last == 0 {
		return bytes.Equal(value, pieces[0])
	}
	if !bytes.HasPrefix(value, pieces[0]) {
		return false
	}
	value = value[len(pieces[0]):]
	for _, p := range pieces[1:last] {
		at := bytes.Index(value, p)
		if at < 0 {
			return false
		}
		value = value[at+len(p):]
	}
	return bytes.HasSuffix(value, pieces[last])
}

func Regexp(pattern string) (*Matcher, error) {
	if _, err := syntax.Parse(pattern, syntax.Perl); err != nil { // of what was written
		return nil, err
	}
	re, err := regexp.Compile(`^(?s:` + pattern + `)$`)
	if err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(`(?s:`+pattern+`)`, syntax.Perl)
	if err != nil {
		return nil, err
	}
	tree = tree.Simplify()
	if Exact, ok := expand(tree); ok {
		slices.SortFunc(Exact, bytes.Compare)
		return &Matcher{Exact: slices.CompactFunc(Exact, bytes.Equal)}, nil
	}
	m := &Matcher{re: re}
	parts := []*syntax.Regexp{tree}
	if tree.Op == syntax.OpConcat {
		parts = tree.Sub
	}
	if m.Pieces = piecesOf(parts); m.Pieces == nil {
		m.must = literalsOf(parts)
	}
	return m, nil
}

// literalsOf returns the literals among parts of which at least one is none: with anything
// between them they match all that the parts match.
func literalsOf(parts []*syntax.Regexp) [][]byte {
	must := [][]byte{{}}
	for _, p := range parts {
		text, ok := literal(p)
		if !ok {
			must = append(must, []byte{})
			continue
		}
		last := &must[len(must)-1]
		*last = append(*last, text...)
	}
	return must
}

// literal returns the text that an expression is. A character that is no UTF-8 in the pattern
// stands for any such byte.
func literal(re *syntax.Regexp) (text []byte, ok bool) {
	if re.Op != syntax.OpLiteral || re.Flags&syntax.FoldCase != 0 ||
		slices.Contains(re.Rune, utf8.RuneError) {
		return nil, false
	}
	return []byte(string(re.Rune)), true
}

// piecesOf returns the pieces of a pattern that consists of literals and .*, else nil.
func piecesOf(parts []*syntax.Regexp) [][]byte {
	pieces := [][]byte{{}}
	for _, p := range parts {
		for p.Op == syntax.OpCapture {
			p = p.Sub[0]
		}
		if p.Op == syntax.OpStar && p.Sub[0].Op == syntax.OpAnyChar {
			pieces = append(pieces, []byte{})
			continue
		}
		text, ok := literal(p)
		if !ok {
			return nil
		}
		last := &pieces[len(pieces)-1]
		*last = append(*last, text...)
	}
	return pieces
}

// expand returns all texts that an expression matches, if they are few.
func expand(re *syntax.Regexp) (list [][]byte, ok bool) {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return [][]byte{{}}, true
	case syntax.OpLiteral:
		text, ok := literal(re)
		return [][]byte{text}, ok
	case syntax.OpCapture:
		return expand(re.Sub[0])
	case syntax.OpQuest:
		list, ok = expand(re.Sub[0])
		return append(list, []byte{}), ok && len(list) < maxExact
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				if list = append(list, utf8.AppendRune(nil, r)); len(list) > maxExact || r == utf8.RuneError {
					return nil, false
				}
			}
		}
		return list, true
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			more, ok := expand(sub)
			if list = append(list, more...); !ok || len(list) > maxExact {
				return nil, false
			}
		}
		return list, true
	case syntax.OpConcat:
		list = [][]byte{{}}
		for _, sub := range re.Sub {
			ends, ok := expand(sub)
			if !ok || len(list)*len(ends) > maxExact {
				return nil, false
			}
			product := make([][]byte, 0, len(list)*len(ends))
			for _, begin := range list {
				for _, end := range ends {
					product = append(product, slices.Concat(begin, end))
				}
			}
			list = product
		}
		return list, true
	}
	return nil, false
}
