package term

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/zlib"

	"dalmatiner/internal/testkit/golden"
)

// TestGolden reads testdata/terms.txt: lines `hex`, each followed by what it is as JSON, and
// by the bytes that the JSON makes where these are others; or by an error.
func TestGolden(t *testing.T) {
	text, err := os.ReadFile("testdata/terms.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			out.WriteString(line + "\n")
			continue
		}
		if strings.HasPrefix(line, "  ") {
			continue
		}
		out.WriteString(line + "\n")
		src, err := hex.DecodeString(line)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		plain, err := Normalize(src)
		if err != nil {
			fmt.Fprintf(&out, "  error: %v\n", err)
			continue
		}
		doc := Root(plain).AppendJSON(nil)
		fmt.Fprintf(&out, "  %s\n", doc)
		again, err := AppendFromJSON(nil, doc)
		switch {
		case err != nil:
			fmt.Fprintf(&out, "  error: %v\n", err)
		case !bytes.Equal(again, src):
			fmt.Fprintf(&out, "  %x\n", again)
		}
	}
	golden.Same(t, "testdata/terms.txt", out.String())
}

func TestJSON(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"a":1,"b":[1.5,"x",null,true,[]],"c":{}}`, ""},
		{` 1e3 `, "1000.0"},
		{`[1e-7, 1E300, -0.0]`, "[1e-07,1e+300,-0.0]"},
		{`123456789012345678901234567890`, ""},
		{`"\u00e9\u0000\"\\"`, `"é\u0000\"\\"`},
		{`{"$base64":"/w=="}`, ""},
		{`{"$base64":"aGk="}`, `"hi"`},
		{`{"a":1} {}`, "malformed term: more than one JSON value"},
		{`{"a":1,"a":2}`, `malformed term: the field "a" is given twice`},
		{`{"$base64":"!"}`, "malformed term: $base64: illegal base64 data at input byte 0"},
		{`{"a":1`, "malformed term: JSON that ends too early"},
		{`{"a":tru}`, "malformed term: JSON: invalid character '}' in literal true (expecting 'e')"},
		{``, "malformed term: JSON that ends too early"},
		{"\"\xff\"", "malformed term: JSON that is not UTF-8"},
		{`1e999`, "malformed term: the number 1e999 has no place in 64 bits"},
		{strings.Repeat("9", 1000), "term too large: an integer of 1000 digits, the limit is 614"},
		{strings.Repeat("[", 100), "term too large: it nests deeper than 64 levels"},
		{"[" + strings.Repeat("1,", MaxElements) + "1]", "term too large: more than 65536 values"},
	} {
		if c.want == "" {
			c.want = c.in
		}
		plain, err := AppendFromJSON(nil, []byte(c.in))
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			if _, err := Normalize(plain); err != nil {
				t.Errorf("%.60s: its term: %v", c.in, err)
			}
			got = string(Root(plain).AppendJSON(nil))
		}
		if got != c.want {
			t.Errorf("%.60s\n got %s\nwant %s", c.in, got, c.want)
		}
	}
}

func TestTakenField(t *testing.T) {
	plain, taken, err := AppendObjectFromJSON([]byte("x"),
		[]byte(`{"a":{"time":2},"time":"now","b":1}`), "time")
	if got := string(Root(plain[1:]).AppendJSON(nil)); err != nil || taken != "now" ||
		got != `{"a":{"time":2},"b":1}` {
		t.Errorf("%v %v %s", err, taken, got)
	}
	for _, bad := range []string{`[1]`, `"x"`, `{"time":{}}`, `{"time":null}`} {
		if _, _, err := AppendObjectFromJSON(nil, []byte(bad), "time"); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestBombs gives terms that stand for far more than their bytes.
func TestBombs(t *testing.T) {
	zip := func(size uint32, content []byte) []byte {
		var b bytes.Buffer
		b.Write([]byte{version, tagCompressed})
		_ = binary.Write(&b, binary.BigEndian, size)
		z := zlib.NewWriter(&b)
		_, _ = z.Write(content)
		_ = z.Close()
		return b.Bytes()
	}
	long := AppendText(nil, make([]byte, 1<<24))
	u32 := func(tag byte, n uint32) []byte {
		return binary.BigEndian.AppendUint32([]byte{version, tag}, n)
	}
	for name, c := range map[string]struct {
		term []byte
		want error
		text string
	}{
		"inflates to 16 MiB": {zip(uint32(len(long)), long), ErrTooLarge,
			"16777221 bytes when inflated, the limit is 1048576"},
		"inflates to more than it says": {zip(10, long), ErrMalformed, "another size than its 10 bytes"},
		"inflates to less than it says": {zip(10, []byte{tagNil}), ErrMalformed,
			"another size than its 10 bytes"},
		"says 4 GiB": {zip(math.MaxUint32, nil), ErrTooLarge,
			"4294967295 bytes when inflated"},
		"compressed twice": {zip(6, []byte{tagCompressed, 0, 0, 0, 0, 0}), ErrMalformed,
			"compressed twice"},
		"a 16 MiB atom": {
			append([]byte{version, tagAtomUTF8, 0xff, 0xff}, make([]byte, 1<<24)...), ErrTooLarge,
			"16777220 bytes, the limit is 1048576"},
		"an atom of 65535 bytes": {
			append([]byte{version, tagAtomUTF8, 0xff, 0xff}, make([]byte, 65535)...), ErrTooLarge,
			"an atom of 65535 characters, the limit is 255"},
		"deep lists": {
			append(append([]byte{version}, bytes.Repeat([]byte{tagList, 0, 0, 0, 1}, 100_000)...), tagNil),
			ErrTooLarge, "deeper than 64 levels"},
		"a list of 4 G elements": {u32(tagList, math.MaxUint32), ErrMalformed,
			"4294967296 elements in 0 bytes"},
		"a map of 4 G keys": {u32(tagMap, math.MaxUint32), ErrMalformed,
			"8589934590 elements in 0 bytes"},
		"many elements": {
			append(u32(tagList, 100_000), bytes.Repeat([]byte{tagNil}, 100_001)...), ErrTooLarge,
			"more than 65536 values"},
		"a long binary": {u32(tagBinary, math.MaxUint32), ErrMalformed,
			"it ends inside a value of 4294967300 bytes"},
		"a long integer": {append(u32(tagLargeBig, 300), make([]byte, 301)...),
			ErrTooLarge, "an integer of 300 bytes, the limit is 255"},
	} {
		if _, err := Normalize(c.term); !errors.Is(err, c.want) ||
			!strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %s", name, err, c.text)
		}
	}
	if plain, err := Normalize(zip(3, []byte{tagSmallUTF8, 1, 'x'})); err != nil ||
		string(Root(plain).AppendJSON(nil)) != `"x"` {
		t.Errorf("a small compressed term: %x, %v", plain, err)
	}
}

func TestWalk(t *testing.T) {
	// {atom a: [1, {"x", 2}, "list"], "b": ~c"ab" as a list of bytes}
	plain := []byte{version, tagMap, 0, 0, 0, 2, tagAtom, 0, 1, 'a',
		tagList, 0, 0, 0, 2, tagSmallInt, 7, tagTuple, 2, tagNil, tagMap, 0, 0, 0, 0, tagNil,
		tagBinary, 0, 0, 0, 1, 'b', tagByteList, 0, 2, 'a', 'b'}
	if _, err := Normalize(plain); err != nil {
		t.Fatal(err)
	}
	get := func(v Value, ok bool) string {
		if !ok {
			return "missing"
		}
		return string(v.AppendJSON(nil))
	}
	a, ok := Root(plain).Field("a")
	b, ok2 := Root(plain).Field("b")
	if !ok || !ok2 {
		t.Fatal("a field is missing")
	}
	for i, want := range map[int64]string{-1: "missing", 0: "7", 1: "[[],{}]", 2: "missing",
		math.MaxInt64: "missing"} {
		if got := get(a.Index(i)); got != want {
			t.Errorf("a[%d] is %s, not %s", i, got, want)
		}
	}
	for i, want := range map[int64]string{-1: "missing", 0: "97", 1: "98", 2: "missing"} {
		if got := get(b.Index(i)); got != want {
			t.Errorf("b[%d] is %s, not %s", i, got, want)
		}
	}
	if got := get(a.Field("a")); got != "missing" {
		t.Errorf("a field of a list is %s", got)
	}
	if got := get(Root(plain).Index(0)); got != "missing" {
		t.Errorf("an element of a map is %s", got)
	}
}

func TestCompare(t *testing.T) {
	js := func(s string) Value {
		plain, err := AppendFromJSON(nil, []byte(s))
		if err != nil {
			t.Fatal(err)
		}
		return Root(plain)
	}
	ints := func(s string, n int64, want int) {
		t.Helper()
		if got := js(s).CompareInt(n); got != want {
			t.Errorf("%s with %d: %d", s, n, got)
		}
	}
	ints(`1`, 1, 0)
	ints(`1.0`, 1, 0)
	ints(`9007199254740993`, 9007199254740992, 1)
	ints(`9007199254740992.0`, 9007199254740993, -1)
	ints(`9223372036854775808`, math.MaxInt64, 1)
	ints(`-9223372036854775809`, math.MinInt64, -1)
	ints(`9223372036854775808.0`, math.MaxInt64, 1)
	ints(`-9223372036854775808.0`, math.MinInt64, 0)
	ints(`-1.5`, -1, -1)
	ints(`-0.0`, 0, 0)
	ints(`"1"`, 1, 1)
	ints(`{}`, 1, 1)
	bigs := func(s, n string, want int) {
		t.Helper()
		b, _ := new(big.Int).SetString(n, 10)
		if got := js(s).CompareBig(b); got != want {
			t.Errorf("%s with %s: %d", s, n, got)
		}
	}
	bigs(`18446744073709551615`, "18446744073709551615", 0)
	bigs(`18446744073709551614`, "18446744073709551615", -1)
	bigs(`18446744073709551615.0`, "18446744073709551615", 1)
	bigs(`18446744073709551616.0`, "18446744073709551616", 0)
	bigs(`-1e300`, "-18446744073709551616", -1)
	bigs(`5`, "-18446744073709551616", 1)
	bigs(`"1"`, "18446744073709551615", 1)
	floats := func(s string, f float64, want int) {
		t.Helper()
		if got := js(s).CompareFloat(f); got != want {
			t.Errorf("%s with %g: %d", s, f, got)
		}
	}
	floats(`1`, 1, 0)
	floats(`1`, 1.5, -1)
	floats(`-1`, -1.5, 1)
	floats(`123456789012345678901234567890`, 1e20, 1)
	floats(`-123456789012345678901234567890`, 1e300, -1)
	floats(`[]`, 1e300, 1)
	for s, want := range map[string]int{`"b"`: 0, `"a"`: -1, `"ba"`: 1, `1`: -1, `[]`: -1, `{}`: -1,
		`true`: 1} {
		if got := js(s).CompareText("b"); got != want {
			t.Errorf("%s with b: %d", s, got)
		}
	}
	if js(`true`).CompareText("true") != 0 {
		t.Error("true is not its name")
	}
}
