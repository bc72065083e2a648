package cluster

import (
	"sync"

	"dalmatiner/internal/cluster/replication"
)

// inboxBytes is what waits in an inbox at most, in bytes of frames. One message may be longer.
const inboxBytes = 1 << 20

// inbox is the messages of one peer that the protocol has not taken yet, in their order. A message
// may wait long for the protocol, and the frames behind it must not: calls are answered meanwhile.
type inbox struct {
	mu      sync.Mutex
	list    []arrival
	bytes   int
	running bool          // somebody gives the protocol what is here
	room    chan struct{} // closed and replaced when a message has gone; nil: nobody waits for that
}

// arrival is a message, and the length of the frame that brought it.
type arrival struct {
	message replication.Message
	bytes   int
}

// put adds a message. It waits while there is no room. It reports whether the caller is to see to
// it that run is called.
func (b *inbox) put(a arrival) (start bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.list) > 0 && b.bytes+a.bytes > inboxBytes {
		if b.room == nil {
			b.room = make(chan struct{})
		}
		room := b.room
		b.mu.Unlock()
		<-room // run goes on until nothing is left
		b.mu.Lock()
	}
	b.list = append(b.list, a)
	b.bytes += a.bytes
	start = !b.running
	b.running = true
	return start
}

// run hands over what is here, one after the other, until nothing is left.
func (b *inbox) run(receive func(replication.Message)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.list) > 0 {
		a := b.list[0]
		b.list[0] = arrival{}
		b.list = b.list[1:]
		b.bytes -= a.bytes
		if b.room != nil {
			close(b.room)
			b.room = nil
		}
		b.mu.Unlock()
		receive(a.message)
		b.mu.Lock()
	}
	b.list, b.running = nil, false
}
