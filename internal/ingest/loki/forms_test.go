package loki

import (
	"testing"

	"dalmatiner/internal/testkit/protomsg"
)

func TestLabels(t *testing.T) {
	list, err := parseLabels(`{a="1", b="x, \"y\"}" ,c=""}`)
	want := [][2]string{{"a", "1"}, {"b", `x, "y"}`}, {"c", ""}}
	if err != nil || len(list) != len(want) {
		t.Fatalf("%q, %v", list, err)
	}
	for i, p := range list {
		if string(p.name) != want[i][0] || string(p.value) != want[i][1] {
			t.Errorf("%q, want %q", p, want[i])
		}
	}
	for _, text := range []string{"", "{", "a=\"1\"", "{a}", "{a=1}", `{="1"}`, `{a="1" "2"}`} {
		if list, err := parseLabels(text); err == nil {
			t.Errorf("%q is %q", text, list)
		}
	}
}

// FuzzForms: no body breaks the readers, and an event is made of every line that is one.
func FuzzForms(f *testing.F) {
	f.Add([]byte(`{"streams":[{"stream":{"a":"b"},"values":[["1","line",{"c":"d"}]]}]}`))
	line := protomsg.Message(nil).Bytes(1, protomsg.Message(nil).Varint(1, 1)).Text(2, "line")
	f.Add([]byte(protomsg.Message(nil).Bytes(1, protomsg.Message(nil).Text(1, `{a="b"}`).
		Bytes(2, line))))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, streams := range []func([]byte) (each, error){jsonStreams, protobufStreams} {
			lines, err := streams(body)
			if err != nil {
				continue
			}
			err = lines(func(e *entry) error {
				if term := e.appendTerm(nil); len(term) < len(e.line) {
					t.Errorf("%q becomes %x", e.line, term)
				}
				return nil
			}, func(error) {})
			if err != nil {
				t.Error(err)
			}
		}
	})
}
