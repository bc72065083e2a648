package replay

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/store/tagstore"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/testkit/golden"
	"dalmatiner/internal/write/backpressure"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/ledger"
	"dalmatiner/internal/write/logrecord"
)

// TestSides goes through the logs in testdata/sides, as TestReplays does, with what is kept beside
// points:
//
//	tag b cpu 7 host web     a record: a tag of cpu, or without a value that there is none, with a clock
//	event b 12 text          an event at 12 ns
//	sides                    what the sides have
//	files                    the sides write their files, as in a flush, which is committed
//	restart                  a crash and the next start
func TestSides(t *testing.T) {
	golden.Scripts(t, "testdata/sides/*.txt", func(common *golden.Script) func(string, []string) {
		s := newScript(common)
		common.T.Cleanup(s.end)
		for _, sub := range append(datadir.FileDirs(), datadir.LostFound) {
			if err := s.fs.MkdirAll(s.fs.PathJoin("/data", sub), 0o755); err != nil {
				s.T.Fatal(err)
			}
		}
		s.sides = &sides{script: s}
		return s.sides.run
	})
}

// sides are what a node keeps beside points.
type sides struct {
	*script
	tags   *tagstore.Store
	events *events.Local
	number uint64 // of the last file
}

func (s *sides) run(what string, args []string) {
	s.T.Helper()
	switch what {
	case "tag":
		name := tags.TagName{Name: []byte(args[3])}
		c := tags.Change{Bucket: bucketID(args[0]), Key: metric.AppendPart(nil, args[1]),
			Collection: []byte(args[0]), Clock: uint64(s.Number(args[2]))}
		if len(args) > 4 {
			c.Set = []tags.Tag{{TagName: name, Value: []byte(args[4])}}
		} else {
			c.Removed = []tags.TagName{name}
		}
		rec := tags.AppendChange(logrecord.AppendTags(nil, c.Bucket), &c)
		lsn, err := s.log.AppendTwice(rec)
		s.note(lsn, err, len(rec), false)
	case "event":
		counts := account.Counts{Accepted: 1}
		e := eventfile.Event{Time: s.Number(args[1]), ID: eventfile.ID{byte(len(s.records) + 1)},
			Body: []byte(args[2])}
		head, body := logrecord.AppendEvents(nil, bucketID(args[0]), 1, &counts, []eventfile.Event{e})
		lsn, err := s.log.AppendHeaded(head, body)
		s.note(lsn, err, len(head)+len(body), true)
	case "sides":
		s.print()
	case "files":
		s.write()
	case "restart":
		s.close()
		s.openLog()
		s.start()
	default:
		s.script.run(what, args)
	}
}

func (s *sides) note(lsn wal.LSN, err error, size int, head bool) {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
	s.records = append(s.records, record{lsn, size, head})
}

// open makes the sides of a node that is about to start, with what their files hold.
func (s *sides) open(logger *slog.Logger, books *ledger.Ledger, control *backpressure.Control,
	budget *memory.Budget) []Side {
	n := s.node
	s.tags = tagstore.New(tagstore.Options{
		FS: s.fs, Dir: "/data", Logger: logger, Now: func() time.Time { return time.Unix(1000, 0) },
		Of: func() origin.Directory {
			return origin.Directory{}
		}, Ledger: books, Pressure: control, Memory: budget, Damage: n.damage,
		Deletions: &n.columns.Deletions,
		Incarnation: func(bucket uint64, key []byte) (uint64, bool) {
			b := n.registry.ID(bucket)
			if b == nil {
				return 0, false
			}
			return b.Incarnations.Get(b.SeriesID(key)), true
		},
		Deleted: n.registry.WasDeleted, Gate: func() *version.Gate { return &version.Gate{} },
	})
	local, err := events.New(events.Options{
		FS: s.fs, Dir: "/data", Logger: logger, Now: func() int64 {
			return 1000
		}, Log: books, Account: books.Events(),
		ByID: func(id uint64) (info buckets.Info, ok bool) {
			b := n.registry.ID(id)
			if b == nil {
				return info, false
			}
			return b.Info(), true
		},
		Bucket: func(name string) (buckets.Info, error) {
			b, err := n.registry.ByName(name)
			if err != nil {
				return buckets.Info{}, err
			}
			return b.Info(), nil
		},
		TakeNumber: s.take, Pending: func(int64) {}, Damage: n.damage.Report,
	})
	if err != nil {
		s.T.Fatal(err)
	}
	s.events = local
	s.tags.Load(s.state.Files)
	if err := s.events.Load(&s.state, false); err != nil {
		s.T.Fatal(err)
	}
	return []Side{s.tags, events.Side{Local: s.events}}
}

func (s *sides) take() uint64 {
	s.number++
	return s.number
}

// dropped is what a store does with its sides when a bucket is deleted.
func (s *sides) dropped(b *columns.Bucket) {
	s.events.DeleteBucket(b.ID, b.Info().Name)
	s.tags.DropBucket(b.ID)
}

// write writes the files of a flush, which needs nothing of the log that is there now.
func (s *sides) write() {
	s.T.Helper()
	var e manifest.FileChanges
	s.tags.Take(s.log.End())
	s.events.Take(s.log.End())
	s.check(s.tags.Write(s.take(), &e))
	s.check(s.events.WriteFile(s.take(), &e))
	s.tags.Committed()
	s.events.Committed()
	s.state.Apply(&manifest.Edit{Files: e})
	for _, f := range e.Add {
		s.Printf("  file of kind %d: %d entries\n", f.Kind, f.Items)
	}
}

// print says what the sides have, and what is counted of it.
func (s *sides) print() {
	s.T.Helper()
	var lines []string
	s.check(s.tags.Walk(func(c *tags.Change) error {
		line := fmt.Sprintf("  tags of %s %s, clock %d:", c.Collection, metric.Text(c.Key), c.Clock)
		for _, t := range c.Set {
			line += fmt.Sprintf(" %s=%s", t.Name, t.Value)
		}
		for _, t := range c.Removed {
			line += fmt.Sprintf(" no %s", t.Name)
		}
		lines = append(lines, line+"\n")
		return nil
	}))
	for _, b := range s.registry.All() {
		gaps, err := s.events.Read(context.Background(), b.Name, 1, math.MaxInt64,
			func(e *events.Event) error {
				lines = append(lines, fmt.Sprintf("  event of %s at %d: %s\n", b.Name, e.Time,
					bytes.Clone(e.Body)))
				return nil
			})
		s.check(err)
		for _, g := range gaps {
			lines = append(lines, fmt.Sprintf("  %d events of %s from %d to %d are lost\n", g.Events, b.Name,
				g.Start, g.End-1))
		}
		if c := s.events.Account().Total(b.ID); c.Accepted > 0 {
			lines = append(lines, fmt.Sprintf("  %d events of %s accepted\n", c.Accepted, b.Name))
		}
	}
	if c := s.events.Account().Total(account.DeletedBuckets); c.Accepted > 0 {
		lines = append(lines, fmt.Sprintf("  %d events of deleted buckets accepted\n", c.Accepted))
	}
	slices.Sort(lines)
	s.Printf("%s", strings.Join(lines, ""))
}
