// Package steps loads a store in steps, beyond what it takes and back, and
// tells and draws what became of it.
package steps

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"dalmatiner/bench/measure"
	"dalmatiner/bench/report"
	"dalmatiner/bench/server"
	"dalmatiner/test/overload"
)

// The published load went up in steps of metrics a second, each with a point a
// second. Here the same steps go on where those ended, beyond what the store
// takes, and back down: whether it is itself again is the question.
var stepRates = []float64{
	200e3, 300e3, 400e3, 600e3, 800e3,
	1.6e6, 3.2e6, 6.4e6, 12.8e6, 25.6e6, 51.2e6,
	6.4e6, 800e3, 200e3,
}

const (
	stepLength = 40 * time.Second
	stepQuick  = 7 * time.Second
	// stepSettle of a step are in its charts and not in its line of the table.
	stepSettle = 2 * time.Second

	// begun is how long ago the slots of the senders begin: they send months of
	// them.
	begun = 2 * 365 * 24 * time.Hour

	stepSenders = 4
	stepParts   = 64 // of 1,000 series each: whole groups, so that senders share none
	stepsBucket = "load"
	probePause  = 5 * time.Millisecond
)

// Result is what was seen of a run, and while it runs its state.
type Result struct {
	head    report.Head
	s       *server.Server
	length  time.Duration
	senders []overload.Sender
	began   time.Time
	now     counts // of the last look
	took    latencyLog
	steps   []step
	seconds []second
	sent    int64 // points
}

// counts are what a process and its account have counted so far.
type counts struct {
	at              time.Time
	stored, refused uint64
	cpu, sender     measure.CPU // of the server, of this process
	read, written   int64
}

// step is one line of the table.
type step struct {
	offered  float64 // points a second
	begin    time.Duration
	took     time.Duration
	from, to counts
	visible  []time.Duration // sorted
	durable  []time.Duration // sorted
	resident int64
	errors   uint64
}

// second is one dot of the charts.
type second struct {
	at, offered, stored, cpu, visible, durable float64 // s, points/s, points/s, cores, s, s
}

// Run loads a store in steps, shorter ones where it is to be quick, and returns
// what it saw.
func Run(ctx context.Context, env *server.Env, head report.Head, quick bool) (*Result, error) {
	length := stepLength
	if quick {
		length = stepQuick
	}
	s, err := env.Start(filepath.Join(env.Dir, "steps"))
	if err != nil {
		return nil, err
	}
	defer s.Remove()
	first := time.Now().Add(-begun).Unix()
	r := &Result{head: head, s: s, length: length}
	for i := range stepSenders {
		stream, err := overload.NewStream(ctx, s.TCP, stepsBucket, i, stepParts, first)
		if err != nil {
			return nil, err
		}
		r.senders = append(r.senders, stream)
	}
	stop, err := r.probe(ctx, first)
	if err != nil {
		return nil, err
	}
	r.began = time.Now()
	if r.now, err = r.look(ctx); err != nil {
		return nil, errors.Join(err, stop())
	}
	for _, rate := range stepRates {
		if err := r.step(ctx, rate); err != nil {
			return nil, errors.Join(fmt.Errorf("step of %.0f points/s: %w", rate, err), stop())
		}
		last := &r.steps[len(r.steps)-1]
		env.Logf("  %.0f k offered, %.0f k stored, p99 %v", rate/1e3, last.stored()/1e3,
			p99(last.visible))
	}
	if err := stop(); err != nil {
		return nil, err
	}
	missing, err := s.Unaccounted(ctx, stepsBucket, r.sent, 0)
	if err == nil && missing != 0 {
		err = fmt.Errorf("%.0f of %d points that were sent are not in the account", missing, r.sent)
	}
	return r, errors.Join(err, s.Stop())
}

// step offers a rate for the length of a step.
func (r *Result) step(ctx context.Context, rate float64) error {
	st := step{offered: rate, begin: time.Since(r.began)}
	driving, cancel := context.WithTimeout(ctx, r.length)
	defer cancel()
	var drivers sync.WaitGroup
	sent, failed := make([]int64, len(r.senders)), make([]error, len(r.senders))
	for i, s := range r.senders {
		drivers.Go(func() {
			sent[i], failed[i] = overload.Drive(driving, s, rate/float64(len(r.senders)))
		})
	}
	err := r.watchStep(driving, &st)
	drivers.Wait()
	if err = errors.Join(append(failed, err, ctx.Err())...); err != nil {
		return err
	}
	for _, n := range sent {
		r.sent += n * int64(r.senders[0].Points())
	}
	if st.to, err = r.look(ctx); err != nil {
		return err
	}
	// Points that came when the look was late belong to this step still.
	r.now = st.to
	if st.resident, _, err = r.s.Memory(); err != nil {
		return err
	}
	st.took = st.to.at.Sub(st.from.at)
	st.visible, st.durable = r.took.between(st.from.at, st.to.at)
	st.errors = st.to.refused - st.from.refused
	r.steps = append(r.steps, st)
	return nil
}

// watchStep looks at the server every second until the step ends.
func (r *Result) watchStep(driving context.Context, st *step) error {
	ctx := context.WithoutCancel(driving) // a look that has begun is finished
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	st.from = r.now
	settled := time.Now().Add(stepSettle)
	for {
		select {
		case <-driving.Done():
			return nil
		case <-tick.C:
		}
		now, err := r.look(ctx)
		if err != nil {
			return err
		}
		r.second(st.offered, r.now, now)
		r.now = now
		if !settled.IsZero() && now.at.After(settled) {
			st.from, settled = now, time.Time{}
		}
	}
}

// second adds a dot to the charts.
func (r *Result) second(offered float64, from, to counts) {
	took := to.at.Sub(from.at).Seconds()
	visible, durable := r.took.between(from.at, to.at)
	r.seconds = append(r.seconds, second{
		at: to.at.Sub(r.began).Seconds(), offered: offered, stored: float64(to.stored-from.stored) / took,
		cpu: to.cpu.Sub(from.cpu).Sum().Seconds() / took, visible: p99(visible).Seconds(),
		durable: p99(durable).Seconds(),
	})
}

// look reads all counters.
func (r *Result) look(ctx context.Context) (c counts, err error) {
	account, err := r.s.Client().Account(ctx, "", 0)
	if err != nil {
		return c, err
	}
	for i := range account.Rows {
		if row := &account.Rows[i]; row.Bucket == stepsBucket {
			c.stored = row.Accepted + row.Duplicate + row.Conflicting + row.Late
			c.refused = row.RefusedTotal()
		}
	}
	c.at = time.Now()
	if c.cpu, err = r.s.CPU(); err != nil {
		return c, err
	}
	if c.sender, err = measure.Time(os.Getpid()); err != nil {
		return c, err
	}
	c.read, c.written, err = r.s.Transferred()
	return c, err
}

// probe measures latencies until the function it returns is called.
func (r *Result) probe(ctx context.Context, first int64) (stop func() error, err error) {
	visible, err := overload.NewVisible(ctx, r.s.TCP, first)
	if err != nil {
		return nil, err
	}
	durable, err := overload.NewProbe(ctx, r.s.TCP)
	if err != nil {
		return nil, errors.Join(err, visible.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	var probes sync.WaitGroup
	var failed [2]error
	probes.Go(func() {
		for failed[0] == nil && measure.Pause(ctx, probePause) == nil {
			var took time.Duration
			if took, failed[0] = visible.Measure(context.WithoutCancel(ctx)); failed[0] == nil {
				r.took.add(&r.took.visible, took)
			}
		}
	})
	probes.Go(func() {
		for failed[1] == nil && ctx.Err() == nil {
			var took time.Duration
			if took, failed[1] = durable.Median(1); failed[1] == nil {
				r.took.add(&r.took.durable, took)
			}
		}
	})
	return func() error {
		cancel()
		probes.Wait()
		return errors.Join(failed[0], failed[1], visible.Close(), durable.Close())
	}, nil
}

// latencyLog holds what the probes measured, by the time of its end.
type latencyLog struct {
	mu               sync.Mutex
	visible, durable []measured
}

type measured struct {
	at   time.Time
	took time.Duration
}

func (l *latencyLog) add(to *[]measured, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*to = append(*to, measured{time.Now(), took})
}

// between returns sorted what ended in a time.
func (l *latencyLog) between(from, to time.Time) (visible, durable []time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return within(l.visible, from, to), within(l.durable, from, to)
}

func within(all []measured, from, to time.Time) []time.Duration {
	var out []time.Duration
	for _, m := range all {
		if m.at.After(from) && !m.at.After(to) {
			out = append(out, m.took)
		}
	}
	slices.Sort(out)
	return out
}

// p99 returns the 99th percentile of sorted values, 0 of none.
func p99(sorted []time.Duration) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)*99/100]
}

// Figures of a step, per second.
func (s *step) stored() float64 { return float64(s.to.stored-s.from.stored) / s.took.Seconds() }
func (s *step) cores() float64 {
	return s.to.cpu.Sub(s.from.cpu).Sum().Seconds() / s.took.Seconds()
}
func (s *step) senderCores() float64 {
	return s.to.sender.Sub(s.from.sender).Sum().Seconds() / s.took.Seconds()
}
func (s *step) readRate() float64 { return float64(s.to.read-s.from.read) / s.took.Seconds() }
func (s *step) writtenRate() float64 {
	return float64(s.to.written-s.from.written) / s.took.Seconds()
}
