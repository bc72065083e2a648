package compare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"dalmatiner/bench/measure"
)

// A query is asked repeats times after the first, or leastRepeats times where
// that takes longer than askFor.
const (
	repeats      = 30
	leastRepeats = 5
	askFor       = 8 * time.Second
)

// question is a published query over the day that was loaded.
type question struct {
	what     string
	agent    int
	metrics  []int // those it names; nil is all of the agent's
	from, to int64 // Unix seconds; to is not in it
	every    int64 // seconds that make a value
	mean     bool  // of all metrics and seconds; else the maximum of each metric
}

// answer is the values of a question by the names of its metrics; a mean has
// the empty name.
type answer map[string][]float64

// names are those of its answer, in the order of the question.
func (q *question) names() []string {
	if q.mean {
		return []string{""}
	}
	var names []string
	for _, i := range q.metrics {
		names = append(names, metricName(i))
	}
	return names
}

func (q *question) steps() int { return int((q.to - q.from) / q.every) }

// questions are the published ones. They end with the day.
func (d *day) questions() []question {
	end := d.end()
	return []question{
		{what: "Q1", agent: dayAgent, metrics: []int{18}, from: end - 3600, to: end, every: 60},
		{
			what:    "Q2",
			agent:   dayAgent,
			metrics: []int{4, 6, 8, 9, 14, 18, 19},
			from:    end - daySeconds,
			to:      end,
			every:   3600,
		},
		{what: "Q3", agent: hourAgent, from: end - 3600, to: end, every: 60, mean: true},
	}
}

// seconds returns those of a step, from begin to before end. Nothing was sent at
// the end of the day.
func (q *question) seconds(d *day, step int, behind bool) (begin, end int64) {
	begin = q.from + int64(step)*q.every
	if behind {
		begin++
	}
	return begin, min(begin+q.every, d.end())
}

// want computes the answer from what was sent, for steps behind their begin or
// from it on.
func (q *question) want(d *day, behind bool) answer {
	out := answer{}
	if q.mean {
		sums := make([]float64, q.steps())
		for i := range d.wide {
			it := mix().Series(q.agent, i)
			for n := range sums {
				begin, end := q.seconds(d, n, behind)
				for at := begin; at < end; at++ {
					sums[n] += float64(it.At(at)) / float64(end-begin) / float64(d.wide)
				}
			}
		}
		out[""] = sums
		return out
	}
	for _, i := range q.metrics {
		it := mix().Series(q.agent, i)
		values := make([]float64, q.steps())
		for n := range values {
			most := int64(math.MinInt64)
			begin, end := q.seconds(d, n, behind)
			for at := begin; at < end; at++ {
				most = max(most, it.At(at))
			}
			values[n] = float64(most)
		}
		out[metricName(i)] = values
	}
	return out
}

// check compares an answer with what was sent. Sums of doubles lose their last
// bits.
func (q *question) check(got, want answer) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: the answer has %d series, %d were asked for", q.what, len(got), len(want))
	}
	for name, values := range want {
		if len(got[name]) != len(values) {
			return fmt.Errorf("%s: series %q has %d values, want %d", q.what, name, len(got[name]),
				len(values))
		}
		for i, v := range values {
			if d := math.Abs(got[name][i] - v); !(d <= 1e-9*math.Abs(v)) {
				return fmt.Errorf("%s: value %d of series %q is %v, sent was %v", q.what, i, name, got[name][i],
					v)
			}
		}
	}
	return nil
}

// timing is how long a question took, in milliseconds: the first time, and the
// medians of those after it, without kept answers and with them. Of a store that
// keeps none they are one.
type timing struct{ first, uncached, repeated float64 }

// time asks a question of a server that has just started, once and then again.
// Every answer is compared.
func (q *question) time(ctx context.Context, s *instance, want answer) (timing, error) {
	port, path := s.competitor.ask(q)
	times, err := q.ask(ctx, s, port, path, want)
	if err != nil {
		return timing{}, err
	}
	t := timing{first: times[0]}
	t.repeated, _ = measure.Median(times[1:])
	t.uncached = t.repeated
	if s.competitor.uncached == "" {
		return t, nil
	}
	if times, err = q.ask(ctx, s, port, path+s.competitor.uncached, want); err != nil {
		return timing{}, err
	}
	t.uncached, _ = measure.Median(times[1:])
	return t, nil
}

// ask asks for a path again and again and returns how long each took.
func (q *question) ask(ctx context.Context, s *instance, port, path string,
	want answer) (times []float64, err error) {
	for started := time.Now(); len(times) <= leastRepeats || len(times) <= repeats &&
		time.Since(started) < askFor; {
		begun := time.Now()
		body, err := s.get(ctx, port, path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", q.what, err)
		}
		times = append(times, float64(time.Since(begun).Nanoseconds())/1e6)
		got, err := s.competitor.answer(body, q)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %s", q.what, err, clip(body))
		}
		if err := q.check(got, want); err != nil {
			return nil, err
		}
	}
	return times, nil
}

// counted asks a store how many points it has; the answer is one number.
func counted(path string, read func(body []byte, q *question) (answer, error)) func(context.Context,
	*instance) (int64, error) {
	return func(ctx context.Context, s *instance) (int64, error) {
		body, err := s.get(ctx, "http", path)
		if err != nil {
			return 0, err
		}
		got, err := read(body, nil)
		if err != nil || len(got[""]) != 1 {
			return 0, errors.Join(err, fmt.Errorf("its count is %s", clip(body)))
		}
		return int64(got[""][0]), nil
	}
}
