package reader_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/reader"
	"dalmatiner/internal/store/storetest"
)

// A read says how many slots it decoded from files and how many bytes their
// chunks have: nothing for what is in memory.
func TestAReadSaysWhatItTook(t *testing.T) {
	t.Parallel()
	fs, clock := vfs.NewMem(), drivetest.NewClock()
	s := storetest.Start(t, storetest.OptionsAt(fs, clock))
	defer func() { s.Crash() }()
	x := drivetest.Session(t, s, "rows")
	from := clock.Now().Unix()
	const slots = 1000
	for i := range int64(slots) {
		x.Point(key(1), uint64(from+i), point.FromInt(i*i))
	}
	if _, err := x.Commit(); err != nil {
		t.Fatal(err)
	}
	info, err := s.BucketByName("rows")
	if err != nil {
		t.Fatal(err)
	}
	read := func(skip, n int64) reader.Stats {
		t.Helper()
		dst := make([]uint64, n)
		st, err := s.Series(info, key(1)).ReadCounted(t.Context(), from+skip, dst)
		if err != nil || dst[0] != point.FromInt(skip*skip) {
			t.Fatal(dst[0], err)
		}
		return st
	}
	if st := read(0, slots); st.Points+st.Bytes+st.Headers+st.Rollups != 0 || len(st.Unknown) > 0 {
		t.Errorf("from memory: %+v", st)
	}
	if _, err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, few := read(0, slots), read(100, 10)
	if all.Points < 500 || all.Bytes == 0 || few.Points != 10 || few.Bytes == 0 ||
		few.Bytes > all.Bytes {
		t.Errorf("all: %+v, ten slots: %+v", all, few)
	}
}
