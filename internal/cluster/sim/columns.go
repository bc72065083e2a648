package sim

import (
	"math/rand/v2"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/model/metric"
)

// senders are groups in whose order series are sent, by their first series: those of one bucket.
type senders map[metric.SeriesID]*replication.Group

func newSenders() senders {
	s := make(senders)
	for half := range 2 {
		g := &replication.Group{}
		for i := half; i < series; i += 2 {
			g.Series = append(g.Series, Series(i))
			s[Series(i)] = g
		}
	}
	return s
}

// batch makes columns of some of the first rows: some of as many series as follow each other in a
// slot.
func (s senders) batch(rng *rand.Rand, rows []replication.Row) (of replication.Batch) {
	left := rng.IntN(len(rows) + 1)
	for ; left > 0; left-- {
		r := rows[0]
		g, place := s[r.Series], -1
		if g != nil {
			for i, id := range g.Series {
				if id == r.Series {
					place = i
				}
			}
		}
		if place < 0 {
			break
		}
		rows = rows[1:]
		if n := len(of.Columns); n > 0 {
			last := &of.Columns[n-1]
			if last.Group == g && last.Slot == r.Slot && last.From+len(last.Words) == place &&
				rng.IntN(4) > 0 {
				last.Words, last.Times = append(last.Words, r.Value.Word), append(last.Times, r.Value.Time)
				continue
			}
		}
		of.Columns = append(of.Columns, replication.Column{
			Group: g,
			From:  place,
			Slot:  r.Slot,
			Words: []uint64{r.Value.Word},
			Times: []uint64{r.Value.Time},
		})
	}
	of.Rows = rows
	return of
}
