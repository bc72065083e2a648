package events

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"

	"pgregory.net/rapid"
)

// TestDigestsAreThoseOfEvents: digests are those of a list of the events that were stored, whatever
// of them is in files, by which cells time is cut, and what was asked before.
func TestDigestsAreThoseOfEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := newNode(t, buckets.Info{Name: "b"}, buckets.Info{Name: "other"})
		c := Copies{n.s}
		const span = 3 * DigestStep
		start := int64(now) - span
		var all []Event
		for range rapid.IntRange(1, 12).Draw(t, "operations") {
			switch rapid.IntRange(0, 3).Draw(t, "operation") {
			case 0, 1:
				var list []Event
				for range rapid.IntRange(1, 60).Draw(t, "events") {
					e := Event{Time: start + rapid.Int64Range(0, span-1).Draw(t, "time"), Body: []byte("body")}
					copy(e.ID[:], fmt.Sprintf("%010d", len(all)+len(list)))
					list = append(list, e)
				}
				if _, _, err := c.Adopt(1, list); err != nil {
					t.Fatal(err)
				}
				if _, _, err := c.Adopt(2, list); err != nil {
					t.Fatal(err)
				}
				all = append(all, list...)
			case 2:
				n.flush(false)
			case 3:
				cells := Cells{Step: DigestStep}
				if rapid.Bool().Draw(t, "cut") {
					cells = Cells{First: start + rapid.Int64Range(-span, 0).Draw(t, "first"),
						Step:  rapid.Int64Range(DigestStep/50, 2*DigestStep).Draw(t, "step"),
						Hours: rapid.Bool().Draw(t, "hours")}
				}
				from := start + rapid.Int64Range(0, span).Draw(t, "from")
				past := from + rapid.Int64Range(0, span).Draw(t, "past")
				if cells.First == 0 {
					from, past = from/DigestStep*DigestStep, past/DigestStep*DigestStep
				}
				got, gaps, err := c.Digests(context.Background(), 1, from, past, cells)
				if err != nil || len(gaps) > 0 {
					t.Fatal(gaps, err)
				}
				if want := naive(all, from, past, cells); !slices.Equal(got, want) {
					t.Fatalf("from %d to %d, %+v: digests are\n%v\nwant\n%v", from, past, cells, got, want)
				}
			}
		}
	})
}

// naive makes digests of a list.
func naive(all []Event, from, past int64, cells Cells) (list []Digest) {
	for i := range all {
		e := &all[i]
		if e.Time < from || e.Time >= past {
			continue
		}
		start := e.Time - (e.Time-cells.First)%cells.Step
		if hour := e.Time - e.Time%DigestStep; cells.Hours && hour > start {
			start = hour
		}
		at := slices.IndexFunc(list, func(d Digest) bool { return d.Start == start })
		if at < 0 {
			list, at = append(list, Digest{Start: start}), len(list)
		}
		list[at].Events++
		list[at].Sum += hashOf(e)
	}
	slices.SortFunc(list, func(a, b Digest) int { return int((a.Start - b.Start) / 1000) })
	return list
}

// TestCopiesAreInNoAccount: events that another node has received are stored, are in the log, and
// are counted and shown there alone; what is received is judged, and not stored.
func TestCopiesAreInNoAccount(t *testing.T) {
	n := newNode(t, buckets.Info{Name: "b"})
	c := Copies{n.s}
	f, err := n.s.Follow("b", MaxFollow)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list := []Event{{Time: now, Body: []byte("one")}, {Time: -1}, {Time: now - 1, Body: []byte("two")}}
	r, err := c.Receive("b", list)
	if err != nil || len(r.Fresh) != 2 || !slices.Equal(r.From, []int{0, 2}) ||
		r.Counts.Refused[account.BadTimestamp] != 1 || list[0].ID == (ID{}) ||
		r.Fresh[1].ID != list[2].ID {
		t.Fatalf("%+v, %v", r, err)
	}
	if st := n.s.Stats(); st.MemoryEvents != 0 {
		t.Errorf("%d events are stored", st.MemoryEvents)
	}
	for round := range 2 {
		classes, token, err := c.Adopt(1, r.Fresh)
		if err != nil || token.Position == 0 || (classes[0] == Duplicate) != (round == 1) {
			t.Errorf("%v, %v, %v", classes, token, err)
		}
	}
	if st := n.s.Stats(); st.MemoryEvents != 2 || n.account.Total(1).Accepted != 0 {
		t.Errorf("%d events are stored, %+v", st.MemoryEvents, n.account.Total(1))
	}
	if _, err := c.Enter(1, &account.Counts{Accepted: 2}); err != nil ||
		n.account.Total(1).Accepted != 2 {
		t.Errorf("%+v, %v", n.account.Total(1), err)
	}
	c.Show(1, r.Fresh[:1], 3)
	shown, missed, err := f.Next(t.Context())
	if err != nil || len(shown) != 1 || missed != 3 || string(shown[0].Body) != "one" {
		t.Errorf("%v, %d, %v", shown, missed, err)
	}
	if _, _, err := c.Adopt(77, r.Fresh); err == nil {
		t.Error("events of an unknown bucket are stored")
	}
}
