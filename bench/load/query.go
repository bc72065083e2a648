package load

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"dalmatiner/haggar"
	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/model/metric"
)

// Query is a query and what its answer must be.
type Query struct {
	What  string // for the table
	Text  string
	Width int         // columns of each series; 0 is all values
	Want  [][]float64 // values of each result
}

// Name returns the name of a series of a load as queries have it.
func Name(c *haggar.Config, agent, i int) string {
	return metric.Text(c.AppendKey(nil, agent, i))
}

// Span is a range of slots and how many of them make one value. Where it begins between two
// multiples of that number, the values of Avg are those of columns: the first one is short.
type Span struct{ From, To, Every int64 }

// Over returns the span from one slot to another, which is not in it.
func Over(from, to, every int64) Span { return Span{from, to, every} }

// DQL returns the end of a query over the span.
func (s Span) DQL() string {
	return fmt.Sprintf("BEFORE %q FOR %ds", time.Unix(s.To, 0).UTC().Format(time.DateTime),
		s.To-s.From)
}

// Max returns the largest value of every step of a series.
func (s Span) Max(c *haggar.Config, agent, i int) []float64 {
	it := c.Series(agent, i)
	var out []float64
	for at := s.From; at < s.To; at += s.Every {
		most := it.At(at)
		for range s.Every - 1 {
			most = max(most, it.Next())
		}
		out = append(out, float64(most))
	}
	return out
}

// Avg returns the average of every step of a series.
func (s Span) Avg(c *haggar.Config, agent, i int) []float64 {
	it := c.Series(agent, i)
	var out []float64
	for at := s.From; at < s.To; {
		n := min(s.Every-at%s.Every, s.To-at)
		sum := it.At(at)
		for range n - 1 {
			sum += it.Next()
		}
		out = append(out, float64(sum)/float64(n))
		at += n
	}
	return out
}

// Mean returns the mean of every step over all series of an agent.
func (s Span) Mean(c *haggar.Config, agent int) []float64 {
	out := make([]float64, (s.To-s.From)/s.Every)
	for i := range c.Metrics {
		it := c.Series(agent, i)
		for n := range out {
			sum := it.At(s.From + int64(n)*s.Every)
			for range s.Every - 1 {
				sum += it.Next()
			}
			out[n] += float64(sum) / float64(s.Every) / float64(c.Metrics)
		}
	}
	return out
}

// Check compares an answer with what was sent. Stored numbers lose their last
// bits in sums.
func (q *Query) Check(body []byte) error {
	var got admin.Result
	if err := json.Unmarshal(body, &got); err != nil {
		return err
	}
	if len(got.Results) != len(q.Want) {
		return fmt.Errorf("%d results, want %d", len(got.Results), len(q.Want))
	}
	for i, r := range got.Results {
		if r.Coverage != 1 || len(r.Values) != len(q.Want[i]) {
			return fmt.Errorf("result %d has %d values and a coverage of %v, want %d and 1", i,
				len(r.Values), r.Coverage, len(q.Want[i]))
		}
		for j, v := range r.Values {
			if v == nil || math.Abs(*v-q.Want[i][j]) > 1e-9*math.Abs(q.Want[i][j]) {
				return fmt.Errorf("result %d, value %d differs from what was sent, %v", i, j, q.Want[i][j])
			}
		}
	}
	return nil
}
