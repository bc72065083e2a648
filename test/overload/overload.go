// Package overload offers a node more than it can take, and tells what it made
// of it: how much it still stored, and how soon it was itself again.
package overload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dalmatiner/client"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
)

// Sender sends one message after the other, each of the same number of points.
type Sender interface {
	// Send sends one message. It may block as long as the other side does not
	// take it.
	Send() error
	// Points is the number of points of a message.
	Points() int
	// Taken reports whether the other side takes the next message without
	// losing it.
	Taken() (bool, error)
}

// pace is the time between two looks at how much is due.
const pace = time.Millisecond

// Drive sends at a rate in points a second until ctx ends, and returns the
// number of messages. A sender that is held back does not make up for it later:
// what is due and more than a tenth of a second old is dropped, as an agent's
// short queue would do. At a rate of 0 it sends as fast as the other side takes
// it.
func Drive(ctx context.Context, s Sender, rate float64) (messages int64, err error) {
	t := time.NewTicker(pace)
	defer t.Stop()
	most := rate / 10
	due, last := 0.0, time.Now()
	for ctx.Err() == nil {
		ready := true
		if rate > 0 {
			now := time.Now()
			due = min(due+rate*now.Sub(last).Seconds(), most)
			last = now
			ready = due >= float64(s.Points())
		} else if ready, err = s.Taken(); err != nil {
			return messages, err
		}
		if !ready {
			<-t.C
			continue
		}
		due -= float64(s.Points())
		if err := s.Send(); err != nil {
			return messages, err
		}
		messages++
	}
	return messages, nil
}

// Probe measures how long a point takes until it is durable.
type Probe struct {
	stream *client.Stream
	key    []byte
}

// NewProbe opens a connection of its own.
func NewProbe(ctx context.Context, addr string) (*Probe, error) {
	c, err := client.Dial(ctx, addr)
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
	Senders []Sender
	Probe   *Probe
	Stored  func() (uint64, error)        // points that the node has stored
	CPU     func() (time.Duration, error) // processor time that it has used
	Warm    time.Duration                 // with as much as goes, before anything is measured
	// of a round: at capacity, at 0.8 of it, at three times of it
	Window time.Duration
	// Rounds is how often. A round is compared with itself: what a node stores
	// by the second is not the same from one minute to the next on a machine
	// that it shares.
	Rounds int
	// Enough ends the rounds early; it is told the best goodput so far. nil is
	// for all of them.
	Enough   func(best float64) bool
	Overload time.Duration // once more three times the capacity, at a stretch; 0 is for none
	Patience time.Duration // for the latency to come back
}

// Share is what a node stored under overload, as a share of its capacity: of
// points by the second, and by the second of its processor time. The latter is
// what other processes on the machine change little.
type Share struct{ Clock, CPU float64 }

func (s Share) most() float64 { return max(s.Clock, s.CPU) }

// Report is what came of it.
type Report struct {
	Capacity float64 // points a second: as much as goes without loss
	Rounds   Share   // under overload, in all rounds
	Long     Share   // under overload at a stretch
	Best     float64 // the larger share of the best round
	// under overload, as a multiple of the capacity: less than 3 where senders were held back
	Offered  float64
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

// run is an experiment under way.
type run struct {
	*Plan
	r          Report
	full, over yield           // of all rounds
	before     []time.Duration // the latency at 0.8 times the capacity, of each round
}

// Run offers as much as the node takes, 0.8 times that, and three times that, in
// turn, and then 0.8 times again until the latency is what it was.
func (p *Plan) Run(ctx context.Context) (Report, error) {
	x := &run{Plan: p}
	if _, err := x.phase(ctx, 0, p.Warm, nil); err != nil {
		return x.r, err
	}
	for range p.Rounds {
		if err := x.round(ctx); err != nil {
			return x.r, err
		}
		if p.Enough != nil && p.Enough(x.r.Best) {
			break
		}
	}
	x.r.Capacity = x.full.rate()
	x.r.Rounds = x.over.of(&x.full)
	if p.Overload > 0 {
		long, err := x.phase(ctx, overloadFactor*x.r.Capacity, p.Overload, &x.r.During)
		if err != nil {
			return x.r, err
		}
		x.r.Long = long.of(&x.full)
		x.over.add(long)
	}
	x.r.Offered = x.over.sent / x.over.took.Seconds() / x.r.Capacity
	return x.r, x.recover(ctx)
}

func (x *run) round(ctx context.Context) error {
	var before, meanwhile time.Duration
	full, err := x.phase(ctx, 0, x.Window, &meanwhile) // with the probe too: it takes processor time
	if err != nil {
		return err
	}
	if _, err = x.phase(ctx, calmFactor*full.rate(), x.Window, &before); err != nil {
		return err
	}
	over, err := x.phase(ctx, overloadFactor*full.rate(), x.Window, &x.r.During)
	if err != nil {
		return err
	}
	x.full.add(full)
	x.over.add(over)
	x.before = append(x.before, before)
	x.r.Best = max(x.r.Best, over.of(&full).most())
	return nil
}

// recover offers 0.8 times the capacity until the latency is what it was.
func (x *run) recover(ctx context.Context) error {
	slices.Sort(x.before)
	x.r.Before = x.before[len(x.before)/2]
	for ended := time.Now(); ; {
		if _, err := x.phase(ctx, calmFactor*x.r.Capacity, time.Second, &x.r.After); err != nil {
			return err
		}
		x.r.Back = time.Since(ended)
		if x.r.After <= time.Duration(backFactor*float64(x.r.Before)) {
			return nil
		}
		if x.r.Back > x.Patience {
			return fmt.Errorf("%v after the overload a point takes %v, before it %v", x.r.Back, x.r.After,
				x.r.Before)
		}
	}
}

// yield is what a node stored of what was sent to it.
type yield struct {
	sent, stored float64 // points
	took, cpu    time.Duration
}

func (y *yield) add(o yield) {
	*y = yield{y.sent + o.sent, y.stored + o.stored, y.took + o.took, y.cpu + o.cpu}
}

// rate is by the second, perCPU by the second of the node's processor time.
func (y *yield) rate() float64   { return y.stored / y.took.Seconds() }
func (y *yield) perCPU() float64 { return y.stored / y.cpu.Seconds() }

func (y *yield) of(full *yield) Share {
	return Share{y.rate() / full.rate(), y.perCPU() / full.perCPU()}
}

// phase drives the senders for a time, at a rate together, and returns what the
// node stored. latency gets the median of the probe meanwhile.
func (x *run) phase(ctx context.Context, rate float64, during time.Duration,
	latency *time.Duration) (yield, error) {
	ctx, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	before, err := x.Stored()
	used, cpuErr := x.CPU()
	if err = errors.Join(err, cpuErr); err != nil {
		return yield{}, err
	}
	began := time.Now()
	type end struct {
		messages int64
		err      error
	}
	ended := make(chan end, len(x.Senders))
	for _, s := range x.Senders {
		go func() {
			n, err := Drive(ctx, s, rate/float64(len(x.Senders)))
			ended <- end{n, err}
		}()
	}
	var errs []error
	if latency != nil {
		*latency, err = x.medianUntil(ctx)
		errs = append(errs, err)
	}
	sent := 0.0
	for i := range x.Senders {
		e := <-ended
		x.r.Messages += e.messages
		sent += float64(e.messages) * float64(x.Senders[i].Points())
		errs = append(errs, e.err)
	}
	after, err := x.Stored()
	now, cpuErr := x.CPU()
	return yield{sent, float64(after - before), time.Since(began), now - used},
		errors.Join(append(errs, err, cpuErr)...)
}

// medianUntil returns the median of the medians until ctx ends, of one at least.
func (x *run) medianUntil(ctx context.Context) (time.Duration, error) {
	var all []time.Duration
	for ctx.Err() == nil || len(all) == 0 {
		m, err := x.Probe.Median(probes)
		if err != nil {
			return 0, err
		}
		all = append(all, m)
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}
