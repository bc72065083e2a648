package rows

import (
	"context"
	"fmt"
	"path/filepath"

	"dalmatiner/bench/load"
)

const (
	yearMetrics = 5
	yearDays    = 365
)

// year loads a year of some series at a point a second, and asks for the largest
// value of each day of one.
func (b *bench) year(ctx context.Context) error {
	data := filepath.Join(b.Dir, "year")
	s, err := b.Start(data)
	if err != nil {
		return err
	}
	defer func() { s.Remove() }()
	c := load.Uniform(1, yearMetrics, yearDays*dayRows)
	c.Walk = true
	c.Start = closed(largeWindow).AddDate(0, 0, 1-yearDays)
	sum, err := load.Send(ctx, b.Env, s, c)
	if err != nil {
		return err
	}
	b.Logf("  a year of %d series written in %.0f s", yearMetrics, sum.Seconds)
	if err := b.mergeAll(ctx, s, c, sum.Points); err != nil {
		return err
	}
	whole := load.Over(c.Start.Unix(), c.Start.Unix()+c.Steps, dayRows)
	const late = 4321 // seconds past midnight
	shifted := load.Over(whole.From+late, whole.To-dayRows+late, dayRows)
	s, err = b.timeQueries(ctx, s, data, []timed{
		{first: 50, warm: 5, Query: load.Query{What: "max per day, a year, one series",
			Want: [][]float64{whole.Max(&c, 0, 2)},
			Text: fmt.Sprintf("SELECT max(%s BUCKET %s, 1d) %s", load.Name(&c, 0, 2), c.Bucket,
				whole.DQL())}},
		{Query: load.Query{What: "the same, days that begin 4321 s late",
			Want: [][]float64{shifted.Max(&c, 0, 2)},
			Text: fmt.Sprintf("SELECT max(%s BUCKET %s, 1d) %s", load.Name(&c, 0, 2), c.Bucket,
				shifted.DQL())}},
		chartOfYear(&c),
	})
	return err
}
