package dql

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"dalmatiner/internal/host/suggest"
)

// What writers of other query languages write out of habit is an error that
// says how it is written here.

// spelled are units of time as others write them, with how many of ours they are.
var spelled = map[string]struct {
	n    int64
	unit Unit
}{
	"msec": {1, "ms"}, "msecs": {1, "ms"}, "millis": {1, "ms"}, "millisecond": {1, "ms"},
	"milliseconds": {1, "ms"},
	"sec":          {1, "s"}, "secs": {1, "s"}, "second": {1, "s"}, "seconds": {1, "s"},
	"min": {1, "m"}, "mins": {1, "m"}, "minute": {1, "m"}, "minutes": {1, "m"},
	"hr": {1, "h"}, "hrs": {1, "h"}, "hour": {1, "h"}, "hours": {1, "h"},
	"day": {1, "d"}, "days": {1, "d"}, "wk": {1, "w"}, "week": {1, "w"}, "weeks": {1, "w"},
	"mo": {1, "mo"}, "month": {1, "mo"}, "months": {1, "mo"}, "y": {1, "y"}, "yr": {1, "y"},
	"year": {1, "y"}, "years": {1, "y"},
	// in capitals
	"ms": {1, "ms"}, "s": {1, "s"}, "m": {1, "m"}, "h": {1, "h"}, "d": {1, "d"}, "w": {1, "w"},
}

// unknownUnit returns the error for a word right behind a number that is no unit,
// nil where none is. number is the token of the number.
func (ts *tokens) unknownUnit(number token) error {
	t := ts.peek()
	if t.kind != tokWord || t.pos != number.end || strings.ContainsAny(t.text, "0123456789_@-") ||
		isKeyword(t.text) {
		return nil
	}
	text := fmt.Sprintf("%s%s is no span of time: the units are %s", number.text, t.text,
		ts.units("and"))
	if u, ok := spelled[strings.ToLower(t.text)]; ok {
		if u.unit.Varies() && !ts.calendar {
			u.n, u.unit = u.unit.Milliseconds()/Unit("d").Milliseconds(), "d"
		}
		if n, err := strconv.ParseInt(number.text, 10, 64); err == nil && n < MaxTime/u.n {
			text += fmt.Sprintf("; write %d%s", n*u.n, u.unit)
			if t.text == "M" && ts.calendar { // minutes to us, months to others
				text += fmt.Sprintf(" for minutes, %dmo for months", n)
			}
		}
	}
	return ts.errorAt(number.pos, "%s", text)
}

// units names the units of time, with a word before the last one.
func (ts *tokens) units(word string) string {
	if ts.calendar {
		return "ms, s, m, h, d, w, mo " + word + " y"
	}
	return "ms, s, m, h, d " + word + " w"
}

// doubleQuoted returns the error for names in double quotes; the path they are
// in begins with the token start.
func (ts *tokens) doubleQuoted(start int) error {
	var b strings.Builder
	for i := start; i < len(ts.list); i++ {
		t := ts.list[i]
		switch {
		case t.kind == tokDate:
			b.WriteString("'" + strings.NewReplacer(`\"`, `"`, "'", `\'`).Replace(t.text) + "'")
		case t.isName() || t.isOp("*"):
			b.WriteString(ts.src[t.pos:t.end])
		default:
			i = len(ts.list) - 1
			continue
		}
		if i+1 == len(ts.list) || !ts.list[i+1].isOp(".") {
			break
		}
		b.WriteByte('.')
		i++
	}
	return ts.errorAt(ts.peek().pos, "double quotes are for dates, names have single ones: write %s",
		b.String())
}

// starInside returns the error for a star that is not a whole part of a path, nil
// where there is none. The path begins with the token start, the next token is
// behind the part that was read last; first says that this is the first one.
func (ts *tokens) starInside(start int) error {
	last, next := ts.last(), ts.peek()
	if next.pos != last.end {
		return nil
	}
	switch {
	case last.isOp("*") && (next.isName() || next.kind == tokInt):
	case last.isOp("*") || !next.isOp("*"):
		return nil
	case ts.next-start > 1 || ts.peekAt(1).is("BUCKET") || ts.peekAt(1).isOp(".") &&
		ts.peekAt(1).pos == next.end:
	default:
		return nil // a product
	}
	var parts []string
	part, whole := "", true
	end := ts.list[start].pos
	for _, t := range ts.list[start:] {
		if t.kind == tokEOF || t.pos != end || !t.isName() && t.kind != tokInt && !t.isOp("*") &&
			!t.isOp(".") {
			break
		}
		if end = t.end; t.isOp(".") {
			parts = append(parts, part)
			part, whole = "", true
			continue
		}
		if part += ts.src[t.pos:t.end]; t.isOp("*") {
			whole = false
		}
		if !whole {
			part = "*"
		}
	}
	return ts.errorAt(next.pos,
		"a * stands for a whole part of a metric, not for some of its letters: write %s",
		strings.Join(append(parts, part), "."))
}

// undefined returns the error for a name that is neither an alias nor a metric
// with its bucket. call is what it is an argument of, or nil.
func (q *Query) undefined(v *Variable, aliases map[string]Expr, call *Call) error {
	names := make([]string, 0, len(aliases))
	for name := range aliases {
		names = append(names, name)
	}
	if call != nil && len(call.Args) > 1 && call.Args[0] != Expr(v) {
		names = append(names, words[:]...) // an argument may be one of them
	}
	like := q.word(v) + " BUCKET name"
	if call != nil && len(call.Args) == 1 {
		like = fmt.Sprintf("%s(%s, 1m)", call.Name, like)
	}
	return newError(q.Text, v.Pos(), nil,
		"Variable '%s' referenced but not defined! Define it with ALIAS, or write BUCKET or FROM after "+
			"a metric, as in %s%s",
		v.Name, like, suggest.Hint(suggest.Nearest(v.Name, names)))
}

// word returns a name as it stands in the query.
func (q *Query) word(v *Variable) string {
	if strings.HasPrefix(q.Text[v.Pos():], "'") {
		return "'" + v.Name + "'"
	}
	return v.Name
}

// Plausible unix seconds are from 2001 to 2286. As milliseconds they are in the
// first months of 1970.
const (
	firstSeconds = 1_000_000_000
	pastSeconds  = 10_000_000_000
)

// moment is how times stand in messages.
const moment = "2006-01-02 15:04:05"

func utc(ms int64) string { return time.UnixMilli(ms).UTC().Format(moment) }

// CheckUnit returns an *Error for an instant of the query that is plainly meant in seconds:
// from 2001 to 2286 if it were. The message has both readings. For all others it returns nil.
func (q *Query) CheckUnit(i *Instant) error {
	if i.Now || i.Ago != nil || i.Date != "" || i.Milli < firstSeconds || i.Milli >= pastSeconds {
		return nil
	}
	return newError(q.Text, i.Pos, nil,
		`%d is %s UTC, since times are in milliseconds: if seconds are meant, which would be %s UTC, write %d; if 1970 is meant, write "%s"`,
		i.Milli, utc(i.Milli), utc(i.Milli*1000), i.Milli*1000, utc(i.Milli))
}

// finer returns the error for a time that is plainly meant in micro- or
// nanoseconds, nil for others.
func (ts *tokens) finer(t token) error {
	n, err := strconv.ParseInt(t.text, 10, 64)
	if err != nil || n <= MaxTime {
		return nil
	}
	for _, unit := range []struct {
		name string
		per  int64 // ms
	}{{"microseconds", 1000}, {"nanoseconds", 1_000_000}} {
		if ms := n / unit.per; ms/1000 >= firstSeconds && ms/1000 < pastSeconds {
			return ts.errorAt(t.pos,
				"%dms is out of range, times are in milliseconds: if %s are meant, which would be %s UTC, "+
					"write %d", n, unit.name, utc(ms), ms)
		}
	}
	return nil
}
