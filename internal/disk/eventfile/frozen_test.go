package eventfile

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/testkit/filetest"
	"dalmatiner/internal/testkit/frozen"
)

// The format is frozen: a file is written as these bytes, and read from them.
func TestFrozenFile(t *testing.T) {
	events := map[uint64][]Event{
		7: {{Time: 1_600_000_000_000_000_000, ID: ID{1, 15: 1}, Body: []byte("\x83a\x01")},
			{Time: 1_600_000_000_005_000_000, ID: ID{1, 15: 2}}},
		9: {{Time: 1, ID: ID{1}, Body: []byte("b")}, {Time: 1, ID: ID{2}, Body: []byte("b")}},
	}
	lost := []LostRange{{Bucket: 9, First: 3, Last: 9, Events: 7}}
	meta := Meta{Buckets: []buckets.Info{
		{ID: 7, Name: "b", Resolution: 1000, PPF: 10, TTL: 5, Grace: 3}}, Position: 77,
		Account: []byte("account"), Replaces: []uint64{1, 300}}
	fs := vfs.NewMem()
	write(t, fs, 12, events, lost, meta)
	data := filetest.Read(t, fs, "f.evt")
	frozen.Same(t, "f.evt", data)
	filetest.Write(t, fs, "f.evt", frozen.Read(t, "f.evt"))
	r, _, err := Open(fs, "f.evt", testFile(12))
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := readAll(r); err != nil || !equal(got[7], events[7]) ||
		!equal(got[9], events[9]) {
		t.Fatal(got, err)
	}
}
