package labels

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/model/metric"
)

func pairs(texts ...string) (list []Label) {
	for i := 0; i < len(texts); i += 2 {
		list = append(list, Label{[]byte(texts[i]), []byte(texts[i+1])})
	}
	return list
}

func TestKeys(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, c := range []struct {
		name string
		list []Label
		want string
	}{
		{"up", nil, "'up'"},
		{"up", pairs("job", "node", "instance", "a:1"), "'up'.'instance=a:1'.'job=node'"},
		{"", pairs("job", "node"), "''.'job=node'"},
		{"up", pairs("empty", "", "job", "node"), "'up'.'job=node'"},
		{"grün", pairs("größe", "ß"), "'grün'.'größe=ß'"},
		{"up", pairs("a=b", "c", "a", "b=c", `d\`, "e"), `'up'.'a=b=c'.'a\\=b=c'.'d\\\\=e'`},
		{"up", pairs("a", long[:249]), "'up'.'a=" + long[:249] + "'"},
		{"up", pairs("a", long[:250]),
			"'up'.'a=" + long[:220] + "~9301e48c935fdcaf8518cabb56ab2add'"},
		{"up", pairs("a", strings.Repeat("ß", 200)),
			"'up'.'a=" + strings.Repeat("ß", 110) + "~433fb014a5105ebaeb2b80fe8e0c1d20'"},
		{"up", pairs("ab", strings.Repeat("ß", 200)),
			"'up'.'ab=" + strings.Repeat("ß", 109) + "~b91cb331756d77de5638e36485281a5c'"},
		{long, nil, "'" + long[:222] + "~125237ea2ad7bc7aa5d1b4607dc83554'"},
	} {
		list, ok := Sort(c.list)
		if !ok {
			t.Errorf("%s %s: not a label set", c.name, c.list)
		}
		key, size := AppendKey(nil, list, []byte(c.name))
		if got := metric.Text(key); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
		if want := min(len(c.name), metric.MaxPart) + 1; size != want {
			t.Errorf("%s: the name has %d bytes, want %d", c.name, size, want)
		}
	}
}

func TestWhatIsNoLabelSet(t *testing.T) {
	for _, list := range [][]Label{pairs("a", "1", "a", "1"), pairs("b", "1", "a", "1", "b", "2"),
		pairs("", "1")} {
		if _, ok := Sort(list); ok {
			t.Errorf("%s is taken", list)
		}
	}
}

// Two label sets never have one key, whatever bytes they are of.
func TestKeysAreUnique(t *testing.T) {
	text := rapid.Custom(func(t *rapid.T) []byte {
		word := rapid.SliceOfN(rapid.SampledFrom([]byte("a=\\~\xc3\x9f")), 0, 4).Draw(t, "text")
		return bytes.Repeat(word, rapid.SampledFrom([]int{1, 1, 1, 56, 63, 64, 80}).Draw(t, "times"))
	})
	set := rapid.Custom(func(t *rapid.T) []Label {
		list := []Label{{[]byte("\x00"), text.Draw(t, "name")}} // the first one is the name
		for range rapid.IntRange(0, 3).Draw(t, "labels") {
			list = append(list, Label{text.Draw(t, "label"), text.Draw(t, "value")})
		}
		return list
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := set.Draw(t, "a"), set.Draw(t, "b")
		la, okA := Sort(slices.Clone(a[1:]))
		lb, okB := Sort(slices.Clone(b[1:]))
		if !okA || !okB {
			return
		}
		same := bytes.Equal(a[0].Value, b[0].Value) && slices.EqualFunc(la, lb, func(x, y Label) bool {
			return bytes.Equal(x.Name, y.Name) && bytes.Equal(x.Value, y.Value)
		})
		keyA, _ := AppendKey(nil, la, a[0].Value)
		keyB, _ := AppendKey(nil, lb, b[0].Value)
		if bytes.Equal(keyA, keyB) != same {
			t.Fatalf("%q and %q: %q and %q", a, b, keyA, keyB)
		}
		parts, ok := metric.Parts(keyA)
		if !ok || len(parts) != 1+len(la) {
			t.Fatalf("%q has %d parts, want %d", keyA, len(parts), 1+len(la))
		}
	})
}

// A change has the tags whole, and shares no memory with what it was made of.
func TestChangesAreCopies(t *testing.T) {
	list := pairs("a", strings.Repeat("y", 300), "b", "2")
	key, size := AppendKey(nil, list, []byte("up"))
	c := NewChange(7, "prometheus", key, size, list)
	for _, b := range [][]byte{key, list[0].Value, list[1].Name} {
		clear(b)
	}
	if err := c.Check(); err != nil || c.Bucket != 7 || string(c.Collection) != "prometheus" ||
		string(c.Name) != "\x02up" || !strings.HasPrefix(string(c.Key), "\x02up\xffa=yyy") {
		t.Errorf("%+v: %v", c, err)
	}
	if len(c.Set) != 2 || string(c.Set[0].Value) != strings.Repeat("y", 300) ||
		string(c.Set[1].Name) != "b" {
		t.Errorf("%q", c.Set)
	}
}

func BenchmarkAppendKey(b *testing.B) {
	list := pairs("cluster", "eu-1", "container", "web", "endpoint", "metrics", "instance",
		"10.2.3.4:9100", "job", "node", "namespace", "default", "node", "web0123", "pod",
		"web-5d4f9c-x2x4z", "region", "eu", "service", "web")
	var key []byte
	name := []byte("node_cpu_seconds_total")
	for b.Loop() {
		key, _ = AppendKey(key[:0], list, name)
	}
}
