package members

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/cluster/ring"
)

func drawStaged(t *rapid.T) []byte {
	var s stagedEntries
	for range rapid.IntRange(0, 6).Draw(t, "entries") {
		c := Change{Action: ring.Action(rapid.IntRange(0, int(ring.SetCopies)).Draw(t, "action"))}
		name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
		switch c.Action {
		case ring.Join:
			c.New = name
		case ring.SetCopies:
			c.Copies = rapid.IntRange(1, 3).Draw(t, "n")
		case ring.Replace:
			c.Node, c.New = name, "new"
		default:
			c.Node = name
		}
		s = s.withEntry(entry{Subject: c.subject(), Clock: rapid.Uint64Range(1, 4).Draw(t, "clock"),
			Gone: rapid.Bool().Draw(t, "gone"), Change: c})
	}
	return mustEncode(s.encode())
}

func drawProgress(t *rapid.T) []byte {
	var p progress
	for range rapid.IntRange(0, 5).Draw(t, "reports") {
		r := report{Node: ring.ID{15: byte(rapid.IntRange(1, 3).Draw(t, "node"))},
			Clock: rapid.Uint64Range(1, 3).Draw(t, "clock"),
			News: News{Left: rapid.IntRange(0, 1).Draw(t, "left"),
				Hints: rapid.IntRange(0, 1).Draw(t, "hints")}}
		b, err := mergeProgress(mustEncode(p.encode()), mustEncode(progress{r}.encode()))
		if err != nil {
			t.Fatal(err)
		}
		if p, err = parseProgress(b); err != nil {
			t.Fatal(err)
		}
	}
	return mustEncode(p.encode())
}

func drawPaused(t *rapid.T) []byte {
	return mustEncode(pauseValue{Clock: rapid.Uint64Range(0, 3).Draw(t, "clock"),
		On: rapid.Bool().Draw(t, "on")}.encode())
}

func drawRests(t *rapid.T) []byte {
	var list []byte
	for range rapid.IntRange(0, 4).Draw(t, "members") {
		one := rests{{Node: ring.ID{15: byte(rapid.IntRange(1, 3).Draw(t, "node"))},
			Clock: rapid.Uint64Range(1, 3).Draw(t, "clock"), On: rapid.Bool().Draw(t, "on")}}
		list = mustEncode(mergeRests(list, mustEncode(one.encode())))
	}
	return mustEncode(mergeRests(list, nil))
}

func mustEncode(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// TestMergesConverge: in whatever order, grouping and repetition values meet, all nodes end with
// the same.
func TestMergesConverge(t *testing.T) {
	for _, v := range Values() {
		draw := map[string]func(*rapid.T) []byte{stagedValue: drawStaged, progressValue: drawProgress,
			pausedValue:      drawPaused,
			maintenanceValue: drawRests}[v.Name]
		t.Run(v.Name, rapid.MakeCheck(func(t *rapid.T) {
			merge := func(a, b []byte) []byte { return mustEncode(v.Merge(a, b)) }
			a, b, c := draw(t), draw(t), draw(t)
			same := func(what string, x, y []byte) {
				if !bytes.Equal(x, y) {
					t.Fatalf("%s:\n%s\n%s", what, x, y)
				}
			}
			same("order", merge(a, b), merge(b, a))
			same("grouping", merge(merge(a, b), c), merge(a, merge(b, c)))
			same("repetition", merge(merge(a, b), b), merge(a, b))
			same("nothing yet", merge(nil, a), merge(a, a))
		}))
	}
}

// TestClearedChangesStayAway: who clears or commits takes away what it has seen, and nothing else.
func TestClearedChangesStayAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		here, err := parseStaged(drawStaged(t))
		if err != nil {
			t.Fatal(err)
		}
		there, err := parseStaged(drawStaged(t))
		if err != nil {
			t.Fatal(err)
		}
		cleared := mustEncode(mergeStaged(mustEncode(here.encode()),
			mustEncode(here.open().markGone().encode())))
		all, err := parseStaged(mustEncode(mergeStaged(cleared, mustEncode(there.encode()))))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all.open() {
			for _, seen := range here.open() {
				if seen.Subject == e.Subject && compareEntries(e, seen) <= 0 {
					t.Fatalf("%+v is back", e)
				}
			}
		}
		for _, e := range there.open() {
			kept := fmt.Sprint(all)
			for _, seen := range here {
				if seen.Subject == e.Subject && compareEntries(seen, e) >= 0 {
					kept = ""
				}
			}
			if kept != "" && !bytes.Contains([]byte(fmt.Sprint(all.open())), []byte(fmt.Sprint(e))) {
				t.Fatalf("%+v was staged elsewhere and is gone from %v", e, all)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`[{"subject":"a","clock":1,"gone":false,"change":{"action":1,"node":"a"}}]`))
	f.Add(
		[]byte(
			`[{"node":"0000000000000000000000000000000f","clock":1,"number":1,"sum":2,"ready":true,"hints":0,"bytes":1,"free":1}]`))
	f.Add([]byte(`{"clock":1,"on":true}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, v := range Values() {
			once, err := v.Merge(b, nil)
			if err != nil {
				continue
			}
			twice, err := v.Merge(once, once)
			if err != nil || !bytes.Equal(once, twice) {
				t.Fatalf("%s: %s became %s: %v", v.Name, once, twice, err)
			}
		}
	})
}
