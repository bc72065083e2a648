package rows

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"dalmatiner/bench/load"
	"dalmatiner/bench/measure"
	"dalmatiner/bench/report"
	"dalmatiner/bench/server"
	"dalmatiner/internal/admin"
	"dalmatiner/internal/haggar"
	"dalmatiner/internal/metric"
)

const (
	dayAgents  = 5
	dayMetrics = 8 * load.GroupWidth // each agent's: 2,048
	dayRows    = 86_400
	repeats    = 50
)

// timed is a query with its budgets in ms: for the first answer, and for the
// median of those after it.
type timed struct {
	load.Query
	first, warm float64
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
	s, err = b.timeQueries(ctx, s, data, dayQueries(&c))
	return err
}

// timeQueries times each query in a new process: its first answer finds no index
// loaded. It ends the one that is given and returns the last one, which has ended
// as well unless there is an error.
func (b *bench) timeQueries(ctx context.Context, s *server.Server, data string, queries []timed) (*server.Server, error) {
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
	q1 := timed{first: 2, warm: 0.15, Query: load.Query{What: "Q1 max per minute, 1 h, one series",
		Text: fmt.Sprintf("SELECT max(%s BUCKET %s, 1m) %s", load.Name(c, 2, 18), c.Bucket, hour.DQL()),
		Want: [][]float64{hour.Max(c, 2, 18)},
	}}
	var fields []string
	q2 := timed{first: 5, warm: 0.5, Query: load.Query{What: "Q2 max per hour, 1 d, seven series"}}
	for _, i := range []int{4, 6, 8, 9, 18, 19, 28} {
		fields = append(fields, fmt.Sprintf("max(%s BUCKET %s, 1h)", load.Name(c, 3, i), c.Bucket))
		q2.Want = append(q2.Want, day.Max(c, 3, i))
	}
	q2.Text = "SELECT " + strings.Join(fields, ", ") + " " + day.DQL()
	all := strings.TrimSuffix(load.Name(c, 1, 0), metric.Quoted(fmt.Sprintf("%6d", 0))) + "*"
	mean := [][]float64{hour.Mean(c, 1)}
	return []timed{q1, q2,
		{warm: 30, Query: load.Query{What: "Q3 average of 2,048 series per minute, 1 h", Want: mean,
			Text: fmt.Sprintf("SELECT avg(avg(%s BUCKET %s, 1m)) %s", all, c.Bucket, hour.DQL())}},
		{warm: 30, Query: load.Query{What: "Q3, series first: avg(avg(…), 1m)", Want: mean,
			Text: fmt.Sprintf("SELECT avg(avg(%s BUCKET %s), 1m) %s", all, c.Bucket, hour.DQL())}},
	}
}

// timeQuery asks a server that has just started once, and then again, and a server
// that has the answer ready as often.
func (b *bench) timeQuery(ctx context.Context, s *server.Server, q *timed) error {
	first, body, err := askAgain(ctx, s, &q.Query, 1)
	if err != nil {
		return err
	}
	times, _, err := askAgain(ctx, s, &q.Query, repeats)
	if err != nil {
		return err
	}
	ready, err := server.StartAnswer(body)
	if err != nil {
		return err
	}
	defer ready.Kill()
	least, _, err := askAgain(ctx, ready, &q.Query, repeats)
	if err != nil {
		return err
	}
	b.table.Add(report.Figure{Area: "query over HTTP", What: q.What + ", first", Unit: "ms", Value: first[0], Budget: q.first,
		Note: "process just started, page cache as it is"})
	f := report.Median("query over HTTP", q.What+", again", "ms", times).Within(q.warm)
	atOnce, _ := measure.Median(least)
	f.Note = fmt.Sprintf("median of %d in a row; every answer compared with what was sent; of a net/http server that has it ready %s",
		repeats, measure.Number(atOnce))
	b.table.Add(f)
	return nil
}

// askAgain asks a server so many times over one connection, and returns how long
// each took in ms and the last answer. They are checked when all are there: the
// next question comes at once.
func askAgain(ctx context.Context, s *server.Server, q *load.Query, times int) (ms []float64, body []byte, err error) {
	client := s.Client()
	client.HTTP = &http.Client{Timeout: time.Minute}
	defer client.HTTP.CloseIdleConnections()
	if err := connect(client); err != nil {
		return nil, nil, err
	}
	bodies := make([]bytes.Buffer, times)
	for i := range bodies {
		begun := time.Now()
		if err := client.CopyQuery(ctx, &bodies[i], q.Text); err != nil {
			return nil, nil, err
		}
		ms = append(ms, float64(time.Since(begun).Nanoseconds())/1e6)
	}
	for i := range bodies {
		if err := q.Check(bodies[i].Bytes()); err != nil {
			return nil, nil, err
		}
	}
	return ms, bodies[times-1].Bytes(), nil
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
