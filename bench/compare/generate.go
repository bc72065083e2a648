package compare

import (
	"context"
	"fmt"
	"sync"
	"time"

	"dalmatiner/bench/measure"
	"dalmatiner/haggar"
)

// senders is how many agents a load of many series has: a connection each.
const senders = 8

// messagePoints is the number of points of one message where the rows are short and
// lie in the past.
const messagePoints = 50_000

// agentName and metricName are the two parts of a series' name that tell it
// from others: those of haggar, but for blanks, which lines cannot carry.
func agentName(agent int) string { return fmt.Sprintf("%06d", agent) }

func metricName(metric int) string { return fmt.Sprintf("%06d", metric) }

// mix is the data of all loads: any point can be computed again.
func mix() haggar.Data { return haggar.Data{Walk: true} }

// block is what one message carries: some rows of an agent's metrics, a second
// apart.
type block struct {
	slot   int64 // of the first row, Unix seconds
	rows   int
	values []int64 // row after row
}

// sender generates what one agent sends, and sends it over one connection.
type sender struct {
	iters  []haggar.Iter
	encode encoder
	conn   conn
	block  block
	buf    []byte
}

func newSender(ctx context.Context, s *instance, p *protocol, agent, metrics int) (*sender, error) {
	c, err := p.dial(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	out := &sender{conn: c, encode: p.encoder(agent, metrics)}
	data := mix()
	for i := range metrics {
		out.iters = append(out.iters, data.Series(agent, i))
	}
	return out, nil
}

// send sends the rows from slot on in one message.
func (s *sender) send(ctx context.Context, slot int64, rows int) error {
	s.block.slot, s.block.rows, s.block.values = slot, rows, s.block.values[:0]
	for at := slot; at < slot+int64(rows); at++ {
		for i := range s.iters {
			s.block.values = append(s.block.values, s.iters[i].At(at))
		}
	}
	s.buf = s.encode(s.buf[:0], &s.block)
	return s.conn.send(ctx, s.buf)
}

// span sends all rows from slot from to slot to, without to itself, per of them
// in a message.
func (s *sender) span(ctx context.Context, from, to, per int64) error {
	for at := from; at < to; at += per {
		if err := s.send(ctx, at, int(min(per, to-at))); err != nil {
			return err
		}
	}
	return nil
}

// crowd is the senders of one load, all with the same number of metrics.
type crowd []*sender

// newCrowd connects senders that have the given number of series together.
func newCrowd(ctx context.Context, s *instance, p *protocol, series int) (crowd, error) {
	var c crowd
	for agent := range senders {
		one, err := newSender(ctx, s, p, agent, series/senders)
		if err != nil {
			c.abandon()
			return nil, err
		}
		c = append(c, one)
	}
	return c, nil
}

// each runs do for all senders at once and returns the first error.
func (c crowd) each(do func(i int, s *sender) error) error {
	errs := make([]error, len(c))
	var wait sync.WaitGroup
	for i, s := range c {
		wait.Go(func() { errs[i] = do(i, s) })
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// load sends rows of all series from slot on, each sender's row in a message,
// as fast as they are taken, and ends the connections: the server has read
// everything then.
func (c crowd) load(ctx context.Context, slot int64, rows int) error {
	return c.each(func(_ int, s *sender) error {
		if err := s.span(ctx, slot, slot+int64(rows), 1); err != nil {
			return err
		}
		return s.conn.finish(ctx)
	})
}

// live sends a row a second of the present until ctx is done; the senders are
// spread over the second. It returns how many points were sent.
func (c crowd) live(ctx context.Context) (int64, error) {
	sent := make([]int64, len(c))
	err := c.each(func(i int, s *sender) error {
		begin := time.Duration(i) * time.Second / time.Duration(len(c))
		for measure.Pause(ctx,
			time.Until(time.Now().Truncate(time.Second).Add(time.Second+begin))) == nil {
			// A send that has begun is completed: its points count.
			if err := s.send(context.WithoutCancel(ctx), time.Now().Unix(), 1); err != nil {
				return err
			}
			sent[i] += int64(len(s.iters))
		}
		return s.conn.finish(context.WithoutCancel(ctx))
	})
	total := int64(0)
	for _, n := range sent {
		total += n
	}
	return total, err
}

// abandon closes the connections without regard to what is under way.
func (c crowd) abandon() {
	for _, s := range c {
		s.conn.abandon()
	}
}
