package haggar

import (
	"context"
	"fmt"
	"time"

	"dalmatiner/client"
	"dalmatiner/internal/wire"
)

const (
	dialTimeout = 5 * time.Second
	// drainTimeout bounds how long an agent waits for the store to read what
	// was sent, at the end of a connection and after the run was ended.
	drainTimeout = 15 * time.Second
	// reasonTimeout bounds the wait for the store's reason once a write failed.
	reasonTimeout = 500 * time.Millisecond
	// maxUnacked flushes may wait for their acknowledgement per connection:
	// enough to hide one fsync behind the rows that are sent meanwhile.
	maxUnacked = 16
	// streamDelay is the delay the original asks for.
	streamDelay = 2
	// A fast agent waits this long after a failure, doubled up to the maximum.
	retryFirst = 100 * time.Millisecond
	retryMax   = 2 * time.Second
)

// agent sends the metrics of one agent over one connection at a time.
type agent struct {
	*run
	id   int
	step int64 // slots from row to row
	tmpl *template
	src  *source
	seq  uint64
	link *link // the open connection, or nil
	tail []byte
}

// link is a connection. On an acknowledged stream a goroutine settles the
// flushes in pending in their order; it ends when pending is closed.
type link struct {
	s       *client.Stream
	stop    func() bool // ends the bound by the run's context
	pending chan flight
	done    chan struct{}
}

// flight is a flush on its way.
type flight struct {
	Flush
	begun time.Time
}

func newAgent(r *run, id int) *agent {
	rows := 1
	if (r.Fast || r.Preset != "") && r.CacheConnections && !r.TinyWrites {
		rows = 0
	}
	return &agent{
		run: r, id: id, step: int64(r.Step / time.Second),
		tmpl: newTemplate(&r.Config, id, rows), src: newSource(r.Data, id, r.Metrics),
	}
}

// timed sends one row at every tick, as the original does.
func (a *agent) timed(ctx context.Context) {
	tick := time.NewTicker(a.FlushInterval)
	defer tick.Stop()
	defer a.hangUp()
	last := int64(-1)
	for row := int64(0); a.Steps == 0 || row < a.Steps; row++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		slot := a.Now().Unix()
		// A tick that comes late may lie in the second of the next one: the store would count what it has
		// twice.
		if a.FlushInterval >= time.Second {
			slot = max(slot, last+1)
		}
		if !a.Start.IsZero() {
			slot = a.Start.Unix() + row*a.step
		}
		last = slot
		a.flush(ctx, slot, 1)
	}
}

// fast sends the rows of the slots from slot to end, without end itself, as
// fast as they are taken. It returns the first slot it did not send.
func (a *agent) fast(ctx context.Context, slot, end int64) int64 {
	pause := retryFirst
	for slot < end && ctx.Err() == nil {
		rows := min(int64(a.tmpl.rows), (end-slot+a.step-1)/a.step)
		if a.flush(ctx, slot, int(rows)) {
			pause = retryFirst
		} else {
			wait(ctx, pause)
			pause = min(2*pause, retryMax)
		}
		slot += rows * a.step
	}
	return slot
}

// live sends every slot from slot on once it is the present.
func (a *agent) live(ctx context.Context, slot int64) {
	tick := time.NewTicker(a.FlushInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		slot = a.fast(ctx, slot, a.Now().Unix()+1)
	}
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// flush sends rows from slot on and a flush message. What is known of them
// goes to the journal and the counters. It reports whether the connection is
// still good.
func (a *agent) flush(ctx context.Context, slot int64, rows int) bool {
	fl := flight{begun: time.Now()}
	if a.link == nil {
		if err := a.connect(ctx); err != nil {
			// The end of the run is no failure of the store.
			if ctx.Err() == nil {
				a.fail(err)
			}
			return false
		}
	}
	a.seq++
	fl.Flush = Flush{
		Agent: a.id,
		Seq:   a.seq,
		Slot:  slot,
		Step:  a.step,
		Slots: int64(rows),
		Count: a.Metrics,
	}
	l := a.link
	a.tail = wire.AppendFlush(a.tail[:0])
	if l.pending != nil {
		a.tail = wire.AppendFlushAck(a.tail[:0], a.seq)
		l.pending <- fl
	}
	err := a.write(slot, rows)
	if err == nil {
		a.count.points.Add(fl.Points())
		a.count.flushes.Add(1)
	}
	if l.pending != nil {
		if err != nil || !a.CacheConnections {
			a.hangUp()
		}
		return err == nil
	}
	if err != nil || !a.CacheConnections {
		a.link = nil
		l.stop()
		if err == nil {
			err = l.s.Finish(drainTimeout)
		}
		l.s.Close()
	}
	if err != nil {
		a.fail(err)
		a.settle(fl, Failed)
		return false
	}
	a.settle(fl, Sent)
	return true
}

func (a *agent) write(slot int64, rows int) error {
	write := func(b []byte) error {
		a.count.bytes.Add(int64(len(b)))
		return a.link.s.Write(b)
	}
	if a.TinyWrites {
		// The opening frame is a write of its own, too.
		if err := a.link.s.Send(); err != nil {
			return err
		}
		return a.tmpl.sendTiny(a.src, slot, a.tail, write)
	}
	return a.tmpl.send(a.src, slot, a.step, rows, a.tail, write)
}

func (a *agent) connect(ctx context.Context) error {
	// A deadline would make the dialer time out just before ctx is done, which
	// looks like a failure of the store.
	dialing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, cancel)()
	conn, err := a.Dial(dialing)
	cancel()
	if err != nil {
		return fmt.Errorf("connect to %s: %w", a.Addr, err)
	}
	c := client.NewClient(conn)
	l := &link{}
	if a.Ack {
		l.s, err = c.OpenAckStream(a.Bucket)
	} else {
		l.s, err = c.OpenStream(a.Bucket, streamDelay)
	}
	if err != nil {
		c.Close()
		return err
	}
	l.stop = context.AfterFunc(ctx, func() { _ = l.s.SetDeadline(time.Now().Add(drainTimeout)) })
	if a.Ack {
		l.pending, l.done = make(chan flight, maxUnacked), make(chan struct{})
		go a.readAcks(l)
	}
	a.link = l
	return nil
}

// readAcks settles the flushes of an acknowledged stream. After the first
// failure it closes the connection, which fails the writer, and settles the
// rest as failed.
func (a *agent) readAcks(l *link) {
	defer close(l.done)
	var failed error
	for fl := range l.pending {
		var ack wire.Ack
		if failed == nil {
			ack, failed = l.s.ReadAck()
			if failed == nil && (ack.Seq != fl.Seq || ack.Received != uint64(fl.Points())) {
				failed = fmt.Errorf("flush %d of %d points was acknowledged as flush %d of %d points",
					fl.Seq, fl.Points(), ack.Seq, ack.Received)
			}
			if failed != nil {
				l.s.Close()
				a.Log.Error("agent failed", "agent", a.id, "err", failed)
			}
		}
		if failed != nil {
			a.count.errors.Add(1)
			a.settle(fl, Failed)
			continue
		}
		fl.Refused = ack.Refused
		a.count.acked.Add(fl.Points() - int64(ack.Refused))
		a.count.refused.Add(int64(ack.Refused))
		a.settle(fl, Acked)
	}
}

// hangUp ends the connection, if there is one, once the store has read or
// acknowledged what was sent.
func (a *agent) hangUp() {
	l := a.link
	if l == nil {
		return
	}
	a.link = nil
	l.stop()
	if l.pending == nil {
		if err := l.s.Finish(drainTimeout); err != nil {
			a.fail(err)
		}
		return
	}
	// Without a write that fails the store has only to answer; after one its
	// reason may be under way.
	limit := drainTimeout
	if l.s.Send() != nil {
		limit = reasonTimeout
	}
	_ = l.s.SetDeadline(time.Now().Add(limit))
	close(l.pending)
	<-l.done
	l.s.Close()
}

func (a *agent) fail(err error) {
	a.count.errors.Add(1)
	a.Log.Error("agent failed", "agent", a.id, "err", err)
}

func (a *agent) settle(fl flight, s State) {
	fl.State = s
	a.journal.add(fl.Flush)
	if s != Failed {
		a.count.flushTime.add(time.Since(fl.begun))
	}
}
