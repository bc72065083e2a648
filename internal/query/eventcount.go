package query

import (
	"context"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/term"
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/filter"
	"dalmatiner/internal/query/source"
	"dalmatiner/internal/store/events"
)

// counter is the source.Counter of a request, nil where there are no events.
func (r *request) counter() source.Counter {
	if r.Events == nil {
		return nil
	}
	return eventCounter{r.Events, r.q.Text}
}

// eventCounter counts the events of a store for a query of that text.
type eventCounter struct {
	store EventSource
	text  string
}

// Counts implements source.Counter.
func (c eventCounter) Counts(of *dql.Events, steps source.Steps) (source.Series, error) {
	want, err := filter.FromQuery(c.text, of.Where)
	if err != nil {
		return nil, err
	}
	return &eventCounts{c.store, of.Bucket, want, of.Where == nil, steps}, nil
}

// eventCounts is the series of how many events lie in each step.
type eventCounts struct {
	store  EventSource
	bucket string
	want   *filter.Filter
	all    bool // the filter lets everything pass
	steps  source.Steps
}

// lostEvents is why a step is unknown.
const lostEvents = "events that damage took, or of which too few nodes have answered"

// Exists implements source.Series.
func (c *eventCounts) Exists(context.Context) (bool, error) { return true, nil }

// Read implements source.Series. Steps are of at most source.MaxSlots, which is below
// events.MaxSteps.
func (c *eventCounts) Read(ctx context.Context, from int64, dst []uint64) (source.Cost, error) {
	for i := range dst {
		dst[i] = point.FromInt(0)
	}
	begin := c.steps.Offset + from*c.steps.Length
	if begin < 0 { // no event is from before 1970
		skip := min(-begin/c.steps.Length, int64(len(dst)))
		dst, from, begin = dst[skip:], from+skip, begin+skip*c.steps.Length
	}
	start, end := nanoseconds(begin),
		nanoseconds(min(begin+int64(len(dst))*c.steps.Length, c.steps.Until))
	step := nanoseconds(c.steps.Length)
	if end <= start {
		return source.Cost{}, nil
	}
	counts, gaps, err := c.count(ctx, start, end, step)
	if err != nil {
		return source.Cost{}, err
	}
	for i, n := range counts {
		dst[i] = point.FromInt(n)
	}
	cost := source.Cost{Unknown: unknownSteps(gaps, start, end, step)}
	for i := range cost.Unknown {
		u := &cost.Unknown[i]
		clear(dst[u.From:u.Past])
		u.From, u.Past = from+u.From, from+u.Past
	}
	return cost, nil
}

// count returns the counts of steps. Events are read only where the filter has to see them.
func (c *eventCounts) count(ctx context.Context, start, end,
	step int64) ([]int64, []events.Gap, error) {
	if c.all {
		return c.store.Count(ctx, c.bucket, start, end, step)
	}
	counts := make([]int64, (uint64(end-start)-1)/uint64(step)+1)
	gaps, err := c.store.Read(ctx, c.bucket, start, end, func(e *events.Event) error {
		if c.want.Match(term.Root(e.Body)) {
			counts[uint64(e.Time-start)/uint64(step)]++
		}
		return nil
	})
	return counts, gaps, err
}

// unknownSteps returns the steps of a range, counted from its start, that gaps reach into.
func unknownSteps(gaps []events.Gap, start, end, step int64) (list []source.Unknown) {
	for _, g := range gaps {
		first, last := max(g.Start, start), min(g.End, end)-1
		if last < first {
			continue
		}
		u := source.Unknown{
			From: int64(uint64(first-start) / uint64(step)),
			Past: int64(uint64(last-start)/uint64(step)) + 1,
			Why:  lostEvents,
		}
		if n := len(list); n > 0 && u.From <= list[n-1].Past {
			list[n-1].Past = max(list[n-1].Past, u.Past)
			continue
		}
		list = append(list, u)
	}
	return list
}

// WithStale implements source.Series: numbers of events never end.
func (c *eventCounts) WithStale() source.Series { return c }

// ReadOlder implements source.Series: of events there are no older ones below.
func (c *eventCounts) ReadOlder(ctx context.Context, from int64,
	dst []uint64) (source.Cost, error) {
	return c.Read(ctx, from, dst)
}

// Aggregate implements source.Series. Plans do not ask for it.
func (c *eventCounts) Aggregate(context.Context, int64, int64,
	[]chunk.Header) (source.Cost, error) {
	panic("query: aggregates of numbers of events")
}
