package filter

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/model/term"
)

// TestEqualsTheModel compares Match with an evaluator over the text of a filter and the JSON of
// an event that shares no code with it.
func TestEqualsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := genJSON(t, 0)
		text, holds := genCond(t, 0)
		var tree any
		in := json.NewDecoder(strings.NewReader(doc))
		in.UseNumber()
		if err := in.Decode(&tree); err != nil {
			t.Fatal(err)
		}
		f, err := FromText(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		want := holds(tree)
		if got := f.Match(eventOf(t, doc)); got != want {
			t.Fatalf("%s on %s: %t, the model says %t", text, doc, got, want)
		}
		w, err := Parse(f.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		if got := w.Match(eventOf(t, doc)); got != want {
			t.Fatalf("%s on %s, over the wire: %t", text, doc, got)
		}
	})
}

var numbers = []string{"0", "1", "-1", "2", "1.0", "1.5", "-1.5", "9007199254740993",
	"9007199254740992.0", "9223372036854775807",
	"9223372036854775808", "18446744073709551615", "18446744073709551616.0", "-9223372036854775809",
	"1234567890123456789012345678901234567890"}
var texts = []string{"", "a", "b", "ab", "1", "true"}
var fields = []string{"a", "b", "c"}

func genJSON(t *rapid.T, depth int) string {
	kinds := 4
	if depth == 0 {
		kinds = 1 // a map
	} else if depth > 3 {
		kinds = 3
	}
	k := rapid.IntRange(0, kinds+1).Draw(t, "kind")
	if depth == 0 {
		k = 4
	}
	switch k {
	case 0:
		return rapid.SampledFrom(append(numbers, "123456789012345678901", "-123456789012345678901")).Draw(
			t, "number")
	case 1:
		return fmt.Sprintf("%q", rapid.SampledFrom(texts).Draw(t, "text"))
	case 2:
		return rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "atom")
	case 3, 5:
		var list []string
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			list = append(list, genJSON(t, depth+1))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	var list []string
	for _, name := range fields {
		if rapid.IntRange(0, 3).Draw(t, "there") > 0 {
			list = append(list, fmt.Sprintf("%q:%s", name, genJSON(t, depth+1)))
		}
	}
	return "{" + strings.Join(list, ",") + "}"
}

// genCond returns a condition as text, and what it means.
func genCond(t *rapid.T, depth int) (string, func(any) bool) {
	if depth < 4 {
		switch rapid.IntRange(0, 5).Draw(t, "form") {
		case 0:
			s, f := genCond(t, depth+1)
			return "NOT (" + s + ")", func(e any) bool { return !f(e) }
		case 1, 2:
			// A chain has no precedence: it is read from left to right.
			s, f := genCond(t, depth+1)
			s = "(" + s + ")"
			for range rapid.IntRange(1, 3).Draw(t, "chain") {
				s2, f2 := genCond(t, depth+1)
				left := f
				if rapid.Bool().Draw(t, "and") {
					s, f = s+" AND ("+s2+")", func(e any) bool { return left(e) && f2(e) }
				} else {
					s, f = s+" OR ("+s2+")", func(e any) bool { return left(e) || f2(e) }
				}
			}
			return s, f
		}
	}
	path := rapid.SampledFrom(fields).Draw(t, "field")
	steps := []any{path}
	for range rapid.IntRange(0, 2).Draw(t, "steps") {
		if rapid.Bool().Draw(t, "index") {
			i := rapid.IntRange(-1, 2).Draw(t, "i")
			path, steps = fmt.Sprintf("%s[%d]", path, i), append(steps, i)
		} else {
			name := rapid.SampledFrom(fields).Draw(t, "name")
			path, steps = path+"."+name, append(steps, name)
		}
	}
	op := rapid.SampledFrom([]string{"==", "!=", ">=", "=<", ">", "<", "~="}).Draw(t, "op")
	if op == "~=" {
		pattern := rapid.SampledFrom([]string{"a", "^b$", "a|1", "e$"}).Draw(t, "pattern")
		return fmt.Sprintf("%s ~= '%s'", path, pattern), func(e any) bool {
			v, ok := walk(e, steps)
			_, text := rank(v)
			return ok && text != nil && regexp.MustCompile(pattern).MatchString(*text)
		}
	}
	var val any
	text := rapid.SampledFrom(numbers).Draw(t, "value")
	if val = json.Number(text); rapid.Bool().Draw(t, "is text") {
		s := rapid.SampledFrom(texts).Draw(t, "text")
		val, text = s, "'"+s+"'"
	}
	return path + " " + op + " " + text, func(e any) bool {
		v, ok := walk(e, steps)
		if !ok {
			return op == "!="
		}
		c := order(v, val)
		return map[string]bool{"==": c == 0, "!=": c != 0, ">=": c >= 0, "=<": c <= 0, ">": c > 0,
			"<": c < 0}[op]
	}
}

func walk(v any, steps []any) (any, bool) {
	for _, s := range steps {
		switch s := s.(type) {
		case string:
			m, _ := v.(map[string]any)
			next, ok := m[s]
			if !ok {
				return nil, false
			}
			v = next
		case int:
			l, _ := v.([]any)
			if s < 0 || s >= len(l) {
				return nil, false
			}
			v = l[s]
		}
	}
	return v, true
}

// rank gives numbers 1, maps 2, lists 3 and texts 4, as Erlang orders them.
func rank(v any) (int, *string) {
	switch v := v.(type) {
	case json.Number:
		return 1, nil
	case map[string]any:
		return 2, nil
	case []any:
		return 3, nil
	case string:
		return 4, &v
	case bool:
		s := fmt.Sprint(v)
		return 4, &s
	}
	s := "null"
	return 4, &s
}

func order(a, b any) int {
	ra, sa := rank(a)
	rb, sb := rank(b)
	switch {
	case ra != rb:
		return ra - rb
	case ra == 1:
		x, _ := new(big.Rat).SetString(string(a.(json.Number)))
		y, _ := new(big.Rat).SetString(string(b.(json.Number)))
		return x.Cmp(y)
	}
	return strings.Compare(*sa, *sb)
}

func eventOf(t *rapid.T, doc string) term.Value {
	plain, err := term.AppendFromJSON(nil, []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return term.Root(plain)
}
