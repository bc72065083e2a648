package dql

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// keywords cannot stand for a name unless quoted or directly after a dot.
var keywords = [...]string{
	"SELECT", "BUCKET", "LAST", "AS", "FROM", "ALIAS", "METADATA", "LIKE", "BETWEEN", "NOW", "AGO",
	"AND",
	"OR", "AFTER", "BEFORE", "FOR", "WHERE", "SHIFT", "GROUP", "BY", "USING", "NOT", "ALL", "EVENTS",
	"TOP", "BOTTOM",
}

func isKeyword(word string) bool {
	for _, k := range keywords {
		if strings.EqualFold(word, k) {
			return true
		}
	}
	return false
}

func (t token) is(keyword string) bool {
	return t.kind == tokWord && strings.EqualFold(t.text, keyword)
}

func (t token) isOp(op string) bool { return t.kind == tokOperator && t.text == op }

// isName reports whether t can be a name. A unit can: the grammar wants units
// only behind numbers.
func (t token) isName() bool {
	return t.kind == tokQuoted || t.kind == tokPart || t.kind == tokWord && !isKeyword(t.text)
}

// tokens are those of a text, read from the first to the last.
type tokens struct {
	src  string
	list []token // the last one is tokEOF
	next int

	calendar bool // months, years and TZ, which the original does not have
}

func (ts *tokens) peek() token { return ts.list[ts.next] }

// peekAt returns the n-th token ahead; the last token is always tokEOF.
func (ts *tokens) peekAt(n int) token { return ts.list[min(ts.next+n, len(ts.list)-1)] }

// take returns the next token and goes past it, unless it is the last one of all.
func (ts *tokens) take() token {
	t := ts.list[ts.next]
	if t.kind != tokEOF {
		ts.next++
	}
	return t
}

// last returns the token that was taken last.
func (ts *tokens) last() token { return ts.list[ts.next-1] }

func (ts *tokens) errorAt(pos int, format string, args ...any) error {
	return newError(ts.src, pos, nil, format, args...)
}

// expected returns the error for a next token that is not want.
func (ts *tokens) expected(want string) error {
	t := ts.peek()
	hint := ""
	if t.kind == tokWord && isKeyword(t.text) {
		hint = "; a name that equals a keyword needs quotes"
	}
	return ts.errorAt(t.pos, "expected %s, found %s%s", want, t.describe(ts.src), hint)
}

func (ts *tokens) accept(keyword string) bool {
	if ts.peek().is(keyword) {
		ts.next++
		return true
	}
	return false
}

func (ts *tokens) acceptOp(op string) bool {
	if ts.peek().isOp(op) {
		ts.next++
		return true
	}
	return false
}

func (ts *tokens) expectOp(op string) error {
	if !ts.acceptOp(op) {
		return ts.expected("'" + op + "'")
	}
	return nil
}

func (ts *tokens) expectWord(keyword string) error {
	if !ts.accept(keyword) {
		return ts.expected(keyword)
	}
	return nil
}

// name reads one name; what says which in errors.
func (ts *tokens) name(what string) (string, error) {
	t := ts.peek()
	if t.kind == tokDate {
		return "", ts.doubleQuoted(ts.next)
	}
	if !t.isName() {
		return "", ts.expected(what)
	}
	ts.next++
	if t.kind == tokQuoted {
		return unescape(ts.src, t.pos, t.text)
	}
	return t.text, nil
}

// digits reads the digits of an integer and an optional sign before them.
func (ts *tokens) digits(what string) (t token, text string, err error) {
	sign := ""
	t = ts.peek()
	if (t.isOp("-") || t.isOp("+")) && ts.peekAt(1).kind == tokInt {
		sign = t.text
		ts.next++
	}
	t = ts.peek()
	if t.kind != tokInt {
		return t, "", ts.expected(what)
	}
	ts.next++
	return t, sign + t.text, nil
}

// integer reads an integer of 64 bits with an optional sign.
func (ts *tokens) integer(what string) (int64, error) {
	t, text, err := ts.digits(what)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, ts.errorAt(t.pos, "the integer %s is out of range, the limit is %d", t.describe(ts.src),
			int64(math.MaxInt64))
	}
	return n, nil
}

// maxDigits is how many digits an integer of an event may have.
const maxDigits = 614

// largeInteger reads an integer as long as those of events.
func (ts *tokens) largeInteger(what string) (*big.Int, error) {
	t, text, err := ts.digits(what)
	if err != nil {
		return nil, err
	}
	if len(t.text) > maxDigits {
		return nil, ts.errorAt(t.pos, "the integer has %d digits, the limit is %d", len(t.text),
			maxDigits)
	}
	n, _ := new(big.Int).SetString(text, 10)
	return n, nil
}

// joinKeyFollows reports whether a comma and a key of ON come next that is not in parentheses. A
// number that may as well be the next argument, or begin the next field, is none.
func (ts *tokens) joinKeyFollows(inCall bool) bool {
	if !ts.peek().isOp(",") {
		return false
	}
	key, behind := ts.peekAt(1), ts.peekAt(2)
	ends := behind.kind == tokEOF || behind.isOp(",") || behind.isOp(")") ||
		behind.kind == tokWord && isKeyword(behind.text)
	return key.kind == tokDimVar || key.kind == tokInt && ends && !inCall
}
