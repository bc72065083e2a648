package load

import (
	"context"
	"fmt"
	"time"

	"dalmatiner/bench/corpus"
	"dalmatiner/client"
	"dalmatiner/internal/wire"
)

// The windows that the store merges into, in slots.
const (
	SmallWindow = 7_200
	LargeWindow = 86_400
)

// finishTimeout bounds the wait for the store to have read everything.
const finishTimeout = 5 * time.Minute

// Ready moves a corpus to the beginning of a large window that ended long enough
// ago to be merged once the data has gone on, and leaves out what a store of
// slots has no place for. It returns how many samples that were.
func Ready(c *corpus.Corpus) (thinned int) {
	window := LargeWindow * c.Interval
	ended := time.Now().UnixMilli() - 6*SmallWindow*c.Interval
	first, _ := c.Span()
	c.Move((ended/window-1)*window - first/c.Interval*c.Interval)
	return c.Thin()
}

// Beyond returns a time in milliseconds that lies so far behind a corpus that
// the store may merge all of it; the corpus is at the beginning of a large
// window.
func Beyond(c *corpus.Corpus) int64 {
	first, _ := c.Span()
	return first/c.Interval*c.Interval + (LargeWindow+4*SmallWindow)*c.Interval
}

// Playback sends a corpus to a store.
type Playback struct {
	Bucket      string // is made
	Timestamped bool   // whether it keeps the times of the samples
}

// Send sends all samples in the order of their times, a batch for each slot, and
// one point of the first series beyond them. It returns the number of points.
func (p *Playback) Send(ctx context.Context, addr string, c *corpus.Corpus) (int64, error) {
	conn, err := client.Dial(ctx, addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	add, open := conn.AddBucket, conn.OpenStream
	if p.Timestamped {
		add, open = conn.AddTimestampedBucket, conn.OpenTimestampedStream
	}
	if _, err := add(ctx, p.Bucket, uint64(c.Interval), LargeWindow, 0); err != nil {
		return 0, err
	}
	stream, err := open(p.Bucket, 1)
	if err != nil {
		return 0, err
	}
	s := player{Playback: p, stream: stream, interval: c.Interval}
	for i := range c.Series {
		s.keys = append(s.keys, c.Series[i].Key())
	}
	if err := s.play(c); err != nil {
		return 0, err
	}
	return s.points, stream.Finish(finishTimeout)
}

// Check reads all series back and compares every slot with what was sent: word,
// timestamp, and gaps.
func (p *Playback) Check(ctx context.Context, addr string, c *corpus.Corpus) error {
	conn, err := client.Dial(ctx, addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	first, last := c.Span()
	begin, count := first/c.Interval, int(last/c.Interval-first/c.Interval+1)
	for i := range c.Series {
		s := &c.Series[i]
		want := make([]wire.Timestamped, count)
		for k, at := range s.Times {
			word, err := corpus.Word(s.Values[k])
			if err != nil {
				return err
			}
			want[at/c.Interval-begin] = wire.Timestamped{Word: word, Time: uint64(at) * 1e6}
		}
		got, err := p.read(ctx, conn, s.Key(), begin, count)
		if err != nil {
			return err
		}
		for k := range want {
			if !p.Timestamped {
				want[k].Time = 0
			}
			if got[k] != want[k] {
				return fmt.Errorf("slot %d of %s is read as %+v, sent was %+v", begin+int64(k), s, got[k],
					want[k])
			}
		}
	}
	return nil
}

// read reads slots of a series, with times 0 where the bucket keeps none.
func (p *Playback) read(ctx context.Context, conn *client.Client, key []byte, begin int64,
	count int) (got []wire.Timestamped, err error) {
	for len(got) < count {
		n := min(count-len(got), client.MaxGet)
		if p.Timestamped {
			part, err := conn.GetTimestamped(ctx, p.Bucket, key, begin+int64(len(got)), n)
			if err != nil {
				return nil, err
			}
			got = append(got, part...)
			continue
		}
		words, err := conn.Get(ctx, p.Bucket, key, begin+int64(len(got)), n)
		if err != nil {
			return nil, err
		}
		for _, w := range words {
			got = append(got, wire.Timestamped{Word: w})
		}
	}
	return got, nil
}

// player is a playback under way.
type player struct {
	*Playback
	stream   *client.Stream
	keys     [][]byte
	interval int64
	points   int64
}

func (p *player) play(c *corpus.Corpus) error {
	err := c.Each(func(at int64, series, index []int) error {
		if err := p.stream.BatchStart(at / p.interval); err != nil {
			return err
		}
		for k, i := range series {
			if err := p.point(i, at, c.Series[i].Values[index[k]]); err != nil {
				return err
			}
		}
		return p.stream.BatchEnd()
	})
	if err != nil {
		return err
	}
	end := Beyond(c)
	if err := p.stream.BatchStart(end / p.interval); err != nil {
		return err
	}
	if err := p.point(0, end, "0"); err != nil {
		return err
	}
	return p.stream.BatchEnd()
}

// point adds one to the open batch.
func (p *player) point(series int, at int64, value string) error {
	word, err := corpus.Word(value)
	if err != nil {
		return err
	}
	p.points++
	if p.Timestamped {
		return p.stream.TimestampedBatchPoint(p.keys[series],
			wire.Timestamped{Word: word, Time: uint64(at) * 1e6})
	}
	return p.stream.BatchPoint(p.keys[series], word)
}
