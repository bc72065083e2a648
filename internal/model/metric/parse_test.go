package metric

import (
	"bytes"
	"testing"
)

func TestParseText(t *testing.T) {
	web, err := Key("web", "1")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"web.1", "'web'.'1'", "'web'.1"} {
		if got, err := ParseText(text); err != nil || !bytes.Equal(got, web) {
			t.Errorf("%s: %x, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ".", "a.", "a..b", "'a", `'a\'`, "'a'b", "a'b", "'a'.", `\=x`} {
		if got, err := ParseText(text); err == nil {
			t.Errorf("%q is taken for %x", text, got)
		}
	}
}

// Every key survives its text; what is no text is an error.
func FuzzParseText(f *testing.F) {
	f.Add([]byte("\x03web\x011"), "'a'.b")
	f.Add([]byte("\x05raw"), `'\=\x05'`)
	f.Add([]byte{0, 2, '\'', '\\'}, `'\''`)
	f.Fuzz(func(t *testing.T, key []byte, text string) {
		if len(key) > 0 && len(key) <= MaxKey {
			if got, err := ParseText(Text(key)); err != nil || !bytes.Equal(got, key) {
				t.Errorf("%s is read as %x, %v", Text(key), got, err)
			}
		}
		if got, err := ParseText(text); err == nil && len(got) > MaxKey {
			t.Errorf("%q is a key of %d bytes", text, len(got))
		}
	})
}
