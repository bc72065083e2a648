package load

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/api/eventjson"
	"dalmatiner/internal/model/term"
)

func isFailing(r *Request) bool { return r.Status == 503 }

// answer is what a store that has all events says of those that are failing.
func answer(t *testing.T, e *Events) (string, int) {
	var list []string
	for i := range e.N {
		if r := e.At(i); isFailing(&r) {
			body := strings.Replace(string(e.AppendLine(nil, i)), fmt.Sprintf(`"time":%d,`, e.Time(i)), "",
				1)
			list = append(list, fmt.Sprintf(`{"timestamp":%d,"event":%s}`, e.Time(i), body))
		}
	}
	if len(list) < 10 {
		t.Fatalf("%d events are failing", len(list))
	}
	return `{"e":[` + strings.Join(list, ",") + `],"t":1}`, len(list)
}

func TestEventListsAreChecked(t *testing.T) {
	e := NewEvents(2000)
	right, n := answer(t, e)
	if found, err := e.CheckList([]byte(right), isFailing, Told); err != nil || found != n {
		t.Errorf("found %d, %v, want %d", found, err, n)
	}
	first, rest, _ := strings.Cut(strings.TrimPrefix(right, `{"e":[`), `,{"timestamp"`)
	for what, wrong := range map[string]string{
		"one is missing":     `{"e":[{"timestamp"` + rest,
		"one is there twice": `{"e":[` + first + "," + first + `,{"timestamp"` + rest,
		"one at the end":     strings.Replace(right, "],", ","+first+"],", 1),
		"another time":       strings.Replace(right, `"timestamp":`, `"timestamp":1`, 1),
		"another host":       strings.Replace(right, `"web-`, `"wed-`, 1),
		"more":               strings.Replace(right, `"t":1`, `"more":true`, 1),
		"damage": strings.Replace(right, `"t":1`,
			`"damaged":[{"start":1,"end":2,"events":1}]`, 1),
		"no JSON": "{",
		"none":    `{"e":[]}`,
	} {
		if _, err := e.CheckList([]byte(wrong), isFailing, Told); err == nil {
			t.Errorf("%s: the answer is taken for right", what)
		}
	}
}

// The three forms of an event are of the same time, and JSON and term are of the same content.
func TestEventsAreTheSameInEachForm(t *testing.T) {
	e := NewEvents(1000)
	start, end := e.Range()
	last := start.UnixNano() - 1
	for i := range e.N {
		line := e.AppendLine(nil, i)
		body, at, err := eventjson.AppendLine(nil, line, time.Nanosecond)
		if err != nil {
			t.Fatal(err)
		}
		w := e.Term(i)
		if at != e.Time(i) || w.Time != uint64(at) {
			t.Fatalf("event %d is of %d, %d and %d", i, e.Time(i), at, w.Time)
		}
		if json, own := term.Root(body).AppendJSON(nil),
			term.Root(w.Term).AppendJSON(nil); !bytes.Equal(json, own) {
			t.Fatalf("event %d is %s as JSON and %s as a term", i, json, own)
		}
		message := strings.Fields(string(e.AppendSyslog(nil, i)))
		if told, err := time.Parse(time.RFC3339Nano, message[2]); err != nil || told.UnixNano() != at {
			t.Fatalf("event %d is of %d, its message %q: %v", i, at, message, err)
		}
		if at <= last || at >= end.UnixNano() {
			t.Fatalf("event %d is of %d, behind %d", i, at, last)
		}
		last = at
	}
}

func TestSyslogEventsAreRead(t *testing.T) {
	e := &Events{Start: time.Unix(0, 0), N: 1}
	r := e.At(0)
	event := fmt.Sprintf(
		`{"facility":16,"host":%q,"data":{"req@32473":{"status":"%d","bytes":"%d","us":"%d","user":%q,"id":%q}},"message":"%s %s"}`,
		r.Host, r.Status, r.Bytes, r.Micros, r.User, r.ID, r.Method, r.Path)
	if got, err := ToldBySyslog([]byte(event)); err != nil || got != r {
		t.Errorf("%s tells %+v, %v, want %+v", event, got, err, r)
	}
}

func TestEventsOfMinutesAreAll(t *testing.T) {
	e := NewEvents(2000)
	sum := 0.0
	for _, n := range e.PerMinute(func(*Request) bool { return true }) {
		sum += n
	}
	if sum != 2000 {
		t.Errorf("%v events in all minutes, want 2000", sum)
	}
}
