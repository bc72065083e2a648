package filter

import (
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"dalmatiner/internal/model/term"
	"dalmatiner/internal/query/dql"
)

func parse(t testing.TB, text string) *Filter {
	t.Helper()
	f, err := FromText(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func event(t testing.TB, doc string) term.Value {
	t.Helper()
	plain, err := term.AppendFromJSON(nil, []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return term.Root(plain)
}

// show prints a filter without the syntax of the language.
func show(f *Filter) string {
	names := map[Op]string{And: "and", Or: "or", Not: "not", Equal: "==", GreaterEqual: ">=",
		LessEqual: "=<", Greater: ">", Less: "<", Matches: "~="}
	if f.Op >= Equal {
		path := ""
		for _, s := range f.Path {
			if s.IsIndex {
				path += fmt.Sprintf("[%d]", s.Index)
			} else {
				path += "." + s.Name
			}
		}
		return path + names[f.Op] + []any{1: fmt.Sprintf("%q", f.Value.Text), 2: fmt.Sprint(f.Value.Int),
			3: fmt.Sprintf("%gf", f.Value.Float), 4: fmt.Sprint(f.Value.Big)}[f.Value.Kind].(string)
	}
	var list []string
	for i := range f.Nodes {
		list = append(list, show(&f.Nodes[i]))
	}
	return names[f.Op] + "(" + strings.Join(list, " ") + ")"
}

func TestQueryForm(t *testing.T) {
	for _, c := range [][2]string{
		{"", "and()"},
		{"a == 1", "and(.a==1)"},
		{"aa.b == 1 AND (c ~= 'x' OR NOT dd[0] > 2) AND e != 'q'",
			`and(.aa.b==1 or(.c~="x" not(.dd[0]>2)) not(.e=="q"))`},
		{"a >= 1 AND (b =< 2 AND c < -3)", "and(.a>=1 .b=<2 .c<-3)"},
		{"a > 1.5 OR b == x AND c == 1", `and(or(.a>1.5f .b=="x") .c==1)`},
		{"a == 1 AND b == 2 OR c == 3", "and(or(and(.a==1 .b==2) .c==3))"},
		{"NOT a == 1 AND b == 2", "and(not(.a==1) .b==2)"},
		{"NOT (a == 1 AND b == 2)", "and(not(and(.a==1 .b==2)))"},
		{"NOT NOT a != 'NOT'", `and(not(not(not(.a=="NOT"))))`},
		{"a['x'] == 1", "error: line 1, column 3: expected an index, found 'x'"},
		{"a == 9007199254740993", "and(.a==9007199254740993)"},
		{"a == 18446744073709551615", "and(.a==18446744073709551615)"},
		{"a > -9223372036854775809", "and(.a>-9223372036854775809)"},
		{"a > " + strings.Repeat("9", 615),
			"error: line 1, column 5: the integer has 615 digits, the limit is 614"},
		{"a = 1", "error: line 1, column 3: expected one of == != >= =< > < ~=, found ="},
		{"a ~= 1", "error: line 1, column 6: expected a value, found \"1\""},
		{"a ~= '('", "error: line 1, column 1: bad filter: error parsing regexp: missing closing ): `(`"},
		{"a ~= '(?=x)'", "error: line 1, column 1: bad filter: error parsing regexp: invalid or " +
			"unsupported Perl syntax: `(?=`"},
		{"a == 1 b", "error: line 1, column 8: expected AND, OR or the end of the filter, found \"b\""},
		{"a ==", "error: line 1, column 5: expected a value: a number, a name or a quoted text, found " +
			"the end of the query"},
	} {
		f, err := FromText(c[0])
		got := ""
		if err != nil {
			got = "error: " + err.Error()
			var where *dql.Error
			if !errors.As(err, &where) {
				t.Errorf("%s: %T", c[0], err)
			}
		} else {
			got = show(f)
		}
		if got != c[1] {
			t.Errorf("%s\n got %s\nwant %s", c[0], got, c[1])
		}
	}
}

// TestVectors reads the filters of the vectors 56 and 57 of the protocol.
func TestVectors(t *testing.T) {
	for _, c := range [][2]string{
		{"0000001c0100000017810000000600000001016100000008020000000000000001", "and(.a==1)"},
		{"0000002d01000000280300000023010000001e86000000130000000101740000000802000000000000000000000002015e78", `and(not(and(.t[0]~="^x")))`},
	} {
		src, err := hex.DecodeString(c[0])
		if err != nil {
			t.Fatal(err)
		}
		f, err := Parse(src)
		if err != nil || show(f) != c[1] {
			t.Errorf("%s: %v, %v", c[0], f, err)
			continue
		}
		if again := f.Append(nil); hex.EncodeToString(again) != c[0] {
			t.Errorf("%s became %x", c[0], again)
		}
	}
}

func TestRefused(t *testing.T) {
	deep := parse(t, "a == 1")
	for range MaxDepth {
		deep = &Filter{Op: Not, Nodes: []Filter{*deep}}
	}
	broad := &Filter{Op: And}
	for range 3 {
		broad.Nodes = append(broad.Nodes, *parse(t, "a ~= '"+strings.Repeat("x", MaxPattern/2)+"'"))
	}
	compare := func(op byte, path, value []byte) []byte {
		f := Filter{Op: And, Nodes: []Filter{{Op: Op(op)}}}
		b := f.Nodes[0].Append(nil)[:5]
		b = append(b, 0, 0, 0, byte(len(path)))
		b = append(append(b, path...), value...)
		b[2], b[3] = byte((len(b)-5)>>8), byte(len(b)-5)
		return b
	}
	a, one := []byte{0, 0, 0, 1, 1, 'a'}, []byte{0, 0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 1}
	if _, err := Parse(compare(0x81, a, one)); err != nil {
		t.Fatal(err)
	}
	for want, src := range map[string][]byte{
		"nests deeper than 1000 levels":       deep.Append(nil),
		"more than 4096 bytes":                broad.Append(nil),
		"65537 bytes, the limit is 65536":     make([]byte, MaxSize+1),
		"it ends inside a length":             {},
		"4294967295 bytes are announced":      {255, 255, 255, 255, 1},
		"operator 87":                         {0, 0, 0, 0, 0x87},
		"0 nodes below operator 03, it has 1": {0, 0, 0, 0, 3},
		"0 nodes below operator 02, it has 2": {0, 0, 0, 0, 2},
		"1 bytes behind its end":              {0, 0, 0, 0, 1, 0},
		"an empty path":                       compare(0x81, nil, one),
		"a regular expression that is no":     compare(0x86, a, one),
		"a path with a float": compare(0x81,
			append([]byte{0, 0, 0, 8, 3}, make([]byte, 8)...), one),
		"a value of type 5":         compare(0x81, a, []byte{0, 0, 0, 0, 5}),
		"an integer without a sign": compare(0x81, a, []byte{0, 0, 0, 0, 4}),
		"sign 2 of an integer":      compare(0x81, a, []byte{0, 0, 0, 1, 4, 2}),
		"an integer of 256 bytes": compare(0x81, a,
			append([]byte{0, 0, 1, 1, 4}, make([]byte, 257)...)),
		"a number of 1 bytes": compare(0x81, a, []byte{0, 0, 0, 1, 2, 0}),
		"a float that is no number": compare(0x81, a,
			[]byte{0, 0, 0, 8, 3, 0x7f, 0xf8, 0, 0, 0, 0, 0, 1}),
		"1 bytes behind a value": compare(0x81, a, append(one[:13:13], 0)),
		"missing closing )":      compare(0x86, a, []byte{0, 0, 0, 1, 1, '('}),
	} {
		if _, err := Parse(src); !errors.Is(err, ErrBad) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	text := strings.Repeat("(", 600) + "a == 1" + strings.Repeat(")", 600)
	if _, err := FromText(text); err == nil || !strings.Contains(err.Error(), "nests deeper than") {
		t.Error(err)
	}
}

func TestMatch(t *testing.T) {
	e := event(t, `{"n":2,"f":1.5,"s":"hello","b":true,"z":null,"l":[1,"x",{"k":2}],"m":{"k":"v"}}`)
	for text, want := range map[string]bool{
		"":         true,
		"n == 2":   true,
		"n == 2.0": true,
		"n < 2":    false, "n =< 2": true, "n > 1": true, "n >= 3": false, "n != 2": false,
		"f > 1": true, "f < 2": true, "f == 1": false,
		"s == hello": true, "s ~= 'l+o$'": true, "s ~= '^ello'": false, "s > 5": true, "s < 5": false,
		"s >= hell":   true,
		"b == 'true'": true, "b == true": true, "z == 'null'": true, "b ~= 'r'": true,
		"n ~= '2'": false, "NOT n ~= '2'": true,
		"l[0] == 1": true, "l[1] == x": true, "l[2].k == 2": true, "l[3] == 1": false,
		"l[-1] == 1": false,
		"m.k == v":   true, "m.x == v": false, "m.x != v": true, "m[0] == v": false, "l.k == 2": false,
		"l > 5": true, "l < a": true, "m < a": true, "n < a": true,
		"n == 1 OR f == 1.5":           true,
		"n == 1 OR f == 1.5 AND s < a": false,
		"n == 1 AND f == 1.5 OR s > a": true,
	} {
		if got := parse(t, text).Match(e); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
	if !parse(t, "a == 1 OR NOT a == 1").Match(event(t, `[]`)) {
		t.Error("a list without fields")
	}
}

func FuzzWire(f *testing.F) {
	for _, s := range []string{"", "a == 1", "NOT (t[0] ~= '^x' OR b.c < 1.5)"} {
		f.Add(parse(f, s).Append(nil))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		w, err := Parse(src)
		if err != nil {
			if !errors.Is(err, ErrBad) {
				t.Fatal(err)
			}
			return
		}
		w.Match(event(t, `{"a":1,"t":["x"],"b":{"c":"d"}}`))
		again := w.Append(nil)
		if string(again) != string(src) {
			t.Fatalf("%x became %x", src, again)
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add("a == 1 AND (b ~= 'x' OR NOT c[0] =< -2.5)")
	f.Fuzz(func(t *testing.T, text string) {
		q, err := FromText(text)
		if err != nil {
			return
		}
		w, err := Parse(q.Append(nil))
		if err != nil {
			return // too large for the wire
		}
		if !reflect.DeepEqual(q.Append(nil), w.Append(nil)) {
			t.Fatalf("%s differs on the wire", text)
		}
	})
}
