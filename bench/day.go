package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"dalmatiner/bench/measure"
	"dalmatiner/internal/admin"
	"dalmatiner/internal/haggar"
	"dalmatiner/internal/metric"
)

const (
	dayAgents  = 5
	dayMetrics = 8 * groupWidth // each agent's: 2,048
	dayRows    = 86_400
	repeats    = 50
)

// dayQuery is a published query and what its answer must be.
type dayQuery struct {
	what        string
	text        string
	want        [][]float64 // values of each result
	first, warm float64     // budgets in ms
}

// day loads a day of 10 k series of the mix, and takes its size on disk and
// the times of the published queries.
func (b *bench) day(ctx context.Context) error {
	data := filepath.Join(b.dir, "day")
	s, err := b.startDDB(data)
	if err != nil {
		return err
	}
	defer func() { s.remove() }()
	c := uniform(dayAgents, dayMetrics, dayRows)
	c.Walk = true
	c.Start = closed(largeWindow)
	sum, err := b.send(ctx, s, c)
	if err != nil {
		return err
	}
	b.logf("  a day of %d series written in %.0f s", dayAgents*dayMetrics, sum.Seconds)
	if err := b.mergeAll(ctx, s, c, sum.Points); err != nil {
		return err
	}
	f, err := s.diskFigure(sum.Points, entropyOfMix(), mixBudget)
	if err != nil {
		return err
	}
	f.what = "the published mix, 10 k series, a day"
	b.table.add(f)
	s, err = b.timeQueries(ctx, s, data, dayQueries(&c))
	return err
}

// timeQueries times each query in a new process: its first answer finds no index
// loaded. It ends the one that is given and returns the last one, which has ended
// as well unless there is an error.
func (b *bench) timeQueries(ctx context.Context, s *server, data string, queries []dayQuery) (*server, error) {
	for _, q := range queries {
		if err := s.stop(); err != nil {
			return s, err
		}
		next, err := b.startDDB(data)
		if err != nil {
			return s, err
		}
		s = next
		if err := b.timeQuery(ctx, s, &q); err != nil {
			return s, fmt.Errorf("%s: %w", q.what, err)
		}
	}
	return s, s.stop()
}

// dayQueries returns the published queries over series of the mix, ending at
// the end of the day.
func dayQueries(c *haggar.Config) []dayQuery {
	end := c.Start.Unix() + dayRows
	hour, day := span{end - 3600, end, 60}, span{end - dayRows, end, 3600}
	q1 := dayQuery{what: "Q1 max per minute, 1 h, one series", first: 2, warm: 0.15,
		text: fmt.Sprintf("SELECT max(%s BUCKET %s, 1m) %s", name(c, 2, 18), c.Bucket, hour.dql()),
		want: [][]float64{hour.max(c, 2, 18)},
	}
	var fields []string
	q2 := dayQuery{what: "Q2 max per hour, 1 d, seven series", first: 5, warm: 0.5}
	for _, i := range []int{4, 6, 8, 9, 18, 19, 28} {
		fields = append(fields, fmt.Sprintf("max(%s BUCKET %s, 1h)", name(c, 3, i), c.Bucket))
		q2.want = append(q2.want, day.max(c, 3, i))
	}
	q2.text = "SELECT " + strings.Join(fields, ", ") + " " + day.dql()
	all := strings.TrimSuffix(name(c, 1, 0), metric.Quoted(fmt.Sprintf("%6d", 0))) + "*"
	mean := [][]float64{hour.mean(c, 1)}
	return []dayQuery{q1, q2,
		{what: "Q3 average of 2,048 series per minute, 1 h", warm: 30, want: mean,
			text: fmt.Sprintf("SELECT avg(avg(%s BUCKET %s, 1m)) %s", all, c.Bucket, hour.dql())},
		{what: "Q3, series first: avg(avg(…), 1m)", warm: 30, want: mean,
			text: fmt.Sprintf("SELECT avg(avg(%s BUCKET %s), 1m) %s", all, c.Bucket, hour.dql())},
	}
}

func name(c *haggar.Config, agent, i int) string {
	return metric.Text(c.AppendKey(nil, agent, i))
}

// span is a range of slots and how many of them make one value.
type span struct{ from, to, every int64 }

func (s span) dql() string {
	return fmt.Sprintf("BEFORE %q FOR %ds", time.Unix(s.to, 0).UTC().Format(time.DateTime), s.to-s.from)
}

// max returns the largest value of every step of a series.
func (s span) max(c *haggar.Config, agent, i int) []float64 {
	it := c.Series(agent, i)
	var out []float64
	for at := s.from; at < s.to; at += s.every {
		most := it.At(at)
		for range s.every - 1 {
			most = max(most, it.Next())
		}
		out = append(out, float64(most))
	}
	return out
}

// mean returns the mean of every step over all series of an agent.
func (s span) mean(c *haggar.Config, agent int) []float64 {
	out := make([]float64, (s.to-s.from)/s.every)
	for i := range c.Metrics {
		it := c.Series(agent, i)
		for n := range out {
			sum := it.At(s.from + int64(n)*s.every)
			for range s.every - 1 {
				sum += it.Next()
			}
			out[n] += float64(sum) / float64(s.every) / float64(c.Metrics)
		}
	}
	return out
}

// timeQuery asks a server that has just started once, and then again, and a server
// that has the answer ready as often.
func (b *bench) timeQuery(ctx context.Context, s *server, q *dayQuery) error {
	first, body, err := askAgain(ctx, s, q, 1)
	if err != nil {
		return err
	}
	times, _, err := askAgain(ctx, s, q, repeats)
	if err != nil {
		return err
	}
	ready, err := startAnswer(body)
	if err != nil {
		return err
	}
	defer ready.kill()
	least, _, err := askAgain(ctx, ready, q, repeats)
	if err != nil {
		return err
	}
	b.table.add(figure{area: "query over HTTP", what: q.what + ", first", unit: "ms", value: first[0], budget: q.first,
		note: "process just started, page cache as it is"})
	f := figure{area: "query over HTTP", what: q.what + ", again", unit: "ms", budget: q.warm}
	f.value, f.spread = measure.Median(times)
	atOnce, _ := measure.Median(least)
	f.note = fmt.Sprintf("median of %d in a row; every answer compared with what was sent; of a net/http server that has it ready %s",
		repeats, measure.Number(atOnce))
	b.table.add(f)
	return nil
}

// askAgain asks a server so many times over one connection, and returns how long
// each took in ms and the last answer. They are checked when all are there: the
// next question comes at once.
func askAgain(ctx context.Context, s *server, q *dayQuery, times int) (ms []float64, body []byte, err error) {
	client := s.client()
	client.HTTP = &http.Client{Timeout: time.Minute}
	defer client.HTTP.CloseIdleConnections()
	if err := connect(client); err != nil {
		return nil, nil, err
	}
	bodies := make([]bytes.Buffer, times)
	for i := range bodies {
		begun := time.Now()
		if err := client.CopyQuery(ctx, &bodies[i], q.text); err != nil {
			return nil, nil, err
		}
		ms = append(ms, float64(time.Since(begun).Nanoseconds())/1e6)
	}
	for i := range bodies {
		if err := q.check(bodies[i].Bytes()); err != nil {
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

// check compares an answer with what was sent. Stored numbers lose their last
// bits in sums.
func (q *dayQuery) check(body []byte) error {
	var got admin.Result
	if err := json.Unmarshal(body, &got); err != nil {
		return err
	}
	if len(got.Results) != len(q.want) {
		return fmt.Errorf("%d results, want %d", len(got.Results), len(q.want))
	}
	for i, r := range got.Results {
		if r.Coverage != 1 || len(r.Values) != len(q.want[i]) {
			return fmt.Errorf("result %d has %d values and a coverage of %v, want %d and 1", i, len(r.Values), r.Coverage, len(q.want[i]))
		}
		for j, v := range r.Values {
			if v == nil || math.Abs(*v-q.want[i][j]) > 1e-9*math.Abs(q.want[i][j]) {
				return fmt.Errorf("result %d, value %d differs from what was sent, %v", i, j, q.want[i][j])
			}
		}
	}
	return nil
}
