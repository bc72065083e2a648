package dql

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// grammar writes random queries, every production of the language in turn.
type grammar struct {
	t    *rapid.T
	ours bool // ON, TZ, months and years, which the original does not have
}

func (g grammar) of(list ...string) string { return rapid.SampledFrom(list).Draw(g.t, "one of") }

func (g grammar) maybe() bool { return rapid.Bool().Draw(g.t, "maybe") }

func (g grammar) list(separator string, most int, one func() string) string {
	var parts []string
	for range rapid.IntRange(1, most).Draw(g.t, "length") {
		parts = append(parts, one())
	}
	return strings.Join(parts, separator)
}

func (g grammar) name() string {
	return g.of("a", "cpu-idle", "m", "x_1", "'two words'", `'it\'s'`, `'\xff'`, "'SELECT'", "''",
		"previous", "d")
}

func (g grammar) part() string { return g.of("b", "7d1a-4f", "last", "5", "@x", "'q'", "s") }

func (g grammar) metric() string {
	m := g.of("a", "'a b'", "load", "m")
	for range rapid.IntRange(0, 3).Draw(g.t, "parts") {
		m += "." + g.part()
	}
	return m
}

func (g grammar) pattern() string {
	return g.of("*", "a.*", "*.b.*", "a.*.7d", "'x'.*.'y'")
}

func (g grammar) span() string {
	simple := g.of("1", "5", "0", "-3", "12") + g.of("", " ") + g.of("ms", "s", "m", "h", "d", "w")
	return g.of(simple, simple, g.of("1", "-3")+g.of("", " ")+g.of("h30m", "w2d0s", "s250ms"))
}

func (g grammar) number() string {
	return g.of("1", "-7", "+3", "0", "1.5", "-0.25", "1.0e-3", "2.5e10", "9007199254740992")
}

func (g grammar) dimension() string {
	return g.of("$host", "$'d c'", "$ns:host", "$'n s':'k'", "$1a")
}

func (g grammar) tag() string { return g.of("site", "'s'", "ddb:part_1", "label:'x y'") }

func (g grammar) cond(depth int) string {
	if depth > 0 {
		switch g.of("and", "or", "not", "group", "leaf") {
		case "not":
			return "NOT " + g.cond(depth-1)
		case "and":
			return g.cond(depth-1) + " AND " + g.cond(depth-1)
		case "or":
			return g.cond(depth-1) + " or " + g.cond(depth-1)
		case "group":
			return "(" + g.cond(depth-1) + ")"
		}
	}
	return g.tag() + g.of("", " = eu", "!='u s'", " NOT x", ` LIKE 'w*\\*'`, " not like w",
		` =~ 'w\d+'`, "!~x")
}

func (g grammar) lookup() string {
	s := g.of("ALL", g.metric()) + g.of(" FROM ", " in ") + g.name()
	if g.maybe() {
		s += " WHERE " + g.cond(3)
	}
	if g.maybe() {
		s += " GROUP BY " + g.list(", ", 3, g.dimension) + " USING " +
			g.of("sum", "avg", "'max'", "'last'")
	}
	return s
}

func (g grammar) selector() string {
	s := g.of("x1", g.metric()+" BUCKET "+g.name(), g.pattern()+" bucket "+g.name(), g.lookup())
	if g.of("no", "no", "shift") == "shift" {
		s += " SHIFT BY " + g.of("10000", "-5", g.span())
	}
	return s
}

func (g grammar) expr(depth int) string {
	if depth == 0 {
		return g.selector()
	}
	sub := func() string { return g.expr(depth - 1) }
	switch g.of("call", "binary", "constant", "group", "selector", "negative") {
	case "call":
		arg := func() string {
			return g.of(sub(), g.span(), g.number(), "linear", "Null",
				g.events()+g.of("", " SHIFT BY 5m", " shift by 10"))
		}
		return g.of("avg", "last", "'f g'", "percentile", "m") + "(" + g.of("", g.list(", ", 3, arg)) +
			")"
	case "binary":
		if g.ours {
			on := g.of("", " ON 1", " on 2, 1", " ON (3)", " ON ("+g.list(", ", 3, g.joinKey)+")",
				" ON 1, "+g.dimension())
			return "((" + sub() + ") " + g.of("+ ", "- ", "* ", "/ ") + g.of(g.selector(), "("+sub()+")") +
				on + ")"
		}
		return sub() + " " + g.of("+", "-", "*", "/") + " " + sub()
	case "constant":
		return g.of(sub()+" * 2 / 4.5", "2 - "+sub(), "("+sub()+" - 1) - 2", "1 + 2 * "+sub())
	case "group":
		return "(" + sub() + ")"
	case "negative":
		return g.selector() + " -1"
	}
	return g.selector()
}

func (g grammar) joinKey() string { return g.of("1", "20", g.dimension()) }

func (g grammar) value() string { return g.of("1", "-2.5", "'t'", "word") }

func (g grammar) event(depth int) string {
	if depth > 0 {
		switch g.of("and", "or", "not", "group", "leaf") {
		case "and":
			return g.event(depth-1) + " AND " + g.event(depth-1)
		case "or":
			return g.event(depth-1) + " OR " + g.event(depth-1)
		case "not":
			return "NOT " + g.event(depth-1)
		case "group":
			return "(" + g.event(depth-1) + ")"
		}
	}
	path := g.of("aa", "aa.b", "dd[0]", "aa.b[2].c", "'q r'[1][2]")
	return path + " " + g.of(g.of("==", ">=", "=<", ">", "<", "!=")+" "+g.value(), "~= 'x'")
}

func (g grammar) events() string {
	s := "EVENTS FROM " + g.name()
	if g.maybe() {
		s += " WHERE " + g.event(3)
	}
	return s
}

func (g grammar) field() string {
	s := g.expr(3)
	if g.of("no", "no", "no", "events") == "events" {
		s = g.events()
	}
	element := func() string { return g.of(g.name(), "$1", "$23", g.dimension()) }
	if g.maybe() {
		s += " AS " + g.list(".", 3, element)
	}
	if g.of("no", "no", "meta") == "meta" {
		s += " METADATA {" + g.list(", ", 3, func() string {
			return g.name() + ": " + g.of(element(), g.number(), "1 + 2 * (3 - 4.5) / -2")
		}) + "}"
	}
	return s
}

func (g grammar) instant() string {
	return g.of("NOW", "1000", "-5", "5m ago", "100 AGO", `"2016-04-19"`,
		`"2016-04-19 12:30:00 +0200"`, `"it's \"x\""`)
}

func (g grammar) query() string {
	s := g.of("SELECT ", "select ", "EXPLAIN SELECT ", "explain Select ") + g.list(", ", 3, g.field)
	s += " ALIAS " + g.of("", "y BUCKET b SHIFT BY 3s AS y2, ") +
		g.of("a.b BUCKET c", "* BUCKET c", "m FROM c") + " AS x1"
	s += g.of(" ", " % a comment\n", "\t\x01")
	span := g.span()
	if g.ours && g.maybe() {
		span = g.of("1mo", "3 mo", "-1y", "1y6mo")
	}
	s += g.of("LAST "+span, "BETWEEN "+g.instant()+" AND "+g.instant(),
		"AFTER "+g.instant()+" FOR "+span, "BEFORE "+g.instant()+" FOR "+span)
	if g.ours {
		s += g.of("", ` TZ "Europe/Zagreb"`, " tz 'x'", " TZ UTC")
	}
	return s + g.of("", "", fmt.Sprintf(" %s %d BY %s(%s)", g.of("TOP", "bottom"), 3,
		g.of("avg", "last", "'max'"), g.of("", "0.9", "1, 2.5")))
}

// Every query that the grammar writes is read, its text reads as the same tree
// and its names are stable, whichever way operators group.
func TestEveryProduction(t *testing.T) {
	for range 10 {
		rapid.Check(t, func(rt *rapid.T) {
			ours := rapid.Bool().Draw(rt, "ours")
			text := grammar{rt, ours}.query()
			q, err := Parse(text)
			if err != nil {
				rt.Fatalf("%s\n%v", text, err)
			}
			again, err := Parse(q.String())
			if err != nil || again.String() != q.String() {
				rt.Fatalf("%s\nis %s\nthen %v, %v", text, q, again, err)
			}
			if !ours {
				if q, err = ParseCompat(text); err != nil {
					rt.Fatalf("to the right: %s\n%v", text, err)
				}
			}
			for i, f := range q.Fields {
				name := Name(f.Expr, math.MaxInt)
				n, err := Parse("SELECT " + name + " LAST 1s")
				if err != nil || Name(n.Fields[0].Expr, math.MaxInt) != name || len(name) == 0 {
					rt.Fatalf("%s\nfield %d is %s\nthen %v, %v", text, i, name, n, err)
				}
			}
		})
	}
}
