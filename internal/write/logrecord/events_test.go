package logrecord

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/model/account"
)

func TestRecordsOfEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := make([]eventfile.Event, rapid.IntRange(0, 20).Draw(t, "events"))
		want := EventsHead{Bucket: rapid.Uint64().Draw(t, "bucket"), Events: uint64(len(list)),
			Minute: rapid.Int64().Draw(t, "minute")}
		for i := range list {
			e := &list[i]
			e.Time = rapid.Int64Range(1, 1<<63-1).Draw(t, "time")
			copy(e.ID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
			e.Body = rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "body")
			if want.Last = max(want.Last, e.Time); i == 0 || e.Time < want.First {
				want.First = e.Time
			}
		}
		c := account.Counts{Accepted: uint64(len(list)), Late: 3}
		c.Refused[account.TooLarge] = 7
		head, body := AppendEvents(nil, want.Bucket, want.Minute, &c, list)
		if h, ok := ParseEventsHead(head); !ok || h != want {
			t.Fatalf("head %+v, want %+v", h, want)
		}
		r, err := Parse(slices.Concat(head, body))
		if err != nil || r.Kind != Events || r.Bucket != want.Bucket || r.Minute != want.Minute ||
			r.Counts != c {
			t.Fatalf("%+v, %v", r, err)
		}
		if !slices.EqualFunc(r.Events, list, func(a, b eventfile.Event) bool {
			return a.Time == b.Time && a.ID == b.ID && bytes.Equal(a.Body, b.Body)
		}) {
			t.Fatalf("%v, want %v", r.Events, list)
		}
		if _, err := Parse(append(slices.Concat(head, body), 0)); err == nil {
			t.Fatal("a byte too many is no damage")
		}
	})
}
