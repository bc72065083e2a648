package replication

import (
	"fmt"
	"testing"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/metric"
)

// While a ring changes, a write needs W copies on those who will own it, too: else a read under the ring that
// follows finds none.
func TestAWriteIsOnTheOwnersToCome(t *testing.T) {
	config := ring.Config{Number: 1, Partitions: 1, Copies: 3}
	for n, state := range []ring.State{ring.Active, ring.Active, ring.Leaving, ring.Joining} {
		config.Members = append(config.Members, ring.Member{ID: copyID(byte(n) + 1), Name: fmt.Sprint(n), State: state,
			Tokens: []uint32{uint32(n) << 30}, Protocol: ring.Protocol{Min: 1, Max: 1}})
	}
	view, err := ring.New(config)
	if err != nil {
		t.Fatal(err)
	}
	for other, done := range map[byte]bool{2: true, 3: false} {
		c := New(Config{Self: copyID(1), Boot: 1, W: 2, R: 2, Timeout: 1000, Resend: 100, CompareMS: 1 << 40}, &blank{}, view, Time{})
		c.Peer(Time{}, copyID(other), true) // the one that joins and another one are down
		c.asked = nil
		c.Submit(Time{}, 1, 0, []Row{{Series: metric.SeriesID{1}, Slot: 1, Value: Value{Word: 1}}}, nil)
		sends, _ := c.Take()
		for _, s := range sends {
			if w, ok := s.Message.(Write); ok {
				c.Receive(Time{}, s.To, Written{Key: w.Key, Counts: Counts{Accepted: 1}})
			}
		}
		c.Tick(Time{Steady: 2000})
		c.Synced(Time{Steady: 2000}, c.Noted())
		_, replies := c.Take()
		if len(replies) != 1 || replies[0].Done != done {
			t.Errorf("copies on 1 and %d: %+v, want confirmed %v", other, replies, done)
		}
	}
}
