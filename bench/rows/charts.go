package rows

import (
	"fmt"
	"strings"

	"dalmatiner/bench/load"
	"dalmatiner/haggar"
)

// Charts are what a browser asks for when it opens a page: nothing of it was read before.
const (
	chartSeries = 200 // of a day
	firstOfDay  = 100 // ms
	firstOfYear = 50

	chartWidth = 1000
	// yearColumn is the slots of a column of a year: as many as let it fit into the width
	// among those that the store has aggregates of.
	yearColumn = 5 * smallWindow
)

// chartsOfDay returns a day of many series of the mix, as columns and as averages.
func chartsOfDay(c *haggar.Config) []timed {
	end := c.Start.Unix() + dayRows
	day := load.Over(end-dayRows, end, 300)
	columns := timed{first: firstOfDay, Query: load.Query{What: "200 series, a day, columns of 5 m",
		Width: int(dayRows / day.Every)}}
	averages := timed{first: firstOfDay, Query: load.Query{What: "200 series, a day, averages of 5 m"}}
	var plain, avg []string
	for i := range chartSeries {
		read := fmt.Sprintf("%s BUCKET %s", load.Name(c, 4, 10*i), c.Bucket)
		plain, avg = append(plain, read), append(avg, fmt.Sprintf("avg(%s, 5m)", read))
		columns.Want = append(columns.Want, day.Avg(c, 4, 10*i))
	}
	columns.Text = "SELECT " + strings.Join(plain, ", ") + " " + day.DQL()
	averages.Text = "SELECT " + strings.Join(avg, ", ") + " " + day.DQL()
	averages.Want = columns.Want
	return []timed{columns, averages}
}

// chartOfYear returns a year of all series in the columns of a chart.
func chartOfYear(c *haggar.Config) timed {
	year := load.Over(c.Start.Unix(), c.Start.Unix()+c.Steps, yearColumn)
	q := load.Query{What: fmt.Sprintf("%d series, a year, columns of a chart", yearMetrics),
		Width: chartWidth}
	var reads []string
	for i := range yearMetrics {
		reads = append(reads, fmt.Sprintf("%s BUCKET %s", load.Name(c, 0, i), c.Bucket))
		q.Want = append(q.Want, year.Avg(c, 0, i))
	}
	q.Text = "SELECT " + strings.Join(reads, ", ") + " " + year.DQL()
	return timed{Query: q, first: firstOfYear}
}
