package plan

import "fmt"

// LimitError is a query refused for its size. It is wrapped in a *dql.Error
// that tells the place.
type LimitError struct {
	What       string // what is too much, as in "points to read"
	Got, Limit int64  // Got is a lower bound
	Remedy     string
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the query has at least %d %s, the limit is %d: %s", e.Got, e.What, e.Limit,
		e.Remedy)
}

// Limits bound what one query costs. Fields that are 0 stand for the default.
type Limits struct {
	// MaxPoints bounds the slots of the ranges read, whether or not they can
	// be set: filling a gap costs CPU time like reading. The default is 500
	// million, a few seconds of one core, or 15 series for a year at one
	// second.
	MaxPoints int64
	// MaxSeries bounds the series read: planning and seeks. Default 100,000.
	MaxSeries int64
	// MaxOutput bounds the points in the result: memory, 8 bytes each, and
	// several times that as JSON. Default 5 million.
	MaxOutput int64
	// MaxMemory bounds what the query holds while it runs, in bytes: plan, result,
	// one round of every node that keeps one, and the state of functions that
	// need many values at once. Default 1 GiB.
	MaxMemory int64
}

// Size is what a query costs, by the fields of Limits.
type Size struct {
	Points int64 // to read
	Series int64 // to read
	Output int64 // numbers in the result
	Memory int64 // bytes that the query holds at most while it runs
}

// Allow reports whether a query of that size is within the limits.
func (l Limits) Allow(s Size) bool {
	return s.Points <= l.MaxPoints && s.Series <= l.MaxSeries && s.Output <= l.MaxOutput &&
		s.Memory <= l.MaxMemory
}

const (
	defaultMaxPoints = 500_000_000
	defaultMaxSeries = 100_000
	defaultMaxOutput = 5_000_000
	defaultMaxMemory = 1 << 30
)

func (l Limits) orDefault() Limits {
	pick := func(v, def int64) int64 {
		if v > 0 {
			return v
		}
		return def
	}
	return Limits{
		MaxPoints: pick(l.MaxPoints, defaultMaxPoints),
		MaxSeries: pick(l.MaxSeries, defaultMaxSeries),
		MaxOutput: pick(l.MaxOutput, defaultMaxOutput),
		MaxMemory: pick(l.MaxMemory, defaultMaxMemory),
	}
}

// Stricter returns the lower of each limit, or else the default.
func (l Limits) Stricter(o Limits) Limits {
	l = l.orDefault()
	pick := func(a, b int64) int64 {
		if b > 0 && b < a {
			return b
		}
		return a
	}
	return Limits{
		MaxPoints: pick(l.MaxPoints, o.MaxPoints),
		MaxSeries: pick(l.MaxSeries, o.MaxSeries),
		MaxOutput: pick(l.MaxOutput, o.MaxOutput),
		MaxMemory: pick(l.MaxMemory, o.MaxMemory),
	}
}
