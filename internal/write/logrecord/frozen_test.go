package logrecord

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/tags"
	"dalmatiner/internal/testkit/frozen"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/series"
)

const epoch = 1_500_000_480

// oneOfEach are records of every kind, by name.
func oneOfEach() map[string][]byte {
	counts := account.Counts{Accepted: 300, Duplicate: 2, Conflicting: 1, Late: 4, Unset: 5}
	// those of today: later ones take nothing from them
	for r := account.Future; r <= account.SameHash; r++ {
		counts.Refused[r] = uint64(r) + 1
	}
	row := func(down bool, values ...int64) *head.Write {
		w := head.Write{Column: 255, Slot: epoch, Down: down}
		for _, v := range values {
			w.Words = append(w.Words, point.FromInt(v))
		}
		return &w
	}
	mixed := row(false, 1)
	mixed.Words = append(mixed.Words, point.Unset, point.FromFloat(0.5))
	id := metric.SeriesID{1, 2, 15: 0xff}
	return map[string][]byte{
		"bucket": AppendBucket(nil, &buckets.Info{ID: 1 << 63, Name: "b\x00\xff", Resolution: 60_000,
			PPF: 1440, TTL: 10_080, Grace: 5e9}),
		"stamped": AppendBucket(nil, &buckets.Info{ID: 2, Name: "b", Resolution: 1000, PPF: 604800,
			HPTS: true}),
		"delete": AppendBucketDeleted(nil,
			&buckets.Deletion{ID: 300, Clock: 1 << 62, Name: "b\x00\xff"}),
		"ttl":           AppendTTL(nil, 300, 86400),
		"define":        AppendSeries(nil, 1, 70_000, 255, 0, []byte("\x00\x01a\x00\x02bc")),
		"defined again": AppendSeries(nil, 1, 70_000, 0, 1<<60+300, []byte("\x00\x01a")),
		"deleted": AppendDeleted(
			AppendDeleted(AppendSeriesDeleted(nil, 1, 70_000, Deleted, 1<<60+300), 255, id), 0,
			metric.SeriesID{}),
		"expired": AppendDeleted(AppendSeriesDeleted(nil, 1, series.None.Group(), Expired, 0),
			series.None.Column(), id),
		"tags": tags.AppendChange(tags.AppendChange(AppendTags(nil, 1<<63),
			&tags.Change{Bucket: 1 << 63, Key: []byte("\x01a"), Collection: []byte("c"), Clock: 1, Node: 2,
				Set: []tags.Tag{{TagName: tags.TagName{Namespace: []byte("n"), Name: []byte("host")},
					Value: []byte("\x00\xff")}}}),
			&tags.Change{Bucket: 1 << 63, Key: []byte("\x01b"), Collection: []byte("c"), Leave: true,
				Clock: 1, Node: 2}),
		"events": slices.Concat(AppendEvents(nil, 1<<63, epoch/60, &counts, []eventfile.Event{
			{Time: epoch*1e9 + 5e6, ID: eventfile.ID{1, 15: 0xff}, Body: []byte("\x83a\x01")},
			{Time: epoch * 1e9, ID: eventfile.ID{1, 14: 1}},
			{Time: epoch*1e9 + 2e6, ID: eventfile.ID{2}, Body: []byte("b")}})),
		"refused":        AppendRefused(nil, 1, epoch/60, &counts),
		"refused copies": ofCopies(AppendRefused(nil, 1, epoch/60, &counts)),
		"dropped":        AppendDeleted(AppendSeriesDeleted(nil, 1, 70_000, Dropped, 0), 255, id),
		"dropped again":  AppendDeleted(AppendSeriesDeleted(nil, 1, 70_000, Dropped, 1<<60+300), 255, id),
		"copies": ofCopies(writeRecord(nil, 1, 70_000, row(true, 1, 2, 3), epoch/60,
			&account.Counts{Accepted: 3})),
		"row 8":  writeRecord(nil, 1, 70_000, row(false, 0, -128, 127), epoch/60, &counts),
		"row 16": writeRecord(nil, 1, 70_000, row(false, 0, -32768, 32767, 5, 6), epoch/60, &counts),
		"row 32": writeRecord(nil, 1, 70_000, row(false, 0, -1<<31, 1<<31-1), -epoch/60, &counts),
		"row 64": writeRecord(nil, 1, 70_000, mixed, epoch/60, &account.Counts{}),
		"column": writeRecord(nil, 1, 70_000, row(true, 1, 2, 3), epoch/60, &account.Counts{Accepted: 3}),
	}
}

// The format is frozen: log records are written as these bytes, and read from
// them.
func TestFrozenRecords(t *testing.T) {
	records := oneOfEach()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(records)) {
		rec := records[name]
		p, err := Parse(rec)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		b := &p.Info
		fmt.Fprintf(&text,
			"%s\n%x\nkind %d bucket %d name %q %d %d %d %d %t ttl %d group %d column %d key %x minute %d "+
				"counts %s slot %d why %d series %x deleted %x %q words", name, rec,
			p.Kind, p.Bucket, b.Name, b.Resolution, b.PPF, b.TTL, b.Grace, b.HPTS, p.TTL, p.Group, p.Column,
			p.Key, p.Minute, countsText(p.Counts), p.Slot, p.Why, p.series, p.Deleted.Clock, p.Deleted.Name)
		if p.Copies {
			text.WriteString(" copies")
		}
		if len(p.Changes) > 0 {
			fmt.Fprintf(&text, " changes %x", p.Changes)
		}
		for _, e := range p.Events {
			fmt.Fprintf(&text, " event %d %x %x", e.Time, e.ID, e.Body)
		}
		if len(p.Cells) > 0 {
			fmt.Fprintf(&text, " %x", ParseCells(nil, p.Cells))
		}
		text.WriteString("\n")
	}
	frozen.Same(t, "records.txt", []byte(text.String()))
}

// The format is frozen: so is the record of several runs.
func TestFrozenRuns(t *testing.T) {
	w := head.Write{Runs: []head.Run{{Column: 0, Points: 3, Slot: epoch},
		{Column: 7, Points: 1, Slot: epoch - 3600}, {Column: 254, Points: 2, Slot: epoch + 1}}}
	var text strings.Builder
	for _, words := range [][]uint64{
		{point.FromInt(0), point.FromInt(-1), point.FromInt(127), point.FromInt(1), point.FromInt(2),
			point.FromInt(-128)},
		{point.FromInt(0), point.FromFloat(0.5), point.Unset, point.FromInt(1), point.FromInt(2),
			point.FromInt(3)},
	} {
		w.Words = words
		rec := writeRecord(nil, 1, 70_000, &w, epoch/60, &account.Counts{Accepted: 4, Late: 1, Unset: 1})
		p, err := Parse(rec)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%x\nkind %d bucket %d group %d runs %v minute %d counts %s words %x\n", rec,
			p.Kind, p.Bucket, p.Group, ParseRuns(nil, p.Runs), p.Minute, countsText(p.Counts),
			ParseCells(nil, p.Cells))
	}
	frozen.Same(t, "runs.txt", []byte(text.String()))
}

func ofCopies(rec []byte) []byte {
	MarkCopies(rec)
	return rec
}

func countsText(c account.Counts) string {
	text := fmt.Sprint(c.Accepted, c.Duplicate, c.Conflicting, c.Late, c.Unset)
	for r, n := range c.Refused {
		if n > 0 {
			text += fmt.Sprintf(" %s:%d", account.Reason(r), n)
		}
	}
	return text
}
