package syslog

import (
	"fmt"
	"net/netip"
	"sync/atomic"

	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/ingest/ahead"
	"dalmatiner/internal/ingest/unacked"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/events"
)

// writer stores the messages of one sender. It is not for concurrent use.
type writer struct {
	s    *Server
	peer netip.AddrPort
	*batch
	had int64 // memory of the batch at begin
	err error // of a write between begin and end
}

// batch is events on their way into the store.
type batch struct {
	list  []events.Event
	terms []byte
}

const (
	// batchBytes and batchEvents are how much is written at once.
	batchBytes  = 256 << 10
	batchEvents = 4096
	// maxBatches is how many senders may have messages on their way at a time: the store takes
	// those of one after the other.
	maxBatches = 16
)

// batches are those that senders take in turn. However many wait for the store, they hold no more.
type batches struct {
	free  chan *batch
	bytes *atomic.Int64
}

func newBatches(m *memory.Budget) batches {
	b := batches{free: make(chan *batch, maxBatches), bytes: new(atomic.Int64)}
	for range maxBatches {
		b.free <- new(batch)
	}
	m.Add(memory.Pool{Name: "syslog-batches", Holds: "messages of syslog on their way into the " +
		"store; at the limit senders wait",
		Limit: maxBatches * (2*(batchBytes+MaxMessage) + 2*batchEvents*eventBytes), Use: b.bytes.Load})
	return b
}

// eventBytes is the memory of an event of a list beside its body.
const eventBytes = 48

func (b *batch) memory() int64 { return int64(cap(b.list))*eventBytes + int64(cap(b.terms)) }

// begin waits for a batch. end must follow.
func (w *writer) begin() {
	w.batch = <-w.s.batches.free
	w.had = w.memory()
}

// end stores what was added, and gives the batch to the next sender.
func (w *writer) end() error {
	err := w.write()
	clear(w.list) // what came behind a failed write
	w.list, w.terms = w.list[:0], w.terms[:0]
	w.s.batches.bytes.Add(w.memory() - w.had)
	w.s.batches.free <- w.batch
	w.batch = nil
	return err
}

// add takes a message. Its bytes are read during the call only.
func (w *writer) add(src []byte) {
	now := w.s.o.Now()
	m := parse(src, clock{now, w.s.o.Zone, w.s.o.MaxFuture})
	if len(m.text) == 0 && m.priority < 0 {
		return // an empty line
	}
	w.s.stats.Messages.Add(1)
	if !m.sent.IsZero() {
		w.s.stats.Ahead.Add(1)
		w.s.o.Ahead.Tell(ahead.Found{Listener: "syslog", Addr: w.peer.Addr(), Count: 1,
			Sent: m.sent, Arrived: now, Fate: ahead.WithArrival})
	}
	at := int64(0) // that of arrival
	if !m.time.IsZero() {
		at = m.time.UnixNano()
	}
	start := len(w.terms)
	w.terms = m.appendTerm(w.terms, w.peer.Addr())
	// A slice of terms stays what it is where terms moves.
	w.list = append(w.list, events.Event{Time: at, Body: w.terms[start:len(w.terms):len(w.terms)]})
	if len(w.terms) >= batchBytes || len(w.list) >= batchEvents {
		w.err = w.write()
	}
}

// write stores what was added. An error means that nothing can be stored any more.
func (w *writer) write() error {
	if len(w.list) == 0 || w.err != nil {
		return w.err
	}
	err := w.store()
	if reason, ok := unacked.Refused(err); ok {
		for range w.list {
			w.s.refusals.Count(reason, w.peer, []byte(err.Error()))
		}
		err = nil
	}
	clear(w.list)
	w.list, w.terms = w.list[:0], w.terms[:0]
	if err != nil {
		return fmt.Errorf("storing events: %w", err)
	}
	return nil
}

func (w *writer) store() error {
	if _, err := w.s.o.Buckets.EnsureBucket(w.s.o.Bucket, buckets.Form{}); err != nil {
		return err
	}
	_, err := w.s.o.Events.Write(w.s.o.Bucket, w.list)
	return err
}
