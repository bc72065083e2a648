package rows

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dalmatiner/bench/load"
	"dalmatiner/bench/measure"
	"dalmatiner/bench/report"
	"dalmatiner/bench/server"
	"dalmatiner/haggar"
	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/model/metric"
)

const (
	dayAgents  = 5
	dayMetrics = 8 * load.GroupWidth // each agent's: 2,048
	dayRows    = 86_400
	repeats    = 50
)

// timed is a query with its budgets in ms: first for the first answer, warm for the
// median of those that are computed after it, and kept for the median of those that the
// node has kept.
type timed struct {
	load.Query
	first, warm, kept float64
	// those that are kept come nearly as fast as those of a server that has the answer ready
	asReady bool

	// later are the same question for ranges that end a step later each, up to that of the
	// query; nil where nobody asks.
	later []load.Query
}

// day loads a day of 10 k series of the mix, and takes its size on disk and
// the times of the published queries.
func (b *bench) day(ctx context.Context) error {
	data := filepath.Join(b.Dir, "day")
	s, err := b.Start(data)
	if err != nil {
		return err
	}
	defer func() { s.Remove() }()
	c := load.Uniform(dayAgents, dayMetrics, dayRows)
	c.Walk = true
	c.Start = closed(largeWindow)
	sum, err := load.Send(ctx, b.Env, s, c)
	if err != nil {
		return err
	}
	b.Logf("  a day of %d series written in %.0f s", dayAgents*dayMetrics, sum.Seconds)
	if err := b.mergeAll(ctx, s, c, sum.Points); err != nil {
		return err
	}
	f, err := diskFigure(s, sum.Points, entropyOfMix(), mixBudget)
	if err != nil {
		return err
	}
	f.What = "the published mix, 10 k series, a day"
	b.table.Add(f)
	s, err = b.timeQueries(ctx, s, data, append(dayQueries(&c), chartsOfDay(&c)...))
	return err
}

// timeQueries times each query in a new process: its first answer finds no index
// loaded. It ends the one that is given and returns the last one, which has ended
// as well unless there is an error.
func (b *bench) timeQueries(ctx context.Context, s *server.Server, data string,
	queries []timed) (*server.Server, error) {
	for _, q := range queries {
		if err := s.Stop(); err != nil {
			return s, err
		}
		next, err := b.Start(data)
		if err != nil {
			return s, err
		}
		s = next
		if err := b.timeQuery(ctx, s, &q); err != nil {
			return s, fmt.Errorf("%s: %w", q.What, err)
		}
	}
	return s, s.Stop()
}

// dayQueries returns the published queries over series of the mix, ending at
// the end of the day.
func dayQueries(c *haggar.Config) []timed {
	end := c.Start.Unix() + dayRows
	hour, day := load.Over(end-3600, end, 60), load.Over(end-dayRows, end, 3600)
	q1 := timed{first: 2, warm: 0.15, asReady: true,
		Query: load.Query{What: "Q1 max per minute, 1 h, one series",
			Text: fmt.Sprintf("SELECT max(%s BUCKET %s, 1m) %s", load.Name(c, 2, 18), c.Bucket, hour.DQL()),
			Want: [][]float64{hour.Max(c, 2, 18)},
		}}
	var fields []string
	q2 := timed{
		first:   5,
		warm:    0.5,
		asReady: true,
		Query:   load.Query{What: "Q2 max per hour, 1 d, seven series"},
	}
	for _, i := range []int{4, 6, 8, 9, 18, 19, 28} {
		fields = append(fields, fmt.Sprintf("max(%s BUCKET %s, 1h)", load.Name(c, 3, i), c.Bucket))
		q2.Want = append(q2.Want, day.Max(c, 3, i))
	}
	q2.Text = "SELECT " + strings.Join(fields, ", ") + " " + day.DQL()
	all := strings.TrimSuffix(load.Name(c, 1, 0), metric.Quote(fmt.Sprintf("%6d", 0))) + "*"
	const steps = 60
	wide := load.Over(hour.From-(repeats-1)*steps, end, steps)
	means := wide.Mean(c, 1)
	mean := [][]float64{means[repeats-1:]}
	q3 := func(i int64) load.Query {
		span := load.Over(wide.From+i*steps, wide.From+i*steps+3600, steps)
		return load.Query{What: "Q3 average of 2,048 series per minute, 1 h",
			Want: [][]float64{means[i : i+3600/steps]},
			Text: fmt.Sprintf("SELECT avg(avg(%s BUCKET %s, 1m)) %s", all, c.Bucket, span.DQL())}
	}
	third := timed{warm: 30, kept: 0.3, Query: q3(repeats - 1)}
	for i := range int64(repeats) {
		third.later = append(third.later, q3(i))
	}
	return []timed{q1, q2, third,
		{warm: 30, Query: load.Query{What: "Q3, series first: avg(avg(…), 1m)", Want: mean,
			Text: fmt.Sprintf("SELECT avg(avg(%s BUCKET %s), 1m) %s", all, c.Bucket, hour.DQL())}},
	}
}

// timeQuery asks a freshly started server once. Then it asks again in three ways: with everything
// computed anew, as a client that repeats itself, and for a range that moves on. It asks a server
// that has the answer ready as often.
func (b *bench) timeQuery(ctx context.Context, s *server.Server, q *timed) error {
	first, body, err := ask(ctx, s, true, q.Query)
	if err != nil {
		return err
	}
	again := slices.Repeat([]load.Query{q.Query}, repeats)
	computed, _, err := ask(ctx, s, true, again...)
	if err != nil {
		return err
	}
	repeated, _, err := ask(ctx, s, false, again...)
	if err != nil {
		return err
	}
	ready, err := server.StartAnswer(body)
	if err != nil {
		return err
	}
	defer ready.Kill()
	least, _, err := ask(ctx, ready, false, again...)
	if err != nil {
		return err
	}
	const area = "query over HTTP"
	b.table.Add(report.Figure{Area: area, What: q.What + ", first", Unit: "ms", Value: first[0],
		Budget: q.first,
		Note:   "process just started, page cache as it is"})
	f := report.Median(area, q.What+", computed", "ms", computed).Within(q.warm)
	f.Note = fmt.Sprintf(
		"`cache=off`, median of %d in a row; every answer compared with what was sent", repeats)
	b.table.Add(f)
	atOnce, _ := measure.Median(least)
	if q.asReady {
		q.kept = atOnce + overReady
	}
	f = report.Median(area, q.What+", repeated", "ms", repeated).Within(q.kept)
	f.Note = fmt.Sprintf("the same in a row; of a net/http server that has it ready %s",
		measure.Number(atOnce))
	b.table.Add(f)
	if q.later == nil {
		return nil
	}
	moving, _, err := ask(ctx, s, false, q.later...)
	if err != nil {
		return err
	}
	f = report.Median(area, q.What+", one step later", "ms", moving[1:]).Within(stepLater)
	f.Note = fmt.Sprintf("median of %d, each for a range one step later than the one before; the "+
		"slowest %s", len(moving)-1, measure.Number(slices.Max(moving[1:])))
	b.table.Add(f)
	return nil
}

// Budgets in ms: of a repeated answer beyond that of a server that has it ready, and of one for
// the range one step later.
const (
	overReady = 0.05
	stepLater = 1.5
)

// ask asks a server so many queries over one connection, and returns how long each took in ms
// and the last answer. They are checked when all are there: the next question comes at once.
func ask(ctx context.Context, s *server.Server, anew bool, list ...load.Query) (ms []float64,
	body []byte, err error) {
	client := s.Client()
	client.HTTP, client.NoCache = &http.Client{Timeout: time.Minute}, anew
	defer client.HTTP.CloseIdleConnections()
	if err := connect(client); err != nil {
		return nil, nil, err
	}
	bodies := make([]bytes.Buffer, len(list))
	for i := range bodies {
		client.Width = list[i].Width
		begun := time.Now()
		if err := client.CopyQuery(ctx, &bodies[i], list[i].Text); err != nil {
			return nil, nil, err
		}
		ms = append(ms, float64(time.Since(begun).Nanoseconds())/1e6)
	}
	for i := range bodies {
		if err := list[i].Check(bodies[i].Bytes()); err != nil {
			return nil, nil, err
		}
	}
	return ms, bodies[len(list)-1].Bytes(), nil
}

// connect opens the connection that the queries go over.
func connect(c *admin.Client) error {
	resp, err := c.HTTP.Get("http://" + c.Addr + "/health")
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return err
}
