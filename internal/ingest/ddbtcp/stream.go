package ddbtcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/host/monitor"
	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/wire"
	"dalmatiner/internal/write"
)

// committer takes the flushes of a stream, whose points go straight to the stream of the write
// seam: it commits what came, and has the flushes answered that want it. It is the connection's
// goroutine that calls it.
type committer struct {
	points write.Stream
	c      *conn
	delay  time.Duration // points wait at most this long for a flush
	acks   *acker        // nil in a classic stream
	err    error
}

// open enters stream mode.
func (c *conn) open(q *wire.Request) error {
	points := c.s.o.Points
	info, err := points.EnsureBucket(string(q.Bucket), buckets.Form{})
	if errors.Is(err, buckets.ErrUnknown) {
		err = fmt.Errorf("%w; create it with: ddb admin buckets create %s 1s 1w false%s", err,
			metric.Quote(string(q.Bucket)), c.s.o.NodeFlag)
	}
	if err != nil {
		return err
	}
	if q.HPTS && !info.HPTS {
		return fmt.Errorf("%w: a stream with the hpts flag into bucket %s, which has no timestamps; "+
			"open it without the flag, or create a bucket with hpts true",
			wire.ErrUnsupported, metric.Quote(info.Name))
	}
	if q.Op == wire.OpAckStream && !points.Durable() {
		return fmt.Errorf("%w: an acknowledged stream with wal.sync = off; set it to always or interval",
			wire.ErrUnsupported)
	}
	how := write.Options{Timestamps: q.HPTS, Stale: q.Op == wire.OpAckStream}
	var acks *acker
	if q.Op == wire.OpAckStream {
		acks = newAcker(c)
		how.Report = acks.report
	}
	stream, err := points.Open(info, how)
	if err != nil {
		if acks != nil {
			err = errors.Join(err, acks.close())
		}
		return err
	}
	if acks == nil {
		// Nobody waits for an answer: it is no loss when pieces are read together.
		c.coalesce = newCoalescer(c.nc.Conn, &c.s.stats.Coalescing)
	}
	delay := time.Duration(max(1, int64(q.Delay))*info.Resolution) * time.Millisecond
	s := &committer{points: stream, c: c, delay: min(delay, maxDelay), acks: acks}
	c.committer = s
	c.stream = wire.NewStreamParser(q, c.s.o.MaxMessage)
	return nil
}

// maxDelay bounds how long points wait for a flush in buckets of coarse
// resolution, whose delay is in points.
const maxDelay = 5 * time.Second

// Flush commits what came since the last flush.
func (s *committer) Flush() { s.commit() }

func (s *committer) commit() write.Token {
	s.c.s.stats.Flushes.Add(1)
	start := time.Now()
	token, err := s.points.Commit()
	s.c.s.o.Monitor.Observe(monitor.MPut, time.Since(start))
	if err != nil && s.err == nil {
		s.err = fmt.Errorf("storing points: %w", err)
	}
	return token
}

// FlushAck commits, and answers seq when that is durable.
func (s *committer) FlushAck(seq uint64) {
	token := s.commit()
	if s.err != nil {
		return
	}
	s.acks.want(token, seq)
}

// close commits what is pending and waits for the answers that are due.
func (s *committer) close() error {
	err := s.points.Close()
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
	queue chan *pendingAck
	done  sync.WaitGroup
	err   error       // read after done
	over  atomic.Bool // err is set: there will be no further answer

	mu      sync.Mutex
	pending []*pendingAck  // in order
	rest    account.Counts // of commits that no pending one covers
}

// errBroken ends a connection on which nothing can be acknowledged any more;
// the cause comes with it when the acker is closed.
var errBroken = errors.New("the stream cannot be acknowledged")

// broken reports whether answers that are due will not come.
func (s *committer) broken() bool { return s != nil && s.acks != nil && s.acks.over.Load() }

// pendingAck is a flush that is to be answered, and what became of the points
// since the one before: counts are complete when the token is durable.
type pendingAck struct {
	token  write.Token
	seq    uint64
	counts account.Counts // under the acker's lock
}

// maxPendingAcks is how many flushes may wait for their fsync before the
// connection stops reading.
const maxPendingAcks = 64

func newAcker(c *conn) *acker {
	a := &acker{c: c, queue: make(chan *pendingAck, maxPendingAcks)}
	a.done.Go(a.run)
	return a
}

// report takes what became of the points of a commit, at once or later. It counts for
// the first flush that covers the commit.
func (a *acker) report(t write.Token, c account.Counts) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.pending {
		if t.Compare(p.token) <= 0 {
			p.counts.Add(&c)
			return
		}
	}
	a.rest.Add(&c)
}

// want asks for the answer to a flush: t is the last commit.
func (a *acker) want(t write.Token, seq uint64) {
	p := &pendingAck{token: t, seq: seq}
	a.mu.Lock()
	p.counts, a.rest = a.rest, account.Counts{}
	a.pending = append(a.pending, p)
	a.mu.Unlock()
	a.queue <- p
}

// answer returns the answer to the first of the pending flushes, which is durable.
func (a *acker) answer() wire.Ack {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.pending[0]
	a.pending = slices.Delete(a.pending, 0, 1)
	return wire.Ack{Seq: p.seq, Received: p.counts.ReceivedPoints(), Refused: p.counts.RefusedTotal()}
}

func (a *acker) run() {
	var out []byte
	for p := range a.queue {
		if a.err != nil {
			continue // the connection is broken; its reader will find out
		}
		// Not the server's context: at shutdown a flush that was received is
		// still answered, and the log's failure ends the wait.
		ctx, cancel := context.WithTimeout(context.Background(), durableTimeout)
		err := a.c.s.o.Points.WaitDurable(ctx, p.token)
		cancel()
		if err == nil {
			dst, mark := wire.BeginFrame(out[:0])
			out = wire.AppendAck(dst, a.answer())
			wire.EndFrame(out, mark)
			err = a.c.write(out)
		}
		if err != nil {
			a.err = fmt.Errorf("acknowledging flush %d: %w", p.seq, err)
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
