package dql

import (
	"fmt"
	"slices"
	"strings"
)

type kind uint8

const (
	tokEOF      kind = iota
	tokWord          // letter, then letters, digits, _ @ -: a name, a keyword or a unit
	tokPart          // the same characters in any order directly after a dot: always a part
	tokQuoted        // '…', text is what stands between the quotes, still escaped
	tokDate          // "…", likewise
	tokInt           // digits, without a sign
	tokFloat         // digits . digits [exponent]
	tokPosVar        // $1, text is the digits
	tokDimVar        // $name or $'quoted', text is unescaped
	tokOperator      // text is the operator
)

type token struct {
	kind kind
	pos  int // byte offset of the first character
	end  int // byte offset behind the last character
	text string
}

// describe returns how an error message calls t.
func (t token) describe(src string) string {
	if t.kind == tokEOF {
		return "the end of the query"
	}
	const most = 40
	s := src[t.pos:t.end]
	if len(s) > most {
		return fmt.Sprintf("%q…", s[:most])
	}
	if t.kind == tokOperator || t.kind == tokQuoted || t.kind == tokDate {
		return s
	}
	return fmt.Sprintf("%q", s)
}

// operators are listed so that a longer one comes before its prefix.
var operators = [...]string{
	"==", ">=", "=<", "~=", "!=", "=~", "!~", "=", ">", "<",
	"(", ")", ",", ".", "*", "/", ":", "[", "]", "{", "}", "+", "-",
}

type lexer struct {
	src    string
	pos    int
	tokens []token
}

// A token has bytesPerToken and more in most queries, with the blanks, so that their list is made
// once. It begins with tokensAtOnce at most: a long text may be a single token.
const (
	bytesPerToken = 3
	tokensAtOnce  = 256
)

// lex splits src into tokens, in the memory of a list that nobody needs; the
// last one is tokEOF. With an error they are those before the place.
func lex(src string, list []token) ([]token, error) {
	l := &lexer{src: src, tokens: slices.Grow(list[:0], min(len(src)/bytesPerToken+8, tokensAtOnce))}
	for {
		l.skipBlanks()
		if l.pos == len(src) {
			l.emit(tokEOF, l.pos, "")
			return l.tokens, nil
		}
		if err := l.next(); err != nil {
			return l.tokens, err
		}
	}
}

func (l *lexer) emit(k kind, start int, text string) {
	l.tokens = append(l.tokens, token{kind: k, pos: start, end: l.pos, text: text})
}

func (l *lexer) skipBlanks() {
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case c <= ' ' || c == 0x7f:
			l.pos++
		case c == '%':
			if n := strings.IndexByte(l.src[l.pos:], '\n'); n >= 0 {
				l.pos += n
			} else {
				l.pos = len(l.src)
			}
		default:
			return
		}
	}
}

func (l *lexer) next() error {
	start, c := l.pos, l.src[l.pos]
	switch {
	case l.afterDot() && isWordByte(c):
		// Nothing but a part can stand behind a dot, so digits, keywords and
		// units are parts there and need no quotes.
		l.emit(tokPart, start, l.run())
	case isLetter(c):
		l.emit(tokWord, start, l.run())
	case isDigit(c):
		l.number()
	case c == '\'':
		return l.quoted(tokQuoted, c)
	case c == '"':
		return l.quoted(tokDate, c)
	case c == '$':
		return l.variable()
	default:
		for _, op := range operators {
			if strings.HasPrefix(l.src[start:], op) {
				l.pos += len(op)
				l.emit(tokOperator, start, op)
				return nil
			}
		}
		r := []rune(l.src[start:min(start+4, len(l.src))])[0]
		return newError(l.src, start, nil,
			"illegal character %q: names of other than ASCII letters, digits, _ @ and - need quotes, "+
				"'like this'", r)
	}
	return nil
}

// afterDot reports whether the previous token is a dot that ends right here.
func (l *lexer) afterDot() bool {
	n := len(l.tokens)
	return n > 0 && l.tokens[n-1].kind == tokOperator && l.tokens[n-1].text == "." &&
		l.tokens[n-1].end == l.pos
}

func (l *lexer) run() string {
	start := l.pos
	for l.pos < len(l.src) && isWordByte(l.src[l.pos]) {
		l.pos++
	}
	return l.src[start:l.pos]
}

func (l *lexer) digits() int {
	start := l.pos
	for l.pos < len(l.src) && isDigit(l.src[l.pos]) {
		l.pos++
	}
	return l.pos - start
}

// number reads an integer or a float. An exponent needs a fraction before it:
// 1e3 is the integer 1 and the name e3, as in the original.
func (l *lexer) number() {
	start := l.pos
	l.digits()
	k := tokInt
	if l.pos+1 < len(l.src) && l.src[l.pos] == '.' && isDigit(l.src[l.pos+1]) {
		k = tokFloat
		l.pos++
		l.digits()
		if back := l.pos; l.pos < len(l.src) && (l.src[l.pos] == 'e' || l.src[l.pos] == 'E') {
			l.pos++
			if l.pos < len(l.src) && (l.src[l.pos] == '+' || l.src[l.pos] == '-') {
				l.pos++
			}
			if l.digits() == 0 {
				l.pos = back
			}
		}
	}
	l.emit(k, start, l.src[start:l.pos])
}

// quoted reads up to the closing quote; the token's text keeps its escapes.
func (l *lexer) quoted(k kind, quote byte) error {
	start := l.pos
	text, err := l.quotedText(quote)
	if err != nil {
		return err
	}
	l.emit(k, start, text)
	return nil
}

func (l *lexer) quotedText(quote byte) (string, error) {
	start := l.pos
	for l.pos++; l.pos < len(l.src); l.pos++ {
		switch l.src[l.pos] {
		case '\\':
			l.pos++
		case quote:
			text := l.src[start+1 : l.pos]
			l.pos++
			return text, nil
		}
	}
	return "", newError(l.src, start, nil, "this %c is not closed", quote)
}

func (l *lexer) variable() error {
	start := l.pos
	l.pos++
	if l.pos < len(l.src) && l.src[l.pos] == '\'' {
		raw, err := l.quotedText('\'')
		if err != nil {
			return err
		}
		text, err := unescape(l.src, start, raw)
		if err != nil {
			return err
		}
		l.emit(tokDimVar, start, text)
		return nil
	}
	text := l.run()
	if text == "" {
		return newError(l.src, start, nil, "expected a number, a name or a quoted name directly after $")
	}
	if strings.Trim(text, "0123456789") == "" {
		l.emit(tokPosVar, start, text)
	} else {
		l.emit(tokDimVar, start, text)
	}
	return nil
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWordByte(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '_' || c == '@' || c == '-'
}
