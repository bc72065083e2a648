package drivetest

import (
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/segment"
)

// Every slot of the rows is written once, so that any word but the one sent is wrong.
const (
	RowSeries = 40
	RowSlots  = 200
)

// RowWord returns the word that SendRows writes.
func RowWord(series int, slot int64) uint64 {
	if series%3 == 0 {
		return point.FromFloat(float64(slot-Epoch)/8 + float64(series))
	}
	return point.FromInt((slot-Epoch)*1000 + int64(series))
}

// SendRows writes the slots [from, to) behind Epoch of all series of the bucket "rows".
func SendRows(t TB, s Store, from, to int64) {
	t.Helper()
	x := Session(t, s, "rows")
	for slot := from; slot < to; slot++ {
		for i := range RowSeries {
			x.Point(Key(i), uint64(Epoch+slot), RowWord(i, Epoch+slot))
		}
	}
	if err := x.Close(); err != nil {
		t.Fatalf("session: %v", err)
	}
}

// FillRows writes three quarters of the slots: two segments have the first two, and the last one
// stays in the log.
func FillRows(t TB, s Store) {
	t.Helper()
	SendRows(t, s, 0, RowSlots/4)
	Flush(t, s)
	SendRows(t, s, RowSlots/4, RowSlots/2)
	Flush(t, s)
	SendRows(t, s, RowSlots/2, RowSlots*3/4)
}

// CheckRows counts the words that are missing of the first slots. The test fails where one is
// another than the one sent.
func CheckRows(t TB, s Store, slots int64) (missing int) {
	t.Helper()
	if _, err := s.BucketByName("rows"); err != nil {
		return RowSeries * int(slots)
	}
	for i := range RowSeries {
		for j, got := range Words(t, s, "rows", i, Epoch, RowSlots) {
			want := RowWord(i, Epoch+int64(j))
			switch {
			case got == 0 && int64(j) < slots:
				missing++
			case got != 0 && (got != want || int64(j) >= slots):
				t.Fatalf("series %d slot epoch+%d reads %x, sent was %x", i, j, got, want)
			}
		}
	}
	return missing
}

// FillUnit writes a point of a series into each chunk of the unit of rollups that holds Epoch, so
// that the series has rollups.
func FillUnit(t TB, s Store, bucket string, key []byte) {
	t.Helper()
	const slots = segment.FewChunks * chunk.Slots
	x := Session(t, s, bucket)
	for at := int64(Epoch - Epoch%slots); at < Epoch-Epoch%slots+slots; at += chunk.Slots {
		x.Point(key, uint64(at), point.FromInt(at))
	}
	if err := x.Close(); err != nil {
		t.Fatalf("session: %v", err)
	}
}
