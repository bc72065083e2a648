package fsck

import (
	"fmt"

	"github.com/cockroachdb/errors/oserror"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/store/recovery"
	"dalmatiner/internal/write/logrecord"
)

// listAttempts is how often the log of a running store is listed anew when a
// flush removed a file between listing and reading.
const listAttempts = 5

// checkLog reads every record of the log, those below the replay position too.
func (c *checker) checkLog() {
	var from wal.LSN
	if c.running == nil {
		from = wal.LSN(c.state.ReplayFrom())
	}
	if missing, err := wal.IsMissing(c.fs, c.path(datadir.WAL)); err == nil && missing && c.listed {
		c.damaged(Damage{File: datadir.WAL, Part: "log", Detail: recovery.ErrNoLog.Error()})
	}
	for attempt := 1; ; attempt++ {
		var records int64
		buckets := make(map[uint64]bool)
		for _, b := range c.state.Buckets {
			buckets[b.ID] = true
		}
		report, err := wal.Inspect(c.fs, c.path(datadir.WAL), c.id, from,
			func(lsn wal.LSN, rec []byte) error {
				records++
				p, err := logrecord.Parse(rec)
				switch p.Kind {
				case logrecord.Bucket:
					buckets[p.Bucket] = true
				case logrecord.BucketDeleted:
					delete(buckets, p.Bucket)
				}
				if p.Kind == logrecord.SeriesDeleted && uint64(lsn) >= c.state.AccountLSN {
					for _, id := range p.DeletedSeries() {
						c.deleted[id] = true
					}
				}
				if err != nil {
					c.damaged(Damage{
						File:   datadir.WAL,
						Offset: int64(lsn),
						Length: int64(len(rec)),
						Part:   "record (by LSN)",
						Detail: err.Error(),
					})
				}
				return nil
			})
		if c.running != nil && oserror.IsNotExist(err) && attempt < listAttempts {
			continue
		}
		if err != nil {
			c.unreadable(datadir.WAL, err)
		}
		c.report.Records = records
		c.logReport(&report)
		c.lostInLog(&report, buckets)
		break
	}
	if names, err := c.fs.List(c.path(datadir.WAL)); err == nil {
		c.report.Files += int64(len(names))
	}
}

func (c *checker) logReport(report *wal.Report) {
	for _, p := range report.Damaged {
		c.damaged(c.logPlace(p, "record"))
	}
	for _, g := range report.Missing {
		file := datadir.WAL
		if g.File != "" {
			file = c.fs.PathJoin(datadir.WAL, c.fs.PathBase(g.File))
		}
		c.damaged(Damage{
			File:     file,
			Part:     "file",
			Expected: fmt.Sprintf("records from LSN %d to %d", g.From, g.To),
			Found:    "no file",
		})
	}
	for _, p := range report.Torn {
		// Beside a running store this is a write under way.
		if c.running == nil {
			c.expected(c.logPlace(p, "torn end"))
		}
	}
}

// lostInLog says what a start does of records that are lost.
func (c *checker) lostInLog(report *wal.Report, buckets map[uint64]bool) {
	if c.running != nil {
		return // what its flushes have is not known here
	}
	ranges := logrecord.LostRanges(logrecord.LostRecords(report, c.state))
	for i := range ranges {
		if buckets[ranges[i].Bucket] {
			c.damaged(Damage{File: datadir.WAL, Part: "records", Detail: ranges[i].String()})
		}
	}
	if report.Unknown > 0 {
		c.damaged(Damage{File: datadir.WAL, Part: "records", Detail: logrecord.UnknownRecords(report)})
	}
}

func (c *checker) logPlace(p wal.Place, part string) Damage {
	return Damage{File: c.fs.PathJoin(datadir.WAL, c.fs.PathBase(p.File)), Offset: p.Offset,
		Length: p.Bytes, Part: part,
		Detail: fmt.Sprintf("%s (LSN %d)", p.Reason, p.LSN)}
}
