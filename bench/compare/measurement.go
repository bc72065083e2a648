package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"dalmatiner/bench/corpus"
	"dalmatiner/bench/measure"
	"dalmatiner/bench/server"
)

const (
	daySeconds  = 86_400
	dayAgent    = 100 // its metrics are sent for a whole day
	hourAgent   = 101 // its metrics are sent for the last hour of it
	hourSeconds = 3_600
	// advanceSeconds is how far the data goes on before stores that close
	// blocks by the time of the data have closed all of the day.
	advanceSeconds = 8 * hourSeconds
	// warmRows make the series known, on disk too, before the load is measured.
	warmRows = 5
)

// sizes say how much is sent.
type sizes struct {
	series, rows int // of the load of many series
	live         int // series that send a point a second
	liveWarm     time.Duration
	liveMeasured time.Duration
	day          day
	tagged       int // series with tags
}

// The series of a sender are whole column groups of the store: connections
// drift apart in a load as fast as possible, and would make each other's points
// late in a group that two of them share.

// full is what the table is made of, quick tries whether everything works.
func full() sizes {
	return sizes{
		series:       senders * 98 * 256,
		rows:         180,
		live:         54_000,
		liveWarm:     10 * time.Second,
		liveMeasured: 20 * time.Second,
		day:          day{long: 60, wide: 2000},
		tagged:       1_000_000,
	}
}

func quick() sizes {
	return sizes{
		series:       senders * 10 * 256,
		rows:         180,
		live:         5_400,
		liveWarm:     5 * time.Second,
		liveMeasured: 15 * time.Second,
		day:          day{long: 20, wide: 200},
		tagged:       100_000,
	}
}

// day is a day of some series, and the last hour of it of many more.
type day struct {
	begin      int64 // Unix seconds, a whole hour
	long, wide int   // series of dayAgent, of hourAgent
}

func (d *day) end() int64 { return d.begin + daySeconds }

func (d *day) points() int64 { return int64(d.long)*daySeconds + int64(d.wide)*hourSeconds }

// loaded is what a load of many series cost.
type loaded struct {
	protocol string
	rows     int     // that were measured
	cpu      float64 // seconds per million points, flush and merge included
	rate     float64 // million points per second by the clock
	peak     int64   // resident bytes
	note     string
	err      error
}

// outcome is what was found of a competitor; a part that failed has its error.
type outcome struct {
	competitor *competitor
	version    string
	skipped    error // nothing was measured
	loads      []loaded
	cores      float64 // of the live load
	share      float64 // of its points that could be sent in time
	resting    int64   // resident bytes at its end
	liveErr    error
	space      float64 // bytes per point
	dayErr     error
	timings    []timing // of Q1, Q2, Q3
	askErr     error
	recorded   []recorded
	tags       *taggedSeries // nil where that was not measured
	notes      []string
}

// measurer measures competitors in a directory.
type measurer struct {
	*server.Env
	sizes
	parts   *regexp.Regexp // of what is measured
	corpora []*corpus.Corpus
}

// The parts of a measurement, by which they can be chosen.
const (
	loadPart       = "load"
	livePart       = "live"
	dayPart        = "day"
	recordingsPart = "recordings"
	tagsPart       = "tags"
)

// measure runs all loads of one competitor. Every load gets a new server on a new
// directory.
func (m *measurer) measure(ctx context.Context, p *competitor, version string) *outcome {
	out := &outcome{competitor: p, version: version}
	for i := range p.protocols {
		if !m.parts.MatchString(loadPart) {
			break
		}
		var l loaded
		l.err = m.with(ctx, p, func(s *instance) (err error) {
			l, err = m.load(ctx, s, &p.protocols[i])
			return err
		})
		l.protocol = p.protocols[i].name
		m.Logf("  %s: %.3g CPU s per million points, %.3g M points/s, %d MiB %s%v", l.protocol, l.cpu,
			l.rate, l.peak>>20, l.note, orNothing(l.err))
		out.loads = append(out.loads, l)
	}
	if m.parts.MatchString(livePart) {
		out.liveErr = m.with(ctx, p, func(s *instance) error { return m.live(ctx, s, out) })
		m.Logf("  live: %.3g cores, %d MiB%v", out.cores, out.resting>>20, orNothing(out.liveErr))
	}
	if m.parts.MatchString(dayPart) {
		out.dayErr = m.with(ctx, p, func(s *instance) error { return m.loadDay(ctx, s, out) })
		m.Logf("  day: %.3g bytes per point, queries %.3g%v%v", out.space, out.timings,
			orNothing(out.dayErr), orNothing(out.askErr))
	}
	if m.parts.MatchString(recordingsPart) {
		m.recordings(ctx, p, out)
	}
	if m.parts.MatchString(tagsPart) && p.tagging != nil {
		t := &taggedSeries{}
		t.err = m.with(ctx, p, func(s *instance) error { return m.tags(ctx, s, t) })
		m.Logf("  tags: %.3g s, %d MiB, %d MiB on disk, start %.3g s, lookups %.3g%v", t.seconds,
			t.resident>>20, t.disk>>20, t.start, t.timings, orNothing(t.err))
		out.tags = t
	}
	return out
}

func orNothing(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// with runs do on a new server, which is gone afterwards with all it wrote.
func (m *measurer) with(ctx context.Context, p *competitor, do func(*instance) error) (err error) {
	dir := filepath.Join(m.Dir, "data")
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := startServer(ctx, p, dir)
	if err != nil {
		return err
	}
	defer s.kill()
	if p.prepare != nil {
		if err := p.prepare(ctx, s); err != nil {
			return fmt.Errorf("preparing: %w", err)
		}
	}
	if err := do(s); err != nil {
		return fmt.Errorf("%w (its log ends: %s)", err, s.lastLog())
	}
	return nil
}

// load measures a load of many known series.
func (m *measurer) load(ctx context.Context, s *instance, p *protocol) (loaded, error) {
	out := loaded{protocol: p.name}
	rows := m.rows
	if s.competitor.rows > 0 {
		rows = min(rows, s.competitor.rows)
	}
	out.rows = rows
	slot := time.Now().Unix() - int64(warmRows+rows) - 60
	if err := m.sendRows(ctx, s, p, slot, warmRows); err != nil {
		return out, err
	}
	ready, err := s.settle(ctx)
	if err != nil {
		return out, err
	}
	if !ready {
		out.note = "not yet idle when the load began; "
	}
	before, err := s.cpuTime()
	if err != nil {
		return out, err
	}
	begun := time.Now()
	if err := m.sendRows(ctx, s, p, slot+warmRows, rows); err != nil {
		return out, err
	}
	points := float64(m.series) * float64(rows)
	out.rate = points / time.Since(begun).Seconds() / 1e6
	idle, err := s.settle(ctx)
	if err != nil {
		return out, err
	}
	if !idle {
		out.note += fmt.Sprintf("still busy %v after the load", settleTimeout)
	}
	after, err := s.cpuTime()
	if err != nil {
		return out, err
	}
	out.cpu = (after - before).Seconds() / points * 1e6
	if _, out.peak, err = s.memory(); err != nil {
		return out, err
	}
	return out, s.counted(ctx, int64(m.series)*int64(rows+warmRows))
}

func (m *measurer) sendRows(ctx context.Context, s *instance, p *protocol, slot int64,
	rows int) error {
	c, err := newCrowd(ctx, s, p, m.series)
	if err != nil {
		return err
	}
	defer c.abandon()
	return c.load(ctx, slot, rows)
}

// counted checks that the server has the points that were sent.
func (s *instance) counted(ctx context.Context, want int64) error {
	if s.competitor.count == nil {
		return nil
	}
	got, err := s.competitor.count(ctx, s)
	if err == nil && got != want {
		err = fmt.Errorf("%d points were sent, it has %d", want, got)
	}
	return err
}

// live measures what series cost that send a point a second.
func (m *measurer) live(ctx context.Context, s *instance, out *outcome) error {
	c, err := newCrowd(ctx, s, &s.competitor.protocols[0], m.sizes.live)
	if err != nil {
		return err
	}
	defer c.abandon()
	limited, cancel := context.WithTimeout(ctx, m.liveWarm+m.liveMeasured+time.Second)
	defer cancel()
	sent := make(chan error, 1)
	var points int64
	go func() {
		var err error
		points, err = c.live(limited)
		sent <- err
	}()
	watchErr := func() error {
		if err := measure.Pause(ctx, m.liveWarm); err != nil {
			return err
		}
		begun := time.Now()
		before, err := s.cpuTime()
		if err != nil {
			return err
		}
		if err := measure.Pause(ctx, m.liveMeasured); err != nil {
			return err
		}
		after, err := s.cpuTime()
		if err != nil {
			return err
		}
		out.cores = (after - before).Seconds() / time.Since(begun).Seconds()
		out.resting, _, err = s.memory()
		return err
	}()
	if err := errors.Join(watchErr, <-sent); err != nil {
		return err
	}
	// Senders that were held back have left out seconds.
	due := float64(m.sizes.live) * (m.liveWarm + m.liveMeasured).Seconds()
	out.share = min(1, float64(points)/due)
	return nil
}

// loadDay loads the day, and takes its space and the times of the questions.
func (m *measurer) loadDay(ctx context.Context, s *instance, out *outcome) error {
	d := m.day
	last := time.Now().Truncate(time.Minute).Unix()
	if !s.competitor.recent {
		last = time.Now().Add(-12 * time.Hour).Truncate(24 * time.Hour).Unix()
	}
	d.begin = last - daySeconds
	if err := sendDay(ctx, s, &d); err != nil {
		return err
	}
	points := d.points()
	if s.competitor.advance {
		if err := sendOne(ctx, s, d.end()+advanceSeconds); err != nil {
			return err
		}
		points++
	}
	var err error
	if out.space, err = s.spaceOf(ctx, points, d.points(), out); err != nil {
		return err
	}
	out.timings, out.askErr = askAll(ctx, s, &d)
	return nil
}

// sendDay sends the day in the order of its time over two connections, and an
// hour's many series beside the others.
func sendDay(ctx context.Context, s *instance, d *day) error {
	p := &s.competitor.protocols[0]
	long, err := newSender(ctx, s, p, dayAgent, d.long)
	if err != nil {
		return err
	}
	defer long.conn.abandon()
	wide, err := newSender(ctx, s, p, hourAgent, d.wide)
	if err != nil {
		return err
	}
	defer wide.conn.abandon()
	last := d.end() - hourSeconds
	if err := long.span(ctx, d.begin, last, messagePoints/int64(d.long)); err != nil {
		return err
	}
	for at, together := last, messagePoints/int64(d.wide); at < d.end(); at += together {
		to := min(at+together, d.end())
		if err := errors.Join(long.span(ctx, at, to, together),
			wide.span(ctx, at, to, together)); err != nil {
			return err
		}
	}
	return errors.Join(long.conn.finish(ctx), wide.conn.finish(ctx))
}

// sendOne sends one point of one series.
func sendOne(ctx context.Context, s *instance, slot int64) error {
	one, err := newSender(ctx, s, &s.competitor.protocols[0], dayAgent, 1)
	if err != nil {
		return err
	}
	defer one.conn.abandon()
	if err := one.span(ctx, slot, slot+1, 1); err != nil {
		return err
	}
	return one.conn.finish(ctx)
}

// askAll asks every question of a server that has just started.
func askAll(ctx context.Context, old *instance, d *day) ([]timing, error) {
	var out []timing
	for _, q := range d.questions() {
		s, err := startAsked(ctx, old.competitor, old.dir)
		if err != nil {
			return out, err
		}
		if _, err := s.awaitIdle(ctx); err != nil {
			s.kill()
			return out, err
		}
		t, err := q.time(ctx, s, q.want(d, old.competitor.behind))
		if err = errors.Join(err, s.stop()); err != nil {
			return out, err
		}
		out = append(out, t)
	}
	return out, nil
}
