package plan

import (
	"fmt"
	"slices"
	"strings"

	"dalmatiner/internal/host/suggest"
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/function"
)

// unrecognised is the error for a call of no function: it names those of that
// name, or near ones, and where something is missing the whole call.
func (r *request) unrecognised(pos int, name string, types []function.Type, consts []value) error {
	var known []string
	corrected := ""
	for _, f := range function.Named(name) {
		known = append(known, f.Signature())
		if corrected == "" {
			corrected = r.corrected(pos, f, types, consts)
		}
	}
	msg := fmt.Sprintf("Not recognized function %s(%s).", name, function.TypeList(types))
	switch {
	case known == nil:
		if hint := suggest.Hint(suggest.Nearest(name, slices.Compact(function.Names()))); hint != "" {
			msg = strings.TrimSuffix(msg, ".") + hint
		}
	default:
		msg += " There is " + strings.Join(known, ", ") + "."
	}
	if corrected != "" {
		msg += " Write " + corrected + "."
	}
	return r.errorAt(pos, nil, "%s", msg)
}

// examples are arguments that may be missing.
var examples = map[function.Type]string{function.TypeTime: "1m", function.TypeNumber: "0.5",
	function.TypeInteger: "10", function.TypeFloat: "1.0", function.TypeWord: "previous"}

// corrected returns the call as it might be meant for a function: with the
// arguments that are missing, or with a unit behind a number that is to be a
// time. It is empty where that makes no call of it.
func (r *request) corrected(pos int, f *function.Entry, types []function.Type,
	consts []value) string {
	text := callText(r.q.Text, pos)
	if text == "" || len(types) == 0 || f.Args[0] != types[0] || types[0] != function.TypeMetric &&
		types[0] != function.TypeEvents {
		return ""
	}
	last := len(types) - 1
	for i, t := range types {
		if i >= len(f.Args) || !f.Args[i].Takes(t) {
			if i == last && i < len(f.Args) && f.Args[i] == function.TypeTime && t == function.TypeInteger &&
				len(consts) > 0 {
				return strings.TrimRight(text[:len(text)-1], " ") + "s)"
			}
			return ""
		}
	}
	text = strings.TrimRight(text[:len(text)-1], " ")
	for _, a := range f.Args[len(types):] {
		text += ", " + examples[a]
	}
	return text + ")"
}

// callText returns the text of a call from pos to its closing parenthesis; empty
// where there is no call, as for an operator, or where it is long.
func callText(text string, pos int) string {
	const most = 200
	depth, quote := 0, byte(0)
	for i := pos; i < min(len(text), pos+most); i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '%':
			return "" // a comment
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 {
				return text[pos : i+1]
			}
			if depth < 0 {
				return ""
			}
		}
	}
	return ""
}

// lonely returns the error for a function of many series that is asked for one,
// which it gives back as it is, where a function over time has the same name: the
// span is missing. A pattern may have one hit, and is none of these.
func (r *request) lonely(c *dql.Call, fn *function.Entry) error {
	if r.opt.Compat || fn.Kind != function.KindCombine || len(c.Args) != 1 {
		return nil
	}
	over, ok := function.Find(c.Name, []function.Type{function.TypeMetric, function.TypeTime})
	if s, isSelect := c.Args[0].(*dql.Select); !ok || !isSelect || s.Metric.Parts != nil {
		return nil
	}
	msg := fmt.Sprintf("%s of one series is that series: the span of time is missing", c.Name)
	if text := r.corrected(c.Pos(), over, []function.Type{function.TypeMetric}, nil); text != "" {
		msg += ", as in " + text
	}
	return r.errorAt(c.Pos(), nil, "%s; %s over many series takes several, or a pattern with *", msg,
		c.Name)
}
