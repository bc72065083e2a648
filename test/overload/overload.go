// Package overload offers a node more than it can take, and tells what it made
// of it: how much it still stored, and how soon it was itself again.
package overload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dalmatiner/internal/ddbclient"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/point"
)

// Sender sends one message after the other, each of the same number of points.
type Sender interface {
	// Send sends one message. It may block as long as the other side does not
	// take it.
	Send() error
	// Points is the number of points of a message.
	Points() int
}

// pace is the time between two looks at how much is due.
const pace = time.Millisecond

// Drive sends at a rate in points a second, 0 for as fast as it goes, until ctx
// ends, and returns the number of messages. A sender that is held back does not
// make up for it later: what is due and more than a tenth of a second old is
// dropped, as an agent's short queue would do.
func Drive(ctx context.Context, s Sender, rate float64) (messages int64, err error) {
	t := time.NewTicker(pace)
	defer t.Stop()
	most := rate / 10
	due, last := 0.0, time.Now()
	for ctx.Err() == nil {
		if rate > 0 {
			now := time.Now()
			due = min(due+rate*now.Sub(last).Seconds(), most)
			last = now
			if due < float64(s.Points()) {
				<-t.C
				continue
			}
			due -= float64(s.Points())
		}
		if err := s.Send(); err != nil {
			return messages, err
		}
		messages++
	}
	return messages, nil
}

// Probe measures how long a point takes until it is durable.
type Probe struct {
	stream *ddbclient.Stream
	key    []byte
}

// NewProbe opens a connection of its own.
func NewProbe(ctx context.Context, addr string) (*Probe, error) {
	c, err := ddbclient.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	s, err := c.OpenAckStream("probe")
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	key, err := metric.Key("probe")
	return &Probe{stream: s, key: key}, err
}

// Close ends the connection.
func (p *Probe) Close() error { return p.stream.Close() }

// Median returns the median of n points, one after the other.
func (p *Probe) Median(n int) (time.Duration, error) {
	took := make([]time.Duration, n)
	for i := range took {
		began := time.Now()
		if err := p.stream.Point(p.key, began.Unix(), point.FromInt(int64(i))); err != nil {
			return 0, err
		}
		if _, err := p.stream.FlushAck(); err != nil {
			return 0, err
		}
		if err := p.stream.Send(); err != nil {
			return 0, err
		}
		ack, err := p.stream.ReadAck()
		if err != nil {
			return 0, err
		}
		if ack.Refused > 0 {
			return 0, fmt.Errorf("the probe's point was refused")
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[n/2], nil
}

// Plan is an experiment.
type Plan struct {
	Senders  []Sender
	Probe    *Probe
	Stored   func() (uint64, error)        // points that the node has stored
	CPU      func() (time.Duration, error) // processor time that it has used
	Warm     time.Duration                 // with as much as goes, before anything is measured
	Measure  time.Duration                 // of the capacity, and of the latency before
	Overload time.Duration
	Patience time.Duration // for the latency to come back
}

// Report is what came of it.
type Report struct {
	Capacity float64 // points a second
	Goodput  float64 // under overload, as a share of the capacity
	PerCPU   float64 // the same, of points per processor time: what a busy machine does not change
	Offered  float64 // under overload, as a multiple of the capacity: less than 3 where senders were held back
	Before   time.Duration
	During   time.Duration
	After    time.Duration
	Back     time.Duration // from the end of the overload until After is at most 1.2 × Before
	Messages int64         // sent in all
}

const (
	overloadFactor = 3
	calmFactor     = 0.8
	backFactor     = 1.2
	probes         = 20 // points of a median
)

// Run measures the capacity, offers 0.8 times that, then three times that, and
// then 0.8 times again until the latency is what it was.
func (p *Plan) Run(ctx context.Context) (Report, error) {
	var r Report
	if _, err := p.phase(ctx, &r, 0, p.Warm, nil); err != nil {
		return r, err
	}
	full, err := p.phase(ctx, &r, 0, p.Measure, nil)
	if err != nil {
		return r, err
	}
	r.Capacity = full.rate
	calm := calmFactor * r.Capacity / float64(len(p.Senders))
	if _, err = p.phase(ctx, &r, calm, p.Measure, &r.Before); err != nil {
		return r, err
	}
	sent, began := r.Messages, time.Now()
	over, err := p.phase(ctx, &r, overloadFactor*r.Capacity/float64(len(p.Senders)), p.Overload, &r.During)
	if err != nil {
		return r, err
	}
	r.Goodput, r.PerCPU = over.rate/full.rate, over.perCPU/full.perCPU
	r.Offered = float64((r.Messages-sent)*int64(p.Senders[0].Points())) / time.Since(began).Seconds() / r.Capacity
	for ended := time.Now(); ; {
		if _, err := p.phase(ctx, &r, calm, time.Second, &r.After); err != nil {
			return r, err
		}
		r.Back = time.Since(ended)
		if r.After <= time.Duration(backFactor*float64(r.Before)) {
			return r, nil
		}
		if r.Back > p.Patience {
			return r, fmt.Errorf("%v after the overload a point takes %v, before it %v", r.Back, r.After, r.Before)
		}
	}
}

// yield is what a node stored: points by the second, and by the second of its
// processor time.
type yield struct{ rate, perCPU float64 }

// phase drives all senders for a time, each at a rate, and returns what the node
// stored. latency gets the median of the probe meanwhile.
func (p *Plan) phase(ctx context.Context, r *Report, rate float64, during time.Duration, latency *time.Duration) (yield, error) {
	ctx, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	before, err := p.Stored()
	used, cpuErr := p.CPU()
	if err = errors.Join(err, cpuErr); err != nil {
		return yield{}, err
	}
	began := time.Now()
	type end struct {
		messages int64
		err      error
	}
	ended := make(chan end, len(p.Senders))
	for _, s := range p.Senders {
		go func() {
			n, err := Drive(ctx, s, rate)
			ended <- end{n, err}
		}()
	}
	var errs []error
	if latency != nil {
		*latency, err = p.medianUntil(ctx)
		errs = append(errs, err)
	}
	for range p.Senders {
		e := <-ended
		r.Messages += e.messages
		errs = append(errs, e.err)
	}
	after, err := p.Stored()
	now, cpuErr := p.CPU()
	points := float64(after - before)
	return yield{points / time.Since(began).Seconds(), points / (now - used).Seconds()}, errors.Join(append(errs, err, cpuErr)...)
}

// medianUntil returns the median of the medians until ctx ends, of one at least.
func (p *Plan) medianUntil(ctx context.Context) (time.Duration, error) {
	var all []time.Duration
	for ctx.Err() == nil || len(all) == 0 {
		m, err := p.Probe.Median(probes)
		if err != nil {
			return 0, err
		}
		all = append(all, m)
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}
