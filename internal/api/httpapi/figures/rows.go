package figures

import (
	"dalmatiner/internal/api/admin"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
)

// Minutes returns the last rows of a bucket in an account, one for each minute in which something
// arrived, at most n.
func Minutes(a *account.Account, b buckets.Info, n int) []admin.AccountRow {
	label := metric.Escape(b.Name)
	all := a.Minutes(b.ID)
	rows := []admin.AccountRow{}
	for i := max(0, len(all)-n); i < len(all); i++ {
		rows = append(rows, Row(label, all[i].Minute, &all[i].Counts))
	}
	return rows
}

// Row returns counts of a bucket as they go over HTTP. The minute is 0 for a total.
func Row(name string, minute int64, c *account.Counts) admin.AccountRow {
	row := admin.AccountRow{
		Bucket: name, Minute: minute, Received: c.ReceivedPoints(), Accepted: c.Accepted,
		Duplicate:   c.Duplicate,
		Conflicting: c.Conflicting, Late: c.Late, Unset: c.Unset, Refused: map[string]uint64{},
	}
	for _, reason := range account.Reasons() {
		if n := c.Refused[reason]; n > 0 {
			row.Refused[reason.String()] = n
		}
	}
	return row
}
