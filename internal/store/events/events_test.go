package events

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/term"
	"dalmatiner/internal/testkit/filetest"
)

func spread(n int, from, step int64) (list []Event) {
	for i := range n {
		body := fmt.Appendf(nil, "event %d of %d, and some more text that is the same in all of them", i,
			n)
		for j := range 100 {
			body = append(body, byte(i*j*7919>>3))
		}
		list = append(list, Event{Time: from + int64(i)*step, Body: body})
	}
	return list
}

func TestDamageIsNamedAndLeftOut(t *testing.T) {
	n := newNode(t, buckets.Info{Name: "a"})
	n.write("a", spread(3000, now-3000e6, 1e6))
	n.flush(false)
	path := eventfile.Path(1)
	whole := filetest.Read(t, n.fs, path)
	bad := slices.Clone(whole)
	bad[len(bad)/3] ^= 4
	filetest.Write(t, n.fs, path, bad)
	n.replay(len(n.log))
	got, gaps := n.read("a", 0, now)
	if len(gaps) != 1 || len(got)+int(gaps[0].Events) != 3000 || len(n.damage) == 0 {
		t.Fatalf("%d events, gaps %v, damage %v", len(got), gaps, n.damage)
	}
	for _, e := range got {
		if e.Time >= gaps[0].Start && e.Time < gaps[0].End {
			t.Fatal("an event of the damaged block was given")
		}
	}
	// A merge keeps the gap, and the rest.
	n.write("a", spread(1, now-3000e6, 1)) // older than all: the files overlap
	for range mergeFiles {
		n.write("a", spread(1, now, 1))
		n.flush(false)
	}
	before, gapsBefore := n.read("a", 0, now+1)
	n.merge()
	after, gapsAfter := n.read("a", 0, now+1)
	if !same(before, after) || !slices.Equal(gapsBefore, gapsAfter) || len(n.files) > 1 {
		t.Fatalf("%d events and %v become %d and %v, in %d files", len(before), gapsBefore, len(after),
			gapsAfter, len(n.files))
	}
}

func TestAMissingFileIsAGap(t *testing.T) {
	n := newNode(t, buckets.Info{Name: "a"})
	n.write("a", spread(10, now-1000, 10))
	n.flush(false)
	n.write("a", spread(1, now, 1))
	n.flush(false)
	if err := n.fs.Remove(eventfile.Path(1)); err != nil {
		t.Fatal(err)
	}
	n.replay(len(n.log))
	got, gaps := n.read("a", 0, now+1)
	if want := []Gap{{now - 1000, now - 910 + 1, 10}}; len(got) != 1 || !slices.Equal(gaps, want) {
		t.Fatalf("%d events, gaps %v, want %v", len(got), gaps, want)
	}
	if _, gaps := n.read("a", now-500, now+1); len(gaps) > 0 {
		t.Fatalf("gaps %v in a range that the file had nothing of", gaps)
	}
}

func TestExpiredEventsGo(t *testing.T) {
	n := newNode(t, buckets.Info{Name: "a", TTL: 100}, buckets.Info{Name: "b"})
	n.write("a", spread(10, now-90e9, 1e9))
	n.flush(false)
	set := func(ttl int64) {
		b := n.buckets["a"]
		b.TTL = ttl
		n.buckets["a"] = b
	}
	set(85)
	if got, _ := n.read("a", 0, now); len(got) != 5 {
		t.Fatalf("%d events, want 5", len(got))
	}
	counts, _, err := n.s.Count(context.Background(), "a", now-90e9, now, 90e9)
	if err != nil || counts[0] != 5 {
		t.Fatal(counts, err)
	}
	if w := n.write("a", spread(1, now-86e9, 1)); w.Counts.Refused[account.Expired] != 1 {
		t.Fatalf("%+v", w.Counts)
	}
	set(10)
	n.merge()
	if names, _ := n.fs.List("events"); len(n.files) != 0 || len(names) != 0 {
		t.Fatalf("%d files of expired events are left: %q", len(n.files), names)
	}
}

func TestADeletedBucketLeavesNothing(t *testing.T) {
	n := newNode(t, buckets.Info{Name: "a"}, buckets.Info{Name: "b"})
	n.write("a", spread(10, now, 1))
	n.write("b", spread(10, now, 1))
	n.flush(false)
	n.write("a", spread(10, now, 1))
	f, err := n.s.Follow("a", 0)
	if err != nil {
		t.Fatal(err)
	}
	id := n.buckets["a"].ID
	delete(n.buckets, "a")
	n.s.DeleteBucket(id, "a")
	if _, _, err := f.Next(context.Background()); !errors.Is(err, buckets.ErrUnknown) {
		t.Fatal(err)
	}
	if _, err := n.s.Write("a", spread(1, now, 1)); !errors.Is(err, buckets.ErrUnknown) {
		t.Fatal(err)
	}
	n.write("b", spread(1, now, 1))
	for range 4 {
		n.flush(false)
		n.write("b", spread(1, now, 1))
	}
	n.merge()
	for _, file := range n.files {
		if _, ok := file.RangeOf(id); ok {
			t.Fatal("a merge kept events of a deleted bucket")
		}
	}
	if got, _ := n.read("b", 0, now+100); len(got) != 15 {
		t.Fatalf("%d events of the other bucket", len(got))
	}
}

func TestAFollowerSeesWhatIsStored(t *testing.T) {
	n := newNode(t, buckets.Info{Name: "a"})
	n.write("a", spread(1, now-5, 1))
	f, err := n.s.Follow("a", 0)
	if err != nil {
		t.Fatal(err)
	}
	list := spread(3, now, 1)
	list[1].ID[0] = 1
	n.write("a", list)
	n.write("a", list[1:2]) // a repeat
	got, missed, err := f.Next(context.Background())
	if err != nil || missed != 0 || !same(got, list) {
		t.Fatal(got, missed, err)
	}
	f.Close()
	n.write("a", list)
	n.s.Close()
	if _, err := n.s.Follow("a", 0); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
}

// Two senders send the same events while the store is flushed: each is stored once, and counted
// as accepted or late once.
func TestRepeatsOfTwoSendersAreDropped(t *testing.T) {
	n := newNode(t, buckets.Info{Name: "a"})
	const batches = 50
	var totals [2]account.Counts
	done := make(chan int)
	for sender := range 2 {
		go func() {
			for i := range batches {
				list := spread(20, now-1e6+int64(i%7), 10)
				for j := range list {
					list[j].ID = ID{1, byte(i), byte(j)}
				}
				w, err := n.s.Write("a", list)
				if err != nil {
					t.Error(err)
				}
				totals[sender].Add(&w.Counts)
			}
			done <- sender
		}()
	}
	for left := 2; left > 0; {
		select {
		case <-done:
			left--
		default:
			n.flush(false)
		}
	}
	totals[0].Add(&totals[1])
	got, _ := n.read("a", 0, now)
	if len(got) != batches*20 || totals[0].StoredPoints()-totals[0].Duplicate != batches*20 ||
		totals[0].Duplicate != batches*20 {
		t.Fatalf("%d events are stored, counts %+v", len(got), totals[0])
	}
}

func TestAReadEndsWithItsContext(t *testing.T) {
	n := newNode(t, buckets.Info{Name: "a"})
	n.write("a", spread(2000, now-2000, 1))
	ctx, cancel := context.WithCancel(context.Background())
	seen := 0
	_, err := n.s.Read(ctx, "a", 0, now, func(*Event) error {
		if seen++; seen == 10 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || seen > 10+ctxEvery {
		t.Fatal(seen, err)
	}
	seen = 0
	if _, err := n.s.Read(context.Background(), "a", 0, now, func(*Event) error {
		seen++
		return Stop
	}); err != nil || seen != 1 {
		t.Fatal(seen, err)
	}
	if _, _, err := n.s.Count(context.Background(), "a", 0, now, 1); !errors.Is(err, ErrSteps) {
		t.Fatal(err)
	}
	if _, err := n.s.Read(context.Background(), "x", 0, now, nil); !errors.Is(err,
		buckets.ErrUnknown) {
		t.Fatal(err)
	}
}

// A reader keeps what it has begun to read, while a merge replaces its files.
func TestAReadBesideAMerge(t *testing.T) {
	n := newNode(t, buckets.Info{Name: "a"})
	for range mergeFiles {
		n.write("a", spread(700, now-700, 1))
		n.flush(false)
	}
	var got []Event
	_, err := n.s.Read(context.Background(), "a", 0, now, func(e *Event) error {
		if len(got) == 3 {
			n.merge()
		}
		got = append(got, Event{Time: e.Time, ID: e.ID, Body: bytes.Clone(e.Body)})
		return nil
	})
	if err != nil || len(got) != 700*mergeFiles || !slices.IsSortedFunc(got, func(a, b Event) int {
		return eventfile.Compare(&a, &b)
	}) {
		t.Fatal(len(got), err)
	}
	if names, _ := n.fs.List("events"); len(names) != 1 {
		t.Fatalf("files %q are left", names)
	}
}

func TestPieces(t *testing.T) {
	for _, c := range []struct{ ppf, resolution, want int64 }{
		{60, 1000, int64(time.Minute)}, {1, 1, 1e6},
		{buckets.MaxPoints, buckets.MaxResolution, 1<<63 - 1},
	} {
		if got := Piece(buckets.Info{PPF: c.ppf, Resolution: c.resolution}); got != c.want {
			t.Errorf("%d points of %d ms: %d ns, want %d", c.ppf, c.resolution, got, c.want)
		}
	}
}

// TestClocksThatAreAhead: events too far ahead have the time of arrival, keep their own as a field,
// and are counted; one that the node timed is never late, whatever is newer.
func TestClocksThatAreAhead(t *testing.T) {
	n := newNode(t, buckets.Info{Name: "a"})
	body := func(doc string) []byte {
		out, err := term.AppendFromJSON(nil, []byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	const soon, far = now + int64(time.Minute), now + int64(time.Minute) + 1
	for _, c := range []struct {
		what string
		in   Event
		at   int64
		body string
		late uint64
		sent int64
	}{
		{"as far ahead as may be", Event{Time: soon, Body: body(`{"a":1}`)}, soon, `{"a":1}`, 0, 0},
		{"too far ahead", Event{Time: far, Body: body(`{"a":2}`)}, now, `{"a":2,"sent":"` +
			time.Unix(0, far).UTC().Format(time.RFC3339Nano) + `"}`, 0, far},
		{"one that says when it was sent", Event{Time: far, Body: body(`{"sent":3}`)}, now, `{"sent":3}`,
			0, far},
		{"no map", Event{Time: far, Body: body(`[4]`)}, now, `{"event":[4],"sent":"` +
			time.Unix(0, far).UTC().Format(time.RFC3339Nano) + `"}`, 0, far},
		{"the end of time", Event{Time: math.MaxInt64, Body: body(`{}`)}, now,
			`{"sent":"2262-04-11T23:47:16.854775807Z"}`, 0, math.MaxInt64},
		{"without a time", Event{Body: body(`{"a":5}`)}, now, `{"a":5}`, 0, 0},
		{"of its own time", Event{Time: now, Body: body(`{"a":6}`)}, now, `{"a":6}`, 1, 0},
	} {
		list := []Event{c.in}
		w := n.write("a", list)
		if w.Counts.Accepted+w.Counts.Late != 1 || w.Counts.Late != c.late || w.Ahead.Sent != c.sent ||
			w.Ahead.Events != int(min(c.sent, 1)) {
			t.Errorf("%s: %+v, %+v", c.what, w.Counts, w.Ahead)
		}
		got, _ := n.read("a", 0, math.MaxInt64)
		i := slices.IndexFunc(got, func(e Event) bool { return e.ID == list[0].ID })
		if i < 0 || got[i].Time != c.at || list[0].Time != c.at {
			t.Errorf("%s: event %d of %d, %+v", c.what, i, len(got), list[0])
		} else if text := term.Root(got[i].Body).AppendJSON(nil); string(text) != c.body {
			t.Errorf("%s: %s, want %s", c.what, text, c.body)
		}
	}
	if got := n.s.Stats().Ahead; got != 4 {
		t.Errorf("%d are counted", got)
	}
}
