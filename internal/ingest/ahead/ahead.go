// Package ahead finds senders whose clocks are ahead: it counts what they sent, and names each in
// the log now and then.
package ahead

import (
	"cmp"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"dalmatiner/internal/host/loglimit"
)

const (
	// tellEvery is the shortest time between two lines of the log about one sender.
	tellEvery = time.Minute
	// maxSenders bounds the senders that are remembered. The one that was heard of longest ago makes
	// room.
	maxSenders = 256
)

// Sender is one whose clock is ahead.
type Sender struct {
	Listener string
	Addr     netip.Addr
	Count    uint64        // of what was too far ahead
	Most     time.Duration // by which it was ahead
	Last     time.Time     // when the last of it came

	logged time.Time
}

// Senders are those whose clocks are ahead. Its methods may be called concurrently; those of nil do
// nothing.
type Senders struct {
	log *loglimit.Logger

	mu   sync.Mutex
	list map[from]*Sender
}

type from struct {
	listener string
	addr     netip.Addr
}

// New returns an empty list.
func New(log *loglimit.Logger) *Senders {
	return &Senders{log: log, list: make(map[from]*Sender)}
}

// What became of something that was too far ahead.
const (
	WithArrival = "with the time of arrival"
	Refused     = "no, refused as future"
)

// Found is what a sender sent too far ahead at a time.
type Found struct {
	Listener string
	Addr     netip.Addr
	Count    int
	Sent     time.Time // the time of one of them, of the one furthest ahead where that is known
	Arrived  time.Time
	Fate     string // what became of them: WithArrival or Refused
}

// Tell notes what a sender sent too far ahead.
func (s *Senders) Tell(f Found) {
	if s == nil || f.Count == 0 {
		return
	}
	f.Addr = f.Addr.Unmap()
	if s.note(&f) && s.log.Log(slog.LevelWarn, "ahead_"+f.Listener, "the clock of a sender is ahead",
		"listener", f.Listener, "peer", f.Addr.String(), "sent", f.Sent.UTC(), "arrived", f.Arrived.UTC(),
		"stored", f.Fate) {
		s.told(&f)
	}
}

// note counts, and reports whether the log may tell of the sender.
func (s *Senders) note(f *Found) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := from{f.Listener, f.Addr}
	one := s.list[key]
	if one == nil {
		if len(s.list) >= maxSenders {
			s.dropOldest()
		}
		one = &Sender{Listener: f.Listener, Addr: f.Addr}
		s.list[key] = one
	}
	one.Count += uint64(f.Count)
	one.Most = max(one.Most, f.Sent.Sub(f.Arrived))
	one.Last = f.Arrived
	since := f.Arrived.Sub(one.logged)
	return since < 0 || since >= tellEvery // a clock that was set back does not silence the log
}

// told notes that the log told of a sender.
func (s *Senders) told(f *Found) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.list[from{f.Listener, f.Addr}]; one != nil {
		one.logged = f.Arrived
	}
}

func (s *Senders) dropOldest() {
	var oldest from
	found := false
	for key, one := range s.list {
		if !found || one.Last.Before(s.list[oldest].Last) {
			oldest, found = key, true
		}
	}
	delete(s.list, oldest)
}

// List returns the senders, the furthest ahead first.
func (s *Senders) List() []Sender {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Sender, 0, len(s.list))
	for _, one := range s.list {
		out = append(out, *one)
	}
	slices.SortFunc(out, func(a, b Sender) int {
		return cmp.Or(cmp.Compare(b.Most, a.Most), cmp.Compare(a.Listener, b.Listener),
			a.Addr.Compare(b.Addr))
	})
	return out
}
