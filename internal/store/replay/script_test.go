package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/reader"
	"dalmatiner/internal/testkit/filetest"
	"dalmatiner/internal/testkit/golden"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/logrecord"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestReplays goes through the logs in testdata/replay and compares what a start makes of them.
// A line that begins with two spaces is a result; -update rewrites them. Records are
// numbered from 1.
//
//	bucket b                 a record: a bucket
//	define b 0 1 cpu         cpu gets column 1 of group 0
//	row b 0 0 10 1 2 -       words of columns from 0 of group 0 on, in slot 10
//	column b 0 1 10 1 2      words of column 1 of group 0, in slots from 10 on
//	delete b 0 1 cpu         the series and its points are deleted
//	drop b                   the bucket is deleted
//	damage 3 [head]          the third record does not read any more, nor does its head
//	flushed 3                a flush has committed buckets, series and account before the third record
//	position 0 3             and group 0 needs nothing before it
//	settled b 9              slots of the bucket up to 9 are in segments
//	positions 4              so many bytes of positions may be noted
//	start                    reads the log for the first time
//	group 0                  replays a group
//	finish                   reads the log for the second time
//	read b cpu 10 12         words of a series in slots 10 and 11
//	pending                  what is not in the head yet
//	account                  what is counted
func TestReplays(t *testing.T) {
	golden.Scripts(t, "testdata/replay/*.txt", func(common *golden.Script) func(string, []string) {
		s := newScript(common)
		common.T.Cleanup(s.end)
		return s.run
	})
}

const logDir = "/data/wal"

// record is where a record of the script lies in the log.
type record struct {
	lsn  wal.LSN
	size int  // of its payload
	head bool // it has one of its own
}

// script is a log under way, and then the start that reads it.
type script struct {
	*golden.Script
	fs *vfs.MemFS

	records   []record
	state     manifest.State
	positions int64
	buckets   []segment.Series           // by the records that made them, which Since says
	series    []segment.Series           // by the records that defined them
	ids       map[metric.SeriesID]string // names of series
	settled   map[uint64]int64           // by bucket

	*node
	sides *sides // nil without
}

func newScript(common *golden.Script) *script {
	s := &script{Script: common, fs: vfs.NewMem(), positions: MaxPositions,
		ids: map[metric.SeriesID]string{}, settled: map[uint64]int64{}}
	s.node = &node{}
	s.openLog()
	if _, err := s.log.Replay(1, func(wal.LSN, []byte) error { return nil }); err != nil {
		s.T.Fatal(err)
	}
	return s
}

func (s *script) openLog() {
	s.T.Helper()
	log, err := wal.Open(wal.Options{FS: s.fs, Dir: logDir, Sync: wal.Off, ID: [16]byte{1},
		OnFailure: func(err error) {
			s.T.Error(err)
		}})
	if err != nil {
		s.T.Fatal(err)
	}
	s.log = log
}

// lsn returns the position of a record by its number.
func (s *script) lsn(text string) uint64 { return uint64(s.records[s.Number(text)-1].lsn) }

// run does what a line says.
func (s *script) run(what string, args []string) {
	s.T.Helper()
	switch what {
	case "bucket", "define", "row", "column", "delete", "drop":
		s.append(what, args)
	case "damage":
		s.spoil(s.records[s.Number(args[0])-1], len(args) > 1)
	case "flushed":
		s.state.AccountLSN = s.lsn(args[0])
	case "position":
		s.state.Apply(&manifest.Edit{
			ReplayPositions: append(s.state.ReplayPositions(),
				manifest.ReplayPosition{Group: uint32(s.Number(args[0])), LSN: s.lsn(args[1])})})
	case "settled":
		s.settled[bucketID(args[0])] = s.Number(args[1])
	case "positions":
		s.positions = s.Number(args[0])
	case "start":
		s.start()
	case "group":
		s.check(s.replay.Group(s.T.Context(), uint32(s.Number(args[0]))))
	case "finish":
		close(s.hold)
		s.check(s.replay.All(s.T.Context()))
		s.Printf("  behind %t, memory %d\n", s.replay.HasPending(), s.replay.Bytes()-s.losses())
	case "read":
		s.read(args)
	case "pending":
		s.printPending()
	case "account":
		s.printAccount()
	default:
		s.T.Fatalf("what is %s?", what)
	}
}

func (s *script) check(err error) {
	if err != nil {
		s.Printf("  error: %v\n", err)
	}
}

func bucketID(name string) uint64 { return uint64(name[0]) }

func bucketInfo(id uint64) *buckets.Info {
	return &buckets.Info{ID: id, Name: string(rune(id)), Resolution: 1000, PPF: 1}
}

func (s *script) words(args []string) (words []uint64) {
	for _, arg := range args {
		if arg == "-" {
			words = append(words, point.Unset)
		} else {
			words = append(words, point.FromInt(s.Number(arg)))
		}
	}
	return words
}

// append appends a record to the log.
func (s *script) append(what string, args []string) {
	s.T.Helper()
	var rec []byte
	headed, twice := 0, false
	id := bucketID(args[0])
	switch what {
	case "bucket":
		rec = logrecord.AppendBucket(nil, bucketInfo(id))
		s.buckets = append(s.buckets, segment.Series{Bucket: id, Since: uint64(s.log.End())})
	case "define":
		key := metric.AppendPart(nil, args[3])
		hash := metric.Series(id, key)
		s.ids[hash] = args[3]
		s.series = append(s.series, segment.Series{
			Hash: segment.Hash(hash), Bucket: id, Group: uint32(s.Number(args[1])),
			Column: uint16(s.Number(args[2])), Key: key, Since: uint64(s.log.End()),
		})
		rec = logrecord.AppendSeries(nil, id, uint32(s.Number(args[1])), int(s.Number(args[2])), 0, key)
	case "row", "column":
		w := head.Write{Column: int(s.Number(args[2])), Slot: s.Number(args[3]), Words: s.words(args[4:]),
			Down: what == "column"}
		var c account.Counts
		for _, word := range w.Words {
			if word == point.Unset {
				c.Unset++
			} else {
				c.Accepted++
			}
		}
		rec, headed = logrecord.AppendWrite(nil, id, uint32(s.Number(args[1])), &w, 1, &c)
	case "delete":
		rec = logrecord.AppendSeriesDeleted(nil, id, uint32(s.Number(args[1])), logrecord.Deleted, 5)
		rec = logrecord.AppendDeleted(rec, int(s.Number(args[2])),
			metric.Series(id, metric.AppendPart(nil, args[3])))
		twice = true
	case "drop":
		rec = logrecord.AppendBucketDeleted(nil, &buckets.Deletion{ID: id, Name: args[0], Clock: 1})
	}
	var lsn wal.LSN
	var err error
	switch {
	case headed > 0:
		lsn, err = s.log.AppendHeaded(rec[:headed], rec[headed:])
	case twice:
		lsn, err = s.log.AppendTwice(rec)
	default:
		lsn, err = s.log.Append(rec)
	}
	if err != nil {
		s.T.Fatal(err)
	}
	s.records = append(s.records, record{lsn, len(rec), headed > 0})
}

// spoil damages a record where it lies: before a start at its end, when its head is
// repeated behind all.
func (s *script) spoil(r record, headToo bool) {
	s.T.Helper()
	if s.replay == nil {
		if err := s.log.Close(); err != nil {
			s.T.Fatal(err)
		}
		s.openLog()
	}
	first, last := int64(8), int64(8+r.size-1) // of the frame
	if r.head {
		first, last = first+5, last+5
	}
	at := 64 + int64(r.lsn) - 1
	if headToo {
		filetest.FlipBit(s.T, s.fs, s.logFile(), 8*(at+first))
	}
	filetest.FlipBit(s.T, s.fs, s.logFile(), 8*(at+last))
}

// logFile returns the path of the file that has the records.
func (s *script) logFile() string {
	s.T.Helper()
	names, err := s.fs.List(logDir)
	names = slices.DeleteFunc(names, func(name string) bool { return name == "LAST" })
	if err != nil || len(names) != 1 {
		s.T.Fatalf("files of the log: %v, %v", names, err)
	}
	return s.fs.PathJoin(logDir, names[0])
}

// start closes the log and reads it for the first time, again where that is asked for.
func (s *script) start() {
	s.T.Helper()
	if err := s.log.Close(); err != nil {
		s.T.Fatal(err)
	}
	var again *Again
	for n := 0; n < 10; n++ {
		err := s.open(again)
		if !errors.As(err, &again) {
			s.check(err)
			break
		}
		s.Printf("  again: %v\n", err)
		s.close()
	}
	series := 0
	for _, b := range s.registry.All() {
		series += int(b.Counts().Series)
	}
	s.Printf("  %d records, %d series\n", s.replay.Records(), series)
	s.printPending()
}

// printHoles says which slots of which series are hidden.
func (s *script) printHoles(all []hole.Hole) error {
	var lines []string
	for _, h := range all {
		name := "all series"
		for id, n := range s.ids {
			if p := hole.PrefixOf(id); h.Low == p && h.High == p {
				name = n
			}
		}
		lines = append(lines, fmt.Sprintf("  hole: %s %d to %d\n", name, h.From, h.Past-1))
	}
	slices.Sort(lines)
	s.Printf("%s", strings.Join(lines, ""))
	return nil
}

func (s *script) printPending() {
	number := func(lsn uint64) int {
		return 1 + slices.IndexFunc(s.records, func(r record) bool { return uint64(r.lsn) == lsn })
	}
	for _, p := range s.replay.Pending() {
		if p.First == 0 {
			s.Printf("  group %d: none left\n", p.Group)
		} else {
			s.Printf("  group %d: records %d to %d\n", p.Group, number(p.First), number(p.Last))
		}
	}
}

func (s *script) printAccount() {
	totals := s.account.Totals()
	for _, b := range s.registry.All() {
		c := totals[b.ID]
		s.Printf("  %s: %d accepted, %d unset\n", b.Name, c.Accepted, c.Unset)
	}
	if c := totals[account.DeletedBuckets]; c.Accepted > 0 {
		s.Printf("  deleted buckets: %d accepted\n", c.Accepted)
	}
	for _, l := range s.account.Losses() {
		s.Printf("  lost: %s %d\n", l.Cause, l.Points)
	}
	if _, n := s.damage.Names(); n > 0 {
		s.Printf("  damages: %d\n", n)
	}
}

// read prints the words of a series, which are replayed first.
func (s *script) read(args []string) {
	s.T.Helper()
	bucket := bucketID(args[0])
	id := metric.Series(bucket, metric.AppendPart(nil, args[1]))
	from, past := s.Number(args[2]), s.Number(args[3])
	s.check(s.replay.Series(s.T.Context(), id))
	words := make([]uint64, past-from)
	s.check(s.reader.Read(s.T.Context(), reader.Series{Bucket: bucket, ID: id}, from, words, nil))
	s.Printf(" ")
	for _, word := range words {
		if word == point.Unset {
			s.Printf(" -")
		} else {
			s.Printf(" %d", point.Int(word))
		}
	}
	s.Printf("\n")
}
