package replication

import (
	"fmt"
	"testing"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

// While a ring changes, a write needs W copies on those who will own it, too: else a read under the
// ring that follows finds none.
func TestAWriteIsOnTheOwnersToCome(t *testing.T) {
	config := ring.Config{Number: 1, Partitions: 1, Copies: 3}
	for n, state := range []ring.State{ring.Active, ring.Active, ring.Leaving, ring.Joining} {
		config.Members = append(config.Members, ring.Member{ID: copyID(byte(n) + 1), Name: fmt.Sprint(n),
			State:  state,
			Tokens: []uint32{uint32(n) << 30}, Protocol: ring.Protocol{Min: 1, Max: 1}})
	}
	view, err := ring.New(config)
	if err != nil {
		t.Fatal(err)
	}
	for other, done := range map[byte]bool{2: true, 3: false} {
		c := New(Config{Self: copyID(1), Boot: 1, W: 2, R: 2, Timeout: 1000, Resend: 100,
			CompareMS: 1 << 40}, &emptyStore{}, view, Time{})
		c.Peer(Time{}, copyID(other), true) // the one that joins and another one are down
		c.asked = nil
		c.Submit(Time{}, 1,
			Batch{Rows: []Row{{Series: metric.SeriesID{1}, Slot: 1, Value: Value{Word: 1}}}})
		sends, _ := c.Take()
		for _, s := range sends {
			switch m := s.Message.(type) {
			case Write:
				c.Receive(Time{}, s.To, WriteReply{Key: m.Key, Counts: Counts{Accepted: 1}})
			case Keeps:
				c.Receive(Time{}, s.To, KeepsReply{Boot: m.Boot, Number: m.Number})
			}
		}
		c.Tick(Time{Steady: 2000})
		c.SyncedUpTo(Time{Steady: 2000}, c.AwaitedPosition())
		_, replies := c.Take()
		if len(replies) != 1 || replies[0].Done != done {
			t.Errorf("copies on 1 and %d: %+v, want confirmed %v", other, replies, done)
		}
	}
}

// A batch under way when n rises needs the W of the ring that it ends under: reads under that ring
// count on it.
func TestAWriteMeetsTheQuorumOfTheRingItEndsUnder(t *testing.T) {
	ringOf := func(number uint64, copies, next int) *ring.View {
		config := ring.Config{Number: number, Partitions: 1, Copies: copies, NextCopies: next}
		for n := range byte(2) {
			config.Members = append(config.Members, ring.Member{ID: copyID(n + 1), Name: fmt.Sprint(n),
				State:  ring.Active,
				Tokens: []uint32{uint32(n) << 30}, Protocol: ring.Protocol{Min: 1, Max: 1}})
		}
		view, err := ring.New(config)
		if err != nil {
			t.Fatal(err)
		}
		return view
	}
	rising := ringOf(1, 1, 2)
	c := New(Config{Self: copyID(1), Boot: 1, W: 1, NextW: 2, R: 1, Timeout: 1000, Resend: 100,
		CompareMS: 1 << 40}, &emptyStore{}, rising, Time{})
	c.Peer(Time{}, copyID(2), true)
	c.asked = nil
	c.Submit(Time{}, 1,
		Batch{Rows: []Row{{Series: metric.SeriesID{1}, Slot: 1, Value: Value{Word: 1}}}})
	keys := make(map[ring.ID]Key)
	sends, _ := c.Take()
	for _, s := range sends {
		if w, ok := s.Message.(Write); ok {
			keys[s.To] = w.Key
		}
	}
	acknowledged := func() bool {
		c.SyncedUpTo(Time{}, c.AwaitedPosition())
		sends, replies := c.Take()
		for _, s := range sends {
			if m, ok := s.Message.(Keeps); ok {
				c.Receive(Time{}, s.To, KeepsReply{Boot: m.Boot, Number: m.Number})
			}
		}
		_, more := c.Take()
		return len(replies)+len(more) > 0
	}
	now := rising.Owners(nil, 0, ring.Current, 1)[0]
	c.Receive(Time{}, now, WriteReply{Key: keys[now], Counts: Counts{Accepted: 1}})
	c.Ring(Time{}, ringOf(2, 2, 0), Quorums{R: 1, W: 2})
	if acknowledged() {
		t.Error("acknowledged with one copy of two")
	}
	for id, key := range keys {
		c.Receive(Time{}, id, WriteReply{Key: key, Counts: Counts{Accepted: 1}})
	}
	if !acknowledged() {
		t.Error("not acknowledged with both copies")
	}
}
