package syslog

import (
	"log/slog"
	"maps"
	"net/netip"
	"sync"
	"time"
)

const (
	// tellEvery is the shortest time between two lines of the log about one sender.
	tellEvery = time.Minute
	// maxSenders bounds the senders that are remembered. The log takes one line of a cause per
	// second, so that no more are told of within tellEvery.
	maxSenders = 64
)

// tellAhead counts a message that was sent too far ahead, and names its sender in the log now and
// then: its clock, its zone or syslog.timezone is wrong.
func (s *Server) tellAhead(sender netip.Addr, now, sent time.Time) {
	s.stats.Ahead.Add(1)
	if !s.ahead.due(sender, now) {
		return
	}
	if s.log.Log(slog.LevelWarn, "syslog_ahead",
		"the clock of a syslog sender is ahead; its messages are stored with the time of arrival",
		"peer", sender.Unmap().String(), "sent", sent.UTC(), "arrived", now.UTC()) {
		s.ahead.told(sender, now)
	}
}

// senders are those that the log has told of within the last minute. Its methods may be called
// concurrently.
type senders struct {
	mu     sync.Mutex
	logged map[netip.Addr]time.Time
}

// due reports whether the log may tell of a sender.
func (s *senders) due(sender netip.Addr, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !recent(s.logged[sender], now)
}

// told notes that the log told of a sender.
func (s *senders) told(sender netip.Addr, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.logged, func(_ netip.Addr, at time.Time) bool { return !recent(at, now) })
	if s.logged == nil {
		s.logged = make(map[netip.Addr]time.Time)
	}
	if len(s.logged) < maxSenders {
		s.logged[sender] = now
	}
}

// recent reports whether a line was written less than tellEvery ago. A clock that was set back does
// not silence the log.
func recent(logged, now time.Time) bool {
	since := now.Sub(logged)
	return since >= 0 && since < tellEvery
}
