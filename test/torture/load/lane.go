package load

import (
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"dalmatiner/test/torture/dwire"
	"dalmatiner/test/torture/oracle"
	"dalmatiner/test/torture/subject"
)

// habits are what a sender does beside rows.
type habits struct {
	rows       int  // in a lot, at most
	late       int  // runs of earlier slots in a lot, at most
	deletes    bool // series are deleted, and sent again
	grows      bool // new series come
	bucketDies bool // the bucket is deleted and made again
}

// lane is the sender of one bucket.
type lane struct {
	load   *Load
	habits habits
	bucket *oracle.Bucket
	rng    *rand.Rand
	pos    int // slots that rows have reached
	link   *link
}

// link is a stream with the lots that wait for their acknowledgement.
type link struct {
	s       *dwire.Stream
	pending chan lot
	done    chan struct{} // the reader has ended
	mu      sync.Mutex
	err     error
}

type lot struct {
	seq  uint64
	last uint32
}

const (
	window   = 6 // lots under way
	streamTO = 30 * time.Second
)

// run sends until it is told to stop, or the node is gone.
func (a *lane) run(n *subject.Node, stop chan struct{}) {
	for {
		select {
		case <-stop:
			_ = a.drain() // what is not acknowledged is in doubt
			return
		case <-n.Done():
			a.hangUp()
			return
		default:
		}
		err := a.step(n)
		if err == nil {
			continue
		}
		a.hangUp()
		select {
		case <-n.Done():
			return
		case <-stop:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// lots sends n lots and waits until all are acknowledged.
func (a *lane) lots(node *subject.Node, n int) error {
	for range n {
		if err := a.step(node); err != nil {
			a.hangUp()
			return err
		}
	}
	return a.drain()
}

// step makes sure that the bucket and the stream are there, sends a lot, and now
// and then deletes something.
func (a *lane) step(n *subject.Node) error {
	if err := a.ensureBucket(n); err != nil {
		return err
	}
	if a.link == nil {
		if err := a.connect(n); err != nil {
			return err
		}
	}
	if err := a.send(); err != nil {
		return err
	}
	switch dice := a.rng.IntN(40); {
	case a.habits.deletes && dice < 2:
		return a.deleteSeries(n)
	case a.habits.bucketDies && dice < 2:
		return a.deleteBucket(n)
	case a.habits.grows && dice < 8 && len(a.bucket.Series) < 400:
		a.newSeries()
	}
	return nil
}

func (a *lane) ensureBucket(n *subject.Node) error {
	if a.bucket.State == oracle.Present {
		return nil
	}
	c, err := dwire.Dial(n.TCP, streamTO)
	if err != nil {
		return err
	}
	defer c.Close()
	if a.bucket.State == oracle.Deleting {
		return errors.New("the bucket's deletion is in doubt until the next start")
	}
	a.bucket.SetState(oracle.Adding)
	err = c.Add(a.bucket.Name, uint64(a.bucket.Resolution), uint64(a.bucket.TTL), a.bucket.HPTS)
	var refusal dwire.ServerError
	if errors.As(err, &refusal) {
		return err
	}
	if err == nil {
		a.bucket.SetState(oracle.Present)
		a.pos = 0
	}
	return err
}

func (a *lane) connect(n *subject.Node) error {
	s, err := dwire.OpenStream(n.TCP, a.bucket.Name, a.bucket.HPTS, streamTO)
	if err != nil {
		return err
	}
	k := &link{s: s, pending: make(chan lot, window), done: make(chan struct{})}
	a.link = k
	go func() {
		defer close(k.done)
		for p := range k.pending {
			ack, err := s.ReadAck()
			if err == nil && ack.Seq != p.seq {
				err = errors.New("an acknowledgement out of order")
			}
			if err != nil {
				k.mu.Lock()
				k.err = err
				k.mu.Unlock()
				s.Close() // the sender finds out
				for range k.pending {
				}
				return
			}
			a.bucket.Lane.Ack(p.last, ack.Refused)
		}
	}()
	return nil
}

// drain waits for all acknowledgements and closes the stream.
func (a *lane) drain() error {
	k := a.link
	if k == nil {
		return nil
	}
	close(k.pending)
	<-k.done
	k.s.Close()
	a.link = nil
	a.bucket.Lane.Break()
	return k.err
}

// hangUp ends the stream; what was not acknowledged is in doubt.
func (a *lane) hangUp() {
	if a.link != nil {
		a.link.s.Close()
		_ = a.drain() // it is broken already
	}
}

// send writes one lot: rows that go on, and runs of earlier slots.
func (a *lane) send() error {
	s, b := a.link.s, a.bucket
	b.Lane.Lock()
	before := b.Lane.Sent()
	lo, hi := 0, b.Slots
	if b.TTL > 0 {
		// Points near the border would be refused, all others in the past are right.
		lo = int(time.Now().UnixMilli()/b.Resolution - b.TTL + 10 - b.First)
		hi = min(hi, lo+int(b.TTL)-20)
		a.pos = max(a.pos, lo)
	}
	if lo >= hi {
		b.Lane.Unlock()
		return nil
	}
	if a.pos >= hi {
		a.pos = lo + a.rng.IntN(hi-lo) // from here on rows rewrite
	}
	for end := min(a.pos+1+a.rng.IntN(a.habits.rows), hi); a.pos < end; a.pos++ {
		s.BeginBatch(b.First + int64(a.pos))
		for _, m := range b.Series {
			if a.rng.IntN(20) > 0 && !m.Deleting {
				s.BatchPoint(m.Key, m.AppendWrite(nil, b.First+int64(a.pos)))
			}
		}
		s.EndBatch()
	}
	for range a.rng.IntN(a.habits.late + 1) {
		m := b.Series[a.rng.IntN(len(b.Series))]
		if m.Deleting {
			continue
		}
		at := lo + a.rng.IntN(a.pos-lo)
		var points []byte
		for slot := at; slot < min(at+1+a.rng.IntN(60), a.pos); slot++ {
			points = m.AppendWrite(points, b.First+int64(slot))
		}
		s.Entry(m.Key, b.First+int64(at), points)
	}
	last := b.Lane.Sent()
	b.Lane.Unlock()
	a.load.points.Add(int64(last - before))
	if err := s.Ask(uint64(last)); err != nil {
		return err
	}
	a.link.pending <- lot{uint64(last), last}
	a.link.mu.Lock()
	defer a.link.mu.Unlock()
	return a.link.err
}
