package eventing

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/store/events"
)

// threeNodes returns three nodes with three copies of everything.
func threeNodes(t *testing.T, timeout time.Duration) *world {
	w := newWorld(t, 1, 3, timeout)
	v := w.ring(1, ring.Active, ring.Active, ring.Active)
	for _, n := range w.nodes {
		n.view.Store(v)
	}
	w.members()
	return w
}

// write writes events at a node, one for each time, and fails the test if any is refused.
func (n *node) write(times []int64, body []byte) {
	n.w.t.Helper()
	list := make([]events.Event, len(times))
	for i, at := range times {
		list[i] = events.Event{Time: at, Body: body}
	}
	got, err := n.e.Write(bucketName, list)
	n.w.must(err)
	if len(got.Refused) > 0 || got.Counts.Accepted+got.Counts.Late != uint64(len(times)) {
		n.w.t.Fatalf("%d events: %+v", len(times), got)
	}
}

// count reads a range and returns how many events there are, and the gaps.
func (n *node) count(start, end int64) (number int, gaps []events.Gap) {
	n.w.t.Helper()
	for _, read := range []func(context.Context, string, int64, int64, func(*events.Event) error) (
		[]events.Gap, error){n.e.Read, n.e.ReadBack} {
		number = 0
		var err error
		gaps, err = read(n.w.t.Context(), bucketName, start, end, func(*events.Event) error {
			number++
			return nil
		})
		n.w.must(err)
	}
	counts, counted, err := n.e.Count(n.w.t.Context(), bucketName, start, end, end-start)
	n.w.must(err)
	if counts[0] != int64(number) || len(counted) != len(gaps) {
		n.w.t.Errorf("Count finds %d events and %d gaps, Read %d and %d", counts[0], len(counted), number,
			len(gaps))
	}
	return number, gaps
}

// TestLongAndMany: the longest events, and many of one moment, are stored and read in parts that
// are short enough.
func TestLongAndMany(t *testing.T) {
	w := threeNodes(t, 20*time.Second)
	at := time.Now().Add(-time.Hour).UnixNano()
	w.nodes[0].write([]int64{at, at + 1, at + 2}, bytes.Repeat([]byte("x"), events.MaxBody))
	for i := range 3 {
		w.nodes[i].write(make([]int64, 0), nil)
		times := make([]int64, 5000)
		for j := range times {
			times[j] = at + 3 // all at once
		}
		w.nodes[i].write(times, []byte(strings.Repeat("y", 100)))
	}
	for _, n := range w.nodes {
		if number, gaps := n.count(at, at+10); number != 15003 || len(gaps) > 0 {
			t.Errorf("%d events, gaps %v", number, gaps)
		}
	}
	p, err := w.nodes[0].e.page(t.Context(), &pageRequest{bucket: 1, limit: 1})
	if err != nil || len(p.list) > 0 {
		t.Errorf("a bucket that is not here has %d events, %v", len(p.list), err)
	}
}

// TestAnotherRing: an owner with another ring takes no events, and does not answer for any, until
// both have one.
func TestAnotherRing(t *testing.T) {
	w := threeNodes(t, time.Second)
	at := time.Now().Add(-time.Hour).UnixNano()
	w.nodes[0].write([]int64{at}, []byte("before"))
	v := w.ring(2, ring.Active, ring.Active, ring.Active)
	for _, n := range w.nodes[1:] {
		n.view.Store(v)
	}
	got, err := w.nodes[0].e.Write(bucketName,
		[]events.Event{{Time: at + 1, Body: []byte("meanwhile")}})
	if err != nil || len(got.Refused) != 1 || got.Refused[0].Why != account.Unconfirmed {
		t.Errorf("%+v, %v", got, err)
	}
	if number, gaps := w.nodes[0].count(at, at+10); number != 2 || len(gaps) == 0 {
		t.Errorf("%d events, gaps %v", number, gaps)
	}
	w.nodes[0].view.Store(v)
	w.members()
	if number, gaps := w.nodes[0].count(at, at+10); number != 2 || len(gaps) > 0 {
		t.Errorf("%d events, gaps %v", number, gaps)
	}
}

// TestAllKnowTheRing: events are acknowledged when all nodes know the ring under which owners have
// them: a node that does not asks the owners of the one before.
func TestAllKnowTheRing(t *testing.T) {
	w := threeNodes(t, time.Second)
	at := time.Now().Add(-time.Hour).UnixNano()
	w.behind.Store(true)
	got, err := w.nodes[0].e.Write(bucketName, []events.Event{{Time: at, Body: []byte("early")}})
	if err != nil || len(got.Refused) != 1 || got.Refused[0].Why != account.Unconfirmed {
		t.Errorf("%+v, %v", got, err)
	}
	w.behind.Store(false)
	w.nodes[0].write([]int64{at + 1}, []byte("then"))
}

// TestDamageOfOneCopy takes nothing from an answer, is no gap, and comparisons make good what it
// took. Damage of two is a gap, though the third has everything.
func TestDamageOfOneCopy(t *testing.T) {
	w := threeNodes(t, 20*time.Second)
	at := time.Now().Add(-time.Hour).UnixNano()
	times := make([]int64, 1000)
	for i := range times {
		times[i] = at + int64(i)*1e6
	}
	w.nodes[0].write(times, []byte("event"))
	for i, n := range w.nodes[:2] {
		w.waitFor("it has its copy, which two of three acknowledge", func() bool {
			return n.ownEvents(at, at+1e10) == 1000
		})
		n.damage()
		for _, reader := range w.nodes {
			if number, gaps := reader.count(at, at+1e10); number != 1000 || len(gaps) > 0 != (i == 1) {
				t.Errorf("with %d damaged copies: %d events, gaps %v", i+1, number, gaps)
			}
		}
	}
	if p, err := w.nodes[0].e.page(t.Context(),
		&pageRequest{bucket: w.nodes[0].bucket(), start: at, end: at + 1e10,
			limit: pageBytes}); err != nil ||
		len(p.gaps) == 0 {
		t.Error("the damage took nothing")
	}
	for _, p := range w.nodes[0].e.peersNow() {
		_, err := w.nodes[0].e.comparison(p, make(map[uint64]halves))
		w.must(err)
	}
	if n := w.nodes[0].ownEvents(at, at+1e10); n != 1000 {
		t.Errorf("after comparisons %d events are here", n)
	}
}

// ownEvents returns how many events of a time are on the node itself.
func (n *node) ownEvents(start, end int64) int {
	q := &pageRequest{bucket: n.bucket(), start: start, end: end, keys: true, limit: pageBytes}
	p, err := n.e.page(n.w.t.Context(), q)
	n.w.must(err)
	return len(p.list)
}

func (n *node) bucket() uint64 {
	info, err := n.store.BucketByName(bucketName)
	n.w.must(err)
	return info.ID
}

// damage flushes, and writes over the blocks of the file of events.
func (n *node) damage() {
	n.w.t.Helper()
	_, err := n.store.Flush(n.w.t.Context())
	n.w.must(err)
	const dir = "/data/events"
	list, err := n.fs.List(dir)
	n.w.must(err)
	if len(list) != 1 {
		n.w.t.Fatalf("files of events: %v", list)
	}
	f, err := n.fs.OpenReadWrite(dir+"/"+list[0], "test")
	n.w.must(err)
	defer f.Close()
	b := make([]byte, 64)
	if _, err := f.ReadAt(b, 64); err != nil && err != io.EOF {
		n.w.must(err)
	}
	for i := range b {
		b[i] ^= 0xff
	}
	_, err = f.WriteAt(b, 64)
	n.w.must(err)
}

// TestATailMissesNothingUnsaid: a live tail has each event of other nodes once, or counts it as
// missed.
func TestATailMissesNothingUnsaid(t *testing.T) {
	w := threeNodes(t, 20*time.Second)
	f, err := w.nodes[2].e.Follow(bucketName, events.MaxFollow)
	w.must(err)
	defer f.Close()
	at := time.Now().UnixNano()
	want := 0
	for i := range 100 {
		w.faults.Store(i >= 10 && i < 90)
		list := []events.Event{{Time: at + int64(i), Body: fmt.Append(nil, i)}}
		got, err := w.nodes[i%2].e.Write(bucketName, list)
		w.must(err)
		want += 1 - len(got.Refused)
	}
	w.faults.Store(false)
	for _, n := range w.nodes[:2] { // what could not be sent goes with the next
		n.write([]int64{at + 1000}, []byte("last"))
		want++
	}
	seen := make(map[string]bool)
	for have := 0; have < want; {
		list, missed, err := f.Next(t.Context())
		w.must(err)
		for _, e := range list {
			if key := string(e.Body) + string(e.ID[:]); seen[key] {
				t.Errorf("%s comes twice", e.Body)
			} else {
				seen[key] = true
			}
		}
		have += len(list) + int(missed)
		if have > want {
			t.Errorf("%d events were written, %d came or were missed", want, have)
		}
	}
}

// TestASilentNode: an answer waits for a node that says nothing only if it is not whole without it,
// whichever of them it is; and a node that is lost as well is a gap.
func TestASilentNode(t *testing.T) {
	w := threeNodes(t, 20*time.Second)
	at := time.Now().Add(-time.Hour).UnixNano()
	w.nodes[0].write([]int64{at, at + 1}, []byte("event"))
	for _, n := range w.nodes {
		w.waitFor("it has its copy, which two of three acknowledge", func() bool {
			return n.ownEvents(at, at+10) == 2
		})
	}
	for i, n := range w.nodes {
		other := w.nodes[(i+1)%3]
		other.silent.Store(true)
		if number, gaps := n.count(at, at+10); number != 2 || len(gaps) > 0 {
			t.Errorf("with a silent node: %d events, gaps %v", number, gaps)
		}
		w.nodes[(i+2)%3].down.Store(true)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if number, gaps := n.count(at, at+10); number != 2 || len(gaps) == 0 {
				t.Errorf("with one that is down as well: %d events, gaps %v", number, gaps)
			}
		}()
		// Read, ReadBack and Count are lost, and what else asks meanwhile
		for counted := false; !counted; {
			select {
			case other.lost <- struct{}{}:
			case <-done:
				counted = true
			}
		}
		other.silent.Store(false)
		w.nodes[(i+2)%3].down.Store(false)
	}
}
