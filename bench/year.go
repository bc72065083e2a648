package main

import (
	"context"
	"fmt"
	"path/filepath"
)

const (
	yearMetrics = 4
	yearDays    = 365
)

// year loads a year of some series at a point a second, and asks for the largest
// value of each day of one.
func (b *bench) year(ctx context.Context) error {
	data := filepath.Join(b.dir, "year")
	s, err := b.startDDB(data)
	if err != nil {
		return err
	}
	defer func() { s.remove() }()
	c := uniform(1, yearMetrics, yearDays*dayRows)
	c.Walk = true
	c.Start = closed(largeWindow).AddDate(0, 0, 1-yearDays)
	sum, err := b.send(ctx, s, c)
	if err != nil {
		return err
	}
	b.logf("  a year of %d series written in %.0f s", yearMetrics, sum.Seconds)
	if err := b.mergeAll(ctx, s, c, sum.Points); err != nil {
		return err
	}
	whole := span{c.Start.Unix(), c.Start.Unix() + c.Steps, dayRows}
	const late = 4321 // seconds past midnight
	shifted := span{whole.from + late, whole.to - dayRows + late, dayRows}
	s, err = b.timeQueries(ctx, s, data, []dayQuery{
		{what: "max per day, a year, one series", first: 50, warm: 5, want: [][]float64{whole.max(&c, 0, 2)},
			text: fmt.Sprintf("SELECT max(%s BUCKET %s, 1d) %s", name(&c, 0, 2), c.Bucket, whole.dql())},
		{what: "the same, days that begin 4321 s late", want: [][]float64{shifted.max(&c, 0, 2)},
			text: fmt.Sprintf("SELECT max(%s BUCKET %s, 1d) %s", name(&c, 0, 2), c.Bucket, shifted.dql())},
	})
	return err
}
