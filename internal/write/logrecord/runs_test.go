package logrecord

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/write/head"
)

func TestRunsRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := drawWords(t)
		w := head.Write{Words: words}
		for left := len(words); left > 0; {
			r := head.Run{Column: rapid.IntRange(0, head.Width-1).Draw(t, "column"),
				Slot: rapid.Int64Range(0, buckets.MaxSlot).Draw(t, "slot")}
			r.Points = rapid.IntRange(1, min(left, head.Width-r.Column)).Draw(t, "points")
			w.Runs = append(w.Runs, r)
			left -= r.Points
		}
		c := account.Counts{Late: uint64(len(words))}
		p, err := Parse(writeRecord(nil, 7, 9, &w, -5, &c))
		if err != nil {
			t.Fatal(err)
		}
		if p.Kind != Runs || p.Bucket != 7 || p.Group != 9 || p.Minute != -5 || p.Counts != c ||
			!reflect.DeepEqual(ParseRuns(nil, p.Runs), w.Runs) ||
			!reflect.DeepEqual(ParseCells(nil, p.Cells), words) {
			t.Fatalf("%+v came back as %+v", w, p)
		}
	})
}

// Runs that lie outside their group, or are not as many as their points, are
// damage.
func TestMalformedRuns(t *testing.T) {
	record := func(words int, runs ...head.Run) []byte {
		return writeRecord(nil, 1, 2, &head.Write{Words: make([]uint64, words), Runs: runs}, 0,
			&account.Counts{})
	}
	if _, err := Parse(record(3, head.Run{Column: 254, Points: 2, Slot: 9},
		head.Run{Points: 1, Slot: 3})); err != nil {
		t.Fatal(err)
	}
	for what, rec := range map[string][]byte{
		"column":    record(2, head.Run{Column: 255, Points: 2}),
		"points":    record(3, head.Run{Points: 2}),
		"slot":      record(1, head.Run{Points: 1, Slot: buckets.MaxSlot + 1}),
		"no slot":   record(1, head.Run{Points: 1, Slot: -1}),
		"one short": bytes.TrimSuffix(record(1, head.Run{Points: 1}), make([]byte, 8)),
	} {
		if _, err := Parse(rec); err == nil {
			t.Errorf("%s: the record was parsed", what)
		}
	}
}
