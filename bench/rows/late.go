package rows

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"dalmatiner/bench/load"
	"dalmatiner/bench/measure"
	"dalmatiner/bench/server"
	"dalmatiner/client"
	"dalmatiner/haggar"
	"dalmatiner/internal/codec/point"
)

const (
	lateAgents = 4
	lateDays   = 30   // of history
	lateHours  = 4    // of the load, without late points and then with them
	lateFlush  = 720  // rows from flush to flush, as flush.interval does it by the clock
	lateHour   = 3600 // rows a point of the last hour is held back for at most

	hourOdds  = 100  // one point in so many comes late within an hour
	monthOdds = 1000 // and one in so many within a month

	writtenBudget = 10 // bytes written ÷ bytes that came late
	slowerBudget  = 10 // queries meanwhile ÷ before
)

// held is a point that is sent later.
type held struct {
	agent, metric int
	slot          int64
	word          uint64
}

// lateLoad sends rows to a store and keeps some of the points back.
type lateLoad struct {
	c       haggar.Config
	months  int // the first metrics of each agent have a history
	conns   []*client.Client
	streams []*client.Stream
	iters   [][]haggar.Iter
	keys    [][][]byte
	rand    *rand.Rand

	hour  [lateHour + 1][]held // by row, round and round
	month []held
	late  int64 // points that came late
	sent  int64
}

// late is what late points cost: the same load without them and with them, on
// top of a month of some of its series.
func (b *bench) late(ctx context.Context) error {
	s, err := b.Start(filepath.Join(b.Dir, "late"))
	if err != nil {
		return err
	}
	defer s.Remove()
	months := load.GroupWidth / 4
	if b.Quick {
		months /= 2
	}
	c := load.Uniform(lateAgents, 10*load.GroupWidth, lateHours*3600)
	c.Walk = true
	end := time.Now().Unix() - 6*smallWindow
	first := (end-2*c.Steps)/largeWindow*largeWindow - lateDays*dayRows // the load begins within a day
	l, err := newLateLoad(ctx, s.TCP, c, months)
	if err != nil {
		return err
	}
	defer l.close()
	from := first + lateDays*dayRows
	begun := time.Now()
	if err := l.history(ctx, s, first, from); err != nil {
		return err
	}
	b.Logf("  a month of %d series written in %.0f s, %d points held back", lateAgents*months,
		time.Since(begun).Seconds(), len(l.month))
	queries := lateQueries(&l.c, from)
	before, err := askAll(ctx, s, queries, true)
	if err != nil {
		return err
	}
	plain, err := measureLate(ctx, s, queries, func() error {
		return l.rows(ctx, s, from, from+c.Steps, false)
	})
	if err != nil {
		return err
	}
	from += c.Steps
	with, err := measureLate(ctx, s, queries, func() error {
		if err := l.rows(ctx, s, from, from+c.Steps, true); err != nil {
			return err
		}
		return l.rest(ctx, s, from+c.Steps+4*smallWindow)
	})
	if err != nil {
		return err
	}
	area := fmt.Sprintf("late, 1 %% in an hour, 0.1 %% in %d days", lateDays)
	b.lateCost(area, l.late, l.sent, &plain, &with)
	b.lateQueryTimes(area, queries, before, &plain, &with)
	if err := b.lateAfter(ctx, s, area, queries, before); err != nil {
		return err
	}
	return s.Stop()
}

func newLateLoad(ctx context.Context, addr string, c haggar.Config, months int) (*lateLoad, error) {
	l := &lateLoad{c: c, months: months, rand: rand.New(rand.NewPCG(1, 2))}
	for a := range c.Agents {
		conn, err := client.Dial(ctx, addr)
		if err != nil {
			l.close()
			return nil, err
		}
		l.conns = append(l.conns, conn)
		stream, err := conn.OpenStream(c.Bucket, 1)
		if err != nil {
			l.close()
			return nil, err
		}
		l.streams = append(l.streams, stream)
		var keys [][]byte
		var iters []haggar.Iter
		for i := range c.Metrics {
			keys, iters = append(keys, c.AppendKey(nil, a, i)), append(iters, c.Series(a, i))
		}
		l.keys, l.iters = append(l.keys, keys), append(l.iters, iters)
	}
	return l, nil
}

func (l *lateLoad) close() {
	for _, c := range l.conns {
		_ = c.Close() // what failed has been reported by the stream
	}
}

// history sends the slots from first to past of the series that have one, but
// for as many points as come late within a month in a load, and merges them.
func (l *lateLoad) history(ctx context.Context, s *server.Server, first, past int64) error {
	series := int64(l.c.Agents * l.months)
	odds := series * (past - first) * monthOdds / (int64(l.c.Agents*l.c.Metrics) * l.c.Steps)
	for slot := first; slot < past; slot++ {
		err := l.row(slot, l.months, func(h held) bool {
			if l.rand.Int64N(odds) != 0 {
				return false
			}
			l.month = append(l.month, h)
			return true
		})
		if err != nil {
			return err
		}
	}
	l.rand.Shuffle(len(l.month), func(i, j int) { l.month[i], l.month[j] = l.month[j], l.month[i] })
	if err := l.flush(ctx, s); err != nil {
		return err
	}
	_, err := s.Client().Merge(ctx)
	return err
}

// row sends a slot of the first metrics of every agent, but for the points that
// are to be kept.
func (l *lateLoad) row(slot int64, metrics int, keep func(held) bool) error {
	for a, stream := range l.streams {
		if err := stream.BatchStart(slot); err != nil {
			return err
		}
		iters, keys := l.iters[a], l.keys[a]
		for i := range metrics {
			word := point.FromInt(iters[i].At(slot))
			if keep(held{a, i, slot, word}) {
				continue
			}
			l.sent++
			if err := stream.BatchPoint(keys[i], word); err != nil {
				return err
			}
		}
		if err := stream.BatchEnd(); err != nil {
			return err
		}
	}
	return nil
}

// rows sends the slots from first to past of all series, with late points or
// without, and flushes as often as the clock would have it.
func (l *lateLoad) rows(ctx context.Context, s *server.Server, first, past int64, late bool) error {
	month := 0
	for slot := first; slot < past; slot++ {
		err := l.row(slot, l.c.Metrics, func(h held) bool {
			if !late || l.rand.Uint32N(hourOdds) != 0 {
				return false
			}
			due := (slot + 1 + l.rand.Int64N(lateHour)) % int64(len(l.hour))
			l.hour[due] = append(l.hour[due], h)
			return true
		})
		if err != nil {
			return err
		}
		if late {
			upTo := int((slot + 1 - first) * int64(len(l.month)) / (past - first))
			if err := l.sendHeld(l.month[month:upTo]); err != nil {
				return err
			}
			month = upTo
			due := slot % int64(len(l.hour))
			if err := l.sendHeld(l.hour[due]); err != nil {
				return err
			}
			l.hour[due] = l.hour[due][:0]
		}
		if (slot+1-first)%lateFlush == 0 {
			if err := l.flush(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *lateLoad) sendHeld(points []held) error {
	for _, h := range points {
		if err := l.streams[h.agent].Points(l.keys[h.agent][h.metric], h.slot, h.word); err != nil {
			return err
		}
	}
	l.late += int64(len(points))
	l.sent += int64(len(points))
	return nil
}

// flush waits until the store has everything, and flushes it.
func (l *lateLoad) flush(ctx context.Context, s *server.Server) error {
	for _, stream := range l.streams {
		if err := stream.Flush(); err != nil {
			return err
		}
	}
	for {
		stored, err := s.Stored(ctx, l.c.Bucket)
		if err != nil {
			return err
		}
		if int64(stored) == l.sent {
			_, err = s.Client().Flush(ctx)
			return err
		}
		if err := measure.Pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

// rest sends what is still held back, and a point of every agent at a slot that
// closes the windows before it.
func (l *lateLoad) rest(ctx context.Context, s *server.Server, slot int64) error {
	if err := l.row(slot, 1, func(held) bool { return false }); err != nil {
		return err
	}
	for _, points := range l.hour {
		if err := l.sendHeld(points); err != nil {
			return err
		}
	}
	return l.flush(ctx, s)
}

// lateQueries are like Q1 and Q2, over the last day of the history: an hour of
// one series, a day of seven.
func lateQueries(c *haggar.Config, end int64) []load.Query {
	hour, day := load.Over(end-3600, end, 60), load.Over(end-dayRows, end, 3600)
	q1 := load.Query{What: "Q1", Want: [][]float64{hour.Max(c, 0, 18)},
		Text: fmt.Sprintf("SELECT max(%s BUCKET %s, 1m) %s", load.Name(c, 0, 18), c.Bucket, hour.DQL())}
	q2 := load.Query{What: "Q2"}
	for n, i := range []int{4, 6, 8, 9, 18, 19, 28} {
		q2.Text += fmt.Sprintf("%smax(%s BUCKET %s, 1h)", []string{"SELECT ", ", "}[min(n, 1)],
			load.Name(c, 1, i), c.Bucket)
		q2.Want = append(q2.Want, day.Max(c, 1, i))
	}
	q2.Text += " " + day.DQL()
	return []load.Query{q1, q2}
}

const (
	backfillAgents  = 2
	backfillMetrics = 50
	plainDays       = 10 // of other series, on time, to compare the queries with
)

// backfill is a year of the past of series that send at present: all of it comes
// behind their open blocks.
func (b *bench) backfill(ctx context.Context) error {
	s, err := b.Start(filepath.Join(b.Dir, "backfill"))
	if err != nil {
		return err
	}
	defer s.Remove()
	days := int64(365)
	if b.Quick {
		days = lateDays
	}
	last := load.Uniform(backfillAgents, backfillMetrics, dayRows)
	last.Walk = true
	// its windows are closed once a point comes later
	last.Start = last.Start.Add(-6 * smallWindow * time.Second)
	past := last
	past.Start = last.Start.Add(time.Duration(-days*dayRows) * time.Second)
	past.Steps = days * dayRows
	queries := lateQueries(&last, last.Start.Unix()+last.Steps)
	if _, err := load.Send(ctx, b.Env, s, last); err != nil {
		return err
	}
	before, err := askAll(ctx, s, queries, true)
	if err != nil {
		return err
	}
	other := past
	other.Bucket, other.Steps = "other", plainDays*dayRows
	plain, err := measureLate(ctx, s, queries, func() error {
		_, err := load.Send(ctx, b.Env, s, other)
		return err
	})
	if err != nil {
		return err
	}
	series := int64(backfillAgents * backfillMetrics)
	with, err := measureLate(ctx, s, queries, func() error {
		if _, err := load.Send(ctx, b.Env, s, past); err != nil {
			return err
		}
		further := last
		further.Start = last.Start.Add(time.Duration(last.Steps+4*smallWindow) * time.Second)
		further.Steps = 1
		if _, err := load.Send(ctx, b.Env, s, further); err != nil {
			return err
		}
		_, err := s.Client().Flush(ctx)
		return err
	})
	if err != nil {
		return err
	}
	area := fmt.Sprintf("backfill, %d days of %d series that send", days, series)
	b.lateCost(area, past.Steps*series, past.Steps*series, &phase{}, &with)
	b.lateQueryTimes(area, queries, before, &plain, &with)
	stored, err := s.Stored(ctx, past.Bucket)
	if err != nil {
		return err
	}
	if want := (past.Steps + last.Steps + 1) * series; int64(stored) != want {
		return fmt.Errorf("%d points are stored, %d were sent", stored, want)
	}
	if err := b.lateAfter(ctx, s, area, lateQueries(&past, past.Start.Unix()+days/2*dayRows),
		before); err != nil {
		return err
	}
	return s.Stop()
}
