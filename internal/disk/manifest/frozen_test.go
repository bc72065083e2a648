package manifest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/testkit/filetest"
	"dalmatiner/internal/testkit/frozen"
)

// frozenEdits have every field of the format.
func frozenEdits() []Edit {
	plain := buckets.Info{ID: 1, Name: "plain", Resolution: 1000, PPF: 604800}
	timestamped := buckets.Info{ID: 1 << 63, Name: "stamped\x00\xff", Resolution: 60_000, PPF: 1440,
		TTL: 10_080, Grace: 5e9, HPTS: true}
	deleted := []DeletedSeries{{Hash: [16]byte{1, 2, 15: 0xff}, Group: 70_000, Column: 255},
		{Hash: [16]byte{3}}}
	return []Edit{
		{PutBuckets: []buckets.Info{plain, timestamped, {ID: 9, Name: "gone"}}, DeletionsFrom: 1<<63 + 1,
			Settled: true},
		{
			AddSegments: []Segment{
				{Seq: 1, Bytes: 1 << 40, Sum: 1<<32 - 2, Points: 5_000_000_000, Generation: 1,
					Ranges: []Range{{1, -3, 2083335}, {1 << 63, 0, 1}}},
				{Seq: 2, Kind: Window, Bytes: 300, Points: 9, Generation: 1, Purged: 2,
					Ranges: []Range{{1, 2083200, 2083320}}},
				{Seq: 3, Kind: Overlay, Bytes: 400, Points: 2, Generation: 1},
			},
			ReplayPosition: 1 << 50, ReplayPositions: []ReplayPosition{{0, 7}, {70_000, 1 << 51}},
			NextSeq: 4, NextGroup: 70_001,
			Accounts: Accounts{Account: []byte("any bytes\x00"), Copies: []byte("copies\x00"),
				AccountLSN: 1<<51 + 5}, Catalogue: 1<<63 | 12,
		},
		{DeleteBuckets: []buckets.Deletion{{ID: 9, Clock: 1 << 62, Name: "gone"}},
			Tombstones: []Tombstones{
				{Bucket: 1, DeleteSequence: 4, LSN: 900, Incarnation: 1 << 60, Series: deleted},
				{Bucket: 1 << 63, DeleteSequence: 5, LSN: 950, Incarnation: 1<<60 + 7, Series: deleted[:1]}}},
		{RemoveSegments: []uint64{3, 77}, Purged: []PurgedSegment{{1, 4}},
			DropTombstones: []DroppedTombstones{{1 << 63, 5, 951}}, Suspect: true},
		{Accounts: Accounts{Account: []byte{}}, ReplayPositions: []ReplayPosition{{70_000, 1<<51 + 1}},
			LastFlush: 8, LastMerged: 9, Live: []LiveSegment{{1, Flush}, {2, Window}, {1 << 40, Overlay}},
			LossChanges: LossChanges{Lost: []LostSegment{{7, Window, 700}, {6, Flush, 0}}}},
		{AddSegments: []Segment{{Seq: 4, Bytes: 5, Points: 6, Generation: 4, Ranges: []Range{{1, 0, 10}},
			Marks: frozenMarks()}, {Seq: 5, Generation: 5, Marks: hole.Marks{All: true}}},
			AddHoles: frozenHoles(), Slots: Slots{Highest: []Highest{{1, 720}, {1 << 31, -1}}}},
		{Recall: true, Incarnation: 1<<60 + 9, RememberAfter: 1<<60 + 1,
			Remembered: []Tombstones{
				{Bucket: 1, DeleteSequence: 2, LSN: 3, Incarnation: 1<<60 + 8, Series: deleted[1:]}}},
		{DropTombstones: []DroppedTombstones{{1 << 63, 5, 951}}},
		{Files: FileChanges{
			Add: []File{{Kind: TagChanges, Seq: 4, Bytes: 1 << 33, Items: 5, From: 1, Past: 1 << 51},
				{Kind: TagBase, Seq: 6, Replaces: 4}}}},
		{Files: FileChanges{Remove: []FileName{{TagChanges, 4}, {TagBase, 9}},
			Add: []File{{Kind: TagChanges, Seq: 7, Bytes: 300, Items: 2, From: 1 << 51, Past: 1<<51 + 9}}}},
		{Files: FileChanges{
			Add: []File{
				{Kind: EventFile, Seq: 8, Bytes: 1 << 20, Sum: 7 << 20, Items: 12, Past: 1 << 51,
					Ranges: []FileRange{{1, 5, 1 << 60, 9}, {1 << 63, 1, 1, 3}}}},
			EventAccount: []byte("\x00\xff"), EventAccountLSN: 1 << 51}},
		{Files: FileChanges{
			Lost: []LostFile{
				{FileName: FileName{EventFile, 8}, Items: 12, Ranges: []FileRange{{1, 5, 1 << 60, 9}},
					Noted: true}, {FileName: FileName{TagChanges, 5}, Items: 3}, {FileName: FileName{TagBase, 6}}},
			Found: []FileName{{TagBase, 6}, {TagBase, 7}},
		}},
		{Slots: Slots{Late: []LateNote{{1, 5, 1 << 52}, {1, 9, 1<<52 + 1}, {1 << 63, -7, 1 << 50},
			{9, 1, 1 << 52}}}},
		{LossChanges: LossChanges{Found: []uint64{6, 99}}, EndHoles: frozenHoles()[1:],
			Slots: Slots{Highest: []Highest{{1, 700}}}},
	}
}

func frozenMarks() hole.Marks {
	return hole.Marks{List: []hole.Mark{{Bucket: 1, First: -3, Past: 4, Low: 5, High: 1 << 63},
		{Bucket: 1 << 40, First: 7, Past: 8, High: hole.HighestPrefix}}}
}

func frozenHoles() []hole.Hole {
	return []hole.Hole{
		{Bucket: 1, Low: 9, High: 1<<64 - 1, From: -720, Past: 1 << 40,
			At: hole.Position{Generation: 3, Window: true}, Cause: hole.File, Source: 3},
		{Bucket: 1 << 31, Low: 9, High: 9, From: 0, Past: 1, At: hole.Position{Generation: 4},
			Cause: hole.LogRecord},
	}
}

// frozenState is what these edits come to.
func frozenState() *State {
	return &State{
		Segments: []Segment{
			{Seq: 1, Bytes: 1 << 40, Sum: 1<<32 - 2, Points: 5_000_000_000, Generation: 1, Purged: 4,
				Ranges: []Range{{1, -3, 2083335}, {1 << 63, 0, 1}}},
			{Seq: 2, Kind: Window, Bytes: 300, Points: 9, Generation: 1, Purged: 2,
				Ranges: []Range{{1, 2083200, 2083320}}},
			{Seq: 4, Bytes: 5, Points: 6, Generation: 4, Ranges: []Range{{1, 0, 10}}, Marks: frozenMarks()},
			{Seq: 5, Generation: 5, Marks: hole.Marks{All: true}},
		},
		Holes: frozenHoles()[:1], Slots: Slots{Highest: []Highest{{1, 720}, {1 << 31, -1}},
			Late: []LateNote{{1, 5, 1 << 52}, {1, 9, 1<<52 + 1}, {1 << 63, -7, 1 << 50}}},
		Buckets: []buckets.Info{
			{ID: 1, Name: "plain", Resolution: 1000, PPF: 604800},
			{ID: 1 << 63, Name: "stamped\x00\xff", Resolution: 60_000, PPF: 1440, TTL: 10_080, Grace: 5e9,
				HPTS: true},
		},
		DeletedBuckets: []buckets.Deletion{{ID: 9, Clock: 1 << 62, Name: "gone"}},
		Tombstones: []Tombstones{{Bucket: 1, DeleteSequence: 4, LSN: 900, Incarnation: 1 << 60,
			Series: []DeletedSeries{{Hash: [16]byte{1, 2, 15: 0xff}, Group: 70_000, Column: 255},
				{Hash: [16]byte{3}}}}},
		Remembered: []Tombstones{
			{Bucket: 1, DeleteSequence: 2, LSN: 3, Incarnation: 1<<60 + 8,
				Series: []DeletedSeries{{Hash: [16]byte{3}}}},
			{Bucket: 1 << 63, DeleteSequence: 5, LSN: 950, Incarnation: 1<<60 + 7,
				Series: []DeletedSeries{{Hash: [16]byte{1, 2, 15: 0xff}, Group: 70_000, Column: 255}}}},
		RememberAfter: 1<<60 + 1, Incarnation: 1<<60 + 9,
		ReplayPosition: 1 << 50, replayPositions: []ReplayPosition{{0, 7}, {70_000, 1<<51 + 1}},
		Accounts: Accounts{Account: []byte{}, Copies: []byte("copies\x00"), AccountLSN: 1<<51 + 5},
		NextSeq:  4, DeletionsFrom: 1<<63 + 1, NextGroup: 70_001, Catalogue: 1<<63 | 12, LastFlush: 8,
		LastMerged: 9, Lost: []LostSegment{{7, Window, 700}}, Suspect: true,
		Files: []File{{Kind: TagBase, Seq: 6, Replaces: 4},
			{Kind: TagChanges, Seq: 7, Bytes: 300, Items: 2, From: 1 << 51, Past: 1<<51 + 9},
			{Kind: EventFile, Seq: 8, Bytes: 1 << 20, Sum: 7 << 20, Items: 12, Past: 1 << 51,
				Ranges: []FileRange{{1, 5, 1 << 60, 9}, {1 << 63, 1, 1, 3}}}},
		LostFiles: []LostFile{{FileName: FileName{TagChanges, 5}, Items: 3},
			{FileName: FileName{EventFile, 8}, Items: 12, Ranges: []FileRange{{1, 5, 1 << 60, 9}},
				Noted: true}},
		Directory: another, EventAccount: []byte("\x00\xff"), EventAccountLSN: 1 << 51,
	}
}

// The format is frozen: the edits give the bytes of the files, one with the edits
// and one with their sum, and both files give the state.
func TestFrozenManifest(t *testing.T) {
	fs := durableDir(t)
	m, _, _ := mustOpenOf(t, fs, another, rewriteSize)
	commit(t, m, frozenEdits()...)
	frozen.Same(t, "MANIFEST", filetest.Read(t, fs, fs.PathJoin(dir, FirstName)))
	frozen.Same(t, "snapshot", m.encodeSnapshot())
	for _, name := range []string{"MANIFEST", "snapshot"} {
		data := frozen.Read(t, name)
		_, state, report := mustOpen(t, disk(t, data), rewriteSize)
		if !reflect.DeepEqual(state, frozenState()) || report.Created ||
			len(report.Damaged)+len(report.Torn) != 0 {
			t.Errorf("%s is read as\n%+v, want\n%+v\n%+v", name, state, frozenState(), report)
		}
	}
	fields := reflect.TypeFor[Edit]()
	for i := range fields.NumField() {
		if name := fields.Field(i).Name; name != "begin" &&
			!slices.ContainsFunc(frozenEdits(), func(e Edit) bool {
				return !reflect.ValueOf(e).Field(i).IsZero()
			}) {
			t.Errorf("no edit has %s", name)
		}
	}
}

// A MANIFEST of another format is refused by its number, and stays as it is.
func TestAnotherFormatIsNamed(t *testing.T) {
	for _, format := range []uint32{0, 1, formatNumber + 1, 1 << 31} {
		data, _ := buildFile(1)
		binary.LittleEndian.PutUint32(data[8:], format)
		binary.LittleEndian.PutUint32(data[12:], crc32.Checksum(data[:12], castagnoli))
		fs := disk(t, data)
		_, _, _, err := Open(fs, dir, own, nil)
		if !errors.Is(err, ErrFormat) ||
			!strings.Contains(err.Error(),
				fmt.Sprintf("%s: the MANIFEST has an unknown format: version %d, this program reads version %d",
					FirstName, format, formatNumber)) {
			t.Errorf("format %d: %v", format, err)
		}
		if string(filetest.Read(t, fs, fs.PathJoin(dir, FirstName))) != string(data) {
			t.Error("the file was changed")
		}
	}
}

// What the format does not know is damage: a bucket with other flags than hpts, a
// segment of another kind.
func TestUnknownBytesAreDamage(t *testing.T) {
	f := func(what string, edit []byte) {
		t.Helper()
		if e, err := parseEdit(edit); !errors.Is(err, errPayload) {
			t.Errorf("%s is read as %+v, %v", what, e, err)
		}
	}
	bucket := appendBucket([]byte{tagPutBucket}, &buckets.Info{ID: 1, Name: "b", HPTS: true})
	bucket[len(bucket)-1] = 2
	f("a bucket with flags 2", bucket)
	f("a side file of kind 0", appendEdit(nil, &Edit{Files: FileChanges{Add: []File{{Seq: 1}}}}))
	f("a side file of an unknown kind",
		appendEdit(nil, &Edit{Files: FileChanges{Remove: []FileName{{FileKinds, 1}}}}))
	f("a segment of kind 3",
		appendEdit(nil, &Edit{AddSegments: []Segment{{Seq: 1, Kind: Overlay + 1}}}))
}
