package metric

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestText(t *testing.T) {
	f := func(key, want string) {
		t.Helper()
		if got := Text([]byte(key)); got != want {
			t.Errorf("Text(%q) = %s, want %s", key, got, want)
		}
	}
	f("\x02my\x03key", `'my'.'key'`)
	f("\x00\x01a", `''.'a'`)
	f("\x04it's", `'it\'s'`)
	f("\x02a\\", `'a\\'`)
	f("\x03\xffa\n", `'\xffa\x0a'`)
	f("\x03\xe2\x82\xac", `'€'`)
	f("\xff\x01", `'\=\xff\x01'`)
	f("", ``)
}

func TestKeyLimits(t *testing.T) {
	if _, err := Key(strings.Repeat("x", 256)); err == nil || !strings.Contains(err.Error(), "255") {
		t.Errorf("a part of 256 bytes: %v, want an error that names the limit", err)
	}
	parts := make([]string, 300)
	for i := range parts {
		parts[i] = strings.Repeat("x", 255)
	}
	if _, err := Key(parts...); err == nil || !strings.Contains(err.Error(), "65535") {
		t.Errorf("a key of 76,800 bytes: %v, want an error that names the limit", err)
	}
}

func TestUnescapeKeepsOldEscapes(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got, err := Unescape(text); err != nil || got != want {
			t.Errorf("Unescape(%q) = %q, %v, want %q", text, got, err, want)
		}
	}
	f(`a\'b`, `a'b`)
	f(`\n`, `n`)
	f(`\xzz`, `xzz`)
	f(`\x4`, `x4`)
	f(`\x41`, `A`)
	if _, err := Unescape(`a\`); err != errTrailingEscape {
		t.Errorf("a lone backslash: %v", err)
	}
}

// splitText is the reader's half of the text form, as the query language has
// it: quoted elements joined by dots.
func splitText(text string) (elems []string) {
	for i := 0; i < len(text); i++ {
		start := i + 1
		for i = start; text[i] != '\''; i++ {
			if text[i] == '\\' {
				i++
			}
		}
		elems = append(elems, text[start:i])
		i++
	}
	return elems
}

func TestAnyKeySurvivesItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "key")
		back, err := KeyFromQuoted(splitText(Text(key))...)
		if err != nil || !bytes.Equal(back, key) {
			t.Fatalf("%q -> %s -> %q, %v", key, Text(key), back, err)
		}
	})
}
