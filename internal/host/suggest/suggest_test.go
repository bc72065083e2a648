package suggest

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNearNames(t *testing.T) {
	functions := []string{"avg", "mean", "sum", "min", "max", "percentile", "increase", "rate",
		"derivate"}
	for _, c := range []struct{ word, want string }{
		{"agv", "avg"}, {"AVG", "avg"}, {"average", ""}, {"summ", "sum"}, {"percent", "percentile"},
		{"percentil", "percentile"},
		{"derivative", "derivate"}, {"rat", "rate"}, {"zzzz", ""}, {"", ""},
		{strings.Repeat("x", 1000), ""},
	} {
		if got := strings.Join(Nearest(c.word, functions), " "); got != c.want {
			t.Errorf("%.20q: near are %q, want %q", c.word, got, c.want)
		}
	}
	if got := Nearest("web", []string{"web4", "web3", "web1", "web2", "web1"}); !slices.Equal(got,
		[]string{"web1", "web2", "web3"}) {
		t.Errorf("near web: %v", got)
	}
	if got := Hint([]string{"a", "b", "c"}); got != "; did you mean a, b or c?" {
		t.Errorf("hint of three: %q", got)
	}
	if got := Hint(nil) + Hint([]string{"a"}); got != "; did you mean a?" {
		t.Errorf("hints of none and one: %q", got)
	}
}

// The distance is that of the obvious recursion.
func TestDistance(t *testing.T) {
	var slow func(a, b string) int
	slow = func(a, b string) int {
		if len(a) == 0 || len(b) == 0 {
			return len(a) + len(b)
		}
		cost := 1
		if a[0] == b[0] {
			cost = 0
		}
		d := min(slow(a[1:], b)+1, slow(a, b[1:])+1, slow(a[1:], b[1:])+cost)
		if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
			d = min(d, slow(a[2:], b[2:])+1)
		}
		return d
	}
	words := rapid.StringMatching("[abc]{0,6}")
	rapid.Check(t, func(rt *rapid.T) {
		a, b := words.Draw(rt, "a"), words.Draw(rt, "b")
		if got, want := edits(a, b), slow(a, b); got != want {
			rt.Fatalf("%q to %q is %d, want %d", a, b, got, want)
		}
	})
}
