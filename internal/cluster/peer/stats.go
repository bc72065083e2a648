package peer

import (
	"bytes"
	"slices"

	"dalmatiner/internal/cluster/ring"
)

// DropCounts counts the frames to a peer that were not sent, by cause.
type DropCounts struct {
	Down     uint64 // there was no connection
	Full     uint64 // the queue was full
	Lost     uint64 // the connection ended before they were wholly written
	Version  uint64 // they were encoded for a version that the connection does not speak
	TooLarge uint64 // longer than MaxFrame
}

// Stats is what is known of one peer.
type Stats struct {
	ID        ring.ID
	Connected bool   // frames can be sent to it
	Accepted  bool   // it is connected to this node
	Version   uint16 // of the connection that frames are sent on; 0 without one
	Queued    int    // bytes of frames that are not yet written
	Held      int    // bytes of the buffers of its queue and of its connections

	Sent, SentBytes         uint64 // frames of callers, written to the connection, and their bytes
	Received, ReceivedBytes uint64 // frames given to the handler, and their bytes
	Dropped                 DropCounts
	Connections             uint64 // handshakes that succeeded, of connections made by this node
	Failures                uint64 // connections that could not be made, or ended
	LastError               string // of the last failure; it stays after a later success
}

// Totals is what is known beyond single peers.
type Totals struct {
	HalfOpen int               // accepted connections within their handshake
	Accepted int               // accepted connections behind it
	Refused  map[string]uint64 // accepted connections that were refused, by the text of the Refusal
}

// Stats returns what is known of every peer, in the order of ids.
func (p *Peers) Stats() []Stats {
	p.mu.Lock()
	links := make([]*link, 0, len(p.links))
	for _, l := range p.links {
		links = append(links, l)
	}
	p.mu.Unlock()

	all := make([]Stats, len(links))
	for i, l := range links {
		all[i] = l.snapshot()
	}
	slices.SortFunc(all, func(a, b Stats) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return all
}

// Totals returns what is known beyond single peers.
func (p *Peers) Totals() Totals {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := Totals{HalfOpen: len(p.halfOpen), Refused: map[string]uint64{}}
	for _, l := range p.links {
		if l.accepted != nil {
			t.Accepted++
		}
	}
	for r, n := range p.refused {
		if n > 0 {
			t.Refused[Refusal(r).Error()] = n
		}
	}
	return t
}
