package ddbtcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/monitor"
	"dalmatiner/internal/store"
	"dalmatiner/internal/wal"
	"dalmatiner/internal/wire"
)

// sink is where a stream goes: its points straight to the session. It is the
// connection's goroutine that calls it.
type sink struct {
	*store.Session
	c     *conn
	hpts  bool          // points carry timestamps
	delay time.Duration // points wait at most this long for a flush
	acks  *acker        // nil in a classic stream
	acked store.Totals  // what the last acknowledged flush covered
	err   error
}

// open enters stream mode.
func (c *conn) open(q *wire.Request) error {
	st := c.s.o.Store
	info, err := st.EnsureBucket(string(q.Bucket))
	if err != nil {
		return err
	}
	if q.HPTS && !info.HPTS {
		return fmt.Errorf("%w: a stream with the hpts flag into bucket %s, which has no timestamps; open it without the flag, or create a bucket with hpts true",
			wire.ErrUnsupported, metric.Quoted(info.Name))
	}
	if q.Op == wire.OpAckStream && st.SyncMode() == wal.Off {
		return fmt.Errorf("%w: an acknowledged stream with wal.sync = off; set it to always or interval", wire.ErrUnsupported)
	}
	session, err := st.NewSession(info)
	if err != nil {
		return err
	}
	delay := time.Duration(max(1, int64(q.Delay))*info.Resolution) * time.Millisecond
	s := &sink{Session: session, c: c, hpts: q.HPTS, delay: min(delay, maxDelay)}
	if q.Op == wire.OpAckStream {
		s.acks = newAcker(c)
	} else {
		// Nobody waits for an answer: it is no loss when pieces are read together.
		c.gather = newGathering(c.nc.Conn, &c.s.stats.Gathering)
	}
	c.sink = s
	c.stream = wire.NewStreamParser(q, c.s.o.MaxMessage)
	return nil
}

// maxDelay bounds how long points wait for a flush in buckets of coarse
// resolution, whose delay is in points.
const maxDelay = 5 * time.Second

// Points takes consecutive points as the stream carries them.
func (s *sink) Points(key []byte, slot uint64, data []byte) {
	if s.hpts {
		s.StampedPoints(key, slot, data)
	} else {
		s.Session.Points(key, slot, data)
	}
}

// Flush commits what came since the last flush.
func (s *sink) Flush() { s.commit() }

func (s *sink) commit() wal.LSN {
	s.c.s.stats.Flushes.Add(1)
	start := time.Now()
	lsn, err := s.Commit()
	s.c.s.o.Monitor.Observe(monitor.MPut, time.Since(start))
	if err != nil && s.err == nil {
		s.err = fmt.Errorf("storing points: %w", err)
	}
	return lsn
}

// FlushAck commits, and answers seq when that is durable.
func (s *sink) FlushAck(seq uint64) {
	lsn := s.commit()
	if s.err != nil {
		return
	}
	now := s.Totals()
	s.acks.want(lsn, wire.Ack{Seq: seq, Received: now.Received - s.acked.Received, Refused: now.Refused - s.acked.Refused})
	s.acked = now
}

// close commits what is pending and waits for the answers that are due.
func (s *sink) close() error {
	err := s.Close()
	if s.acks != nil {
		err = errors.Join(err, s.acks.close())
	}
	return err
}

// acker answers acknowledged flushes in order, each when its points are
// durable, while the connection reads on: a sender need not wait for an fsync
// to send more.
type acker struct {
	c     *conn
	queue chan pendingAck
	done  sync.WaitGroup
	err   error       // read after done
	over  atomic.Bool // err is set: there will be no further answer
}

// errBroken ends a connection on which nothing can be acknowledged any more;
// the cause comes with it when the acker is closed.
var errBroken = errors.New("the stream cannot be acknowledged")

// broken reports whether answers that are due will not come.
func (s *sink) broken() bool { return s != nil && s.acks != nil && s.acks.over.Load() }

type pendingAck struct {
	lsn wal.LSN
	ack wire.Ack
}

// maxPendingAcks is how many flushes may wait for their fsync before the
// connection stops reading.
const maxPendingAcks = 64

func newAcker(c *conn) *acker {
	a := &acker{c: c, queue: make(chan pendingAck, maxPendingAcks)}
	a.done.Go(a.run)
	return a
}

func (a *acker) want(lsn wal.LSN, ack wire.Ack) { a.queue <- pendingAck{lsn: lsn, ack: ack} }

func (a *acker) run() {
	var out []byte
	for p := range a.queue {
		if a.err != nil {
			continue // the connection is broken; its reader will find out
		}
		// Not the server's context: at shutdown a flush that was received is
		// still answered, and the log's failure ends the wait.
		ctx, cancel := context.WithTimeout(context.Background(), durableTimeout)
		err := a.c.s.o.Store.WaitDurable(ctx, p.lsn)
		cancel()
		if err == nil {
			dst, mark := wire.BeginFrame(out[:0])
			out = wire.AppendAck(dst, p.ack)
			wire.EndFrame(out, mark)
			err = a.c.write(out)
		}
		if err != nil {
			a.err = fmt.Errorf("acknowledging flush %d: %w", p.ack.Seq, err)
			a.over.Store(true)
			_ = a.c.nc.SetReadDeadline(conns.LongAgo) // wakes the reader
		}
	}
}

func (a *acker) close() error {
	close(a.queue)
	a.done.Wait()
	return a.err
}
