package term

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"strings"
	"testing"
)

func seedTerms(f *testing.F) {
	text, err := os.ReadFile("testdata/terms.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if b, err := hex.DecodeString(strings.TrimSpace(line)); err == nil && line[0] != ' ' {
			f.Add(b)
		}
	}
}

// FuzzTerm: what Normalize takes can be walked, is JSON, and the JSON is a term again.
func FuzzTerm(f *testing.F) {
	seedTerms(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		plain, err := Normalize(src)
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrTooLarge) &&
				!errors.Is(err, ErrUnsupported) {
				t.Fatalf("an error without a cause: %v", err)
			}
			return
		}
		if again, err := Normalize(plain); err != nil || !bytes.Equal(again, plain) {
			t.Fatalf("a plain term is not plain: %v", err)
		}
		root := Root(plain)
		if rest := root.skip(); len(rest) > 0 {
			t.Fatalf("%d bytes behind the value", len(rest))
		}
		root.CompareInt(1)
		root.CompareBig(big.NewInt(1))
		root.CompareFloat(1.5)
		root.CompareText("a")
		root.Field("a")
		root.Index(1)
		doc := root.AppendJSON(nil)
		if !json.Valid(doc) {
			t.Fatalf("%x gives no JSON: %s", plain, doc)
		}
		back, err := AppendFromJSON(nil, doc)
		if err != nil {
			return // keys of one text, $base64 as a key, too long
		}
		if doc2 := Root(back).AppendJSON(nil); !bytes.Equal(doc, doc2) &&
			!bytes.Contains(doc, []byte(base64Key)) {
			t.Fatalf("%s became %s", doc, doc2)
		}
	})
}

// FuzzJSON: JSON that is taken makes a plain term with the same meaning.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5,-3,null,true,"x\u0000"],"time":"2026-01-01"}`, `[[[]]]`,
		`1e400`, `{"$base64":"AA=="}`, `"\ud800"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		plain, err := AppendFromJSON(nil, doc)
		if err != nil {
			return
		}
		if checked, err := Normalize(plain); err != nil || !bytes.Equal(checked, plain) {
			t.Fatalf("%s gives %x: %v", doc, plain, err)
		}
		if !json.Valid(doc) {
			t.Fatalf("%q was taken", doc)
		}
		if _, _, err := AppendObjectFromJSON(nil, doc, "time"); err == nil &&
			bytes.TrimLeft(doc, " \t\r\n")[0] != '{' {
			t.Fatalf("%q was taken as an object", doc)
		}
	})
}
