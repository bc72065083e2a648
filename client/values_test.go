package client

import (
	"bytes"
	"math"
	"testing"
)

func TestValues(t *testing.T) {
	for _, v := range []any{int64(0), int64(-7), 1.5, math.Inf(1)} {
		var w uint64
		switch v := v.(type) {
		case int64:
			w = Int(v)
		case float64:
			w = Float(v)
		}
		if got := Value(w); got != v {
			t.Errorf("%v came back as %v", v, got)
		}
	}
	for _, w := range []uint64{Unset, Stale} {
		if got := Value(w); got != nil {
			t.Errorf("word %d is %v", w, got)
		}
	}
}

// A term is a map of Erlang with binaries, as docs/protocol.md shows it.
func TestTerm(t *testing.T) {
	got, err := Term([]byte(`{"a":1}`))
	want := []byte("\x83t\x00\x00\x00\x01m\x00\x00\x00\x01aa\x01")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if _, err := Term([]byte("{")); err == nil {
		t.Error("half an object is a term")
	}
}
