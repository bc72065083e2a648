package store

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/testkit/filetest"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/logrecord"
	"dalmatiner/internal/write/series"
)

// damageRecords flips a bit of every copy of the log's records that fn chooses, and
// returns how many there were.
func damageRecords(t *testing.T, fs vfs.FS, fn func(p *logrecord.Record) bool) (n int) {
	t.Helper()
	var recs [][]byte
	_, err := wal.Inspect(fs, "/data/wal", [16]byte{}, 0, func(_ wal.LSN, rec []byte) error {
		if p, err := logrecord.Parse(rec); err == nil && fn(&p) {
			recs = append(recs, bytes.Clone(rec))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	names, err := fs.List("/data/wal")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		path := fs.PathJoin("/data/wal", name)
		data := filetest.Read(t, fs, path)
		for _, rec := range recs {
			for from := 0; ; n++ {
				i := bytes.Index(data[from:], rec)
				if i < 0 {
					break
				}
				filetest.FlipBit(t, fs, path, int64(from+i+len(rec)-1)*8)
				from += i + len(rec)
			}
		}
	}
	return n
}

// The log says of a series that begins anew in which incarnation: where damage takes
// both copies of the record of its deletion, what was deleted does not come back.
func TestASeriesSentAgainTellsOfALostDeletion(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	o := testOptions(fs, newTestClock())
	byHand(&o)
	s := mustOpen(t, o)
	send := func(from int64, v int64) {
		t.Helper()
		x := mustSession(t, s, "b")
		for i := range int64(50) {
			x.Point(key(0), uint64(from+i), point.FromInt(v))
			x.Point(key(1), uint64(from+i), point.FromInt(v))
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	send(epoch, 1)
	mustFlush(t, s)
	if _, err := s.DeleteSeries(t.Context(), "b", deletion.Choice{Key: key(0)}, false); err != nil {
		t.Fatal(err)
	}
	send(epoch+50, 2)
	if err := s.disk.Log.Sync(); err != nil {
		t.Fatal(err)
	}
	bucket := mustBucket(t, s, "b")
	n := s.incarnationOf(bucket, key(0))
	s.Crash()
	if n == 0 {
		t.Fatal("no incarnation")
	}
	if got := damageRecords(t, fs, func(p *logrecord.Record) bool {
		return p.Kind == logrecord.SeriesDeleted
	}); got != 2 {
		t.Fatalf("%d copies of the record of the deletion, want 2", got)
	}
	for _, when := range []string{"the first start", "the second start"} {
		s = mustOpen(t, o)
		if got := s.incarnationOf(bucket, key(0)); got != n {
			t.Errorf("%s: incarnation %d, want %d", when, got, n)
		}
		for series := range 2 {
			words, unknown := readUnknown(t, s, "b", series, epoch, 100)
			for i, w := range words {
				want := point.FromInt(1 + int64(i)/50)
				if series == 0 && i < 50 {
					want = point.Unset
				}
				if w != want || unknown[i] {
					t.Fatalf("%s: slot %d of series %d holds %x, unknown %t, want %x", when, i, series, w,
						unknown[i], want)
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A start that looks again for names that the device did not give also finds the columns
// of deleted series. A series that has come back to the column that it was deleted from
// stays in the catalogue with its name, also when it is inactive.
func TestASeriesBackInItsColumnKeepsItsName(t *testing.T) {
	t.Parallel()
	for _, inactive := range []bool{false, true} {
		fs, clock := vfs.NewMem(), newTestClock()
		o := testOptions(fs, clock)
		byHand(&o)
		s := mustOpen(t, o)
		send := func(past int) {
			t.Helper()
			x := mustSession(t, s, "b")
			for i := range past {
				x.Point(key(i), epoch, point.FromInt(1))
			}
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
		}
		place := func() series.Ref {
			b := s.buckets.Get("b")
			return s.columns.Column(b, b.SeriesID(key(0)))
		}
		send(head.Width)
		mustFlush(t, s)
		was := place()
		for i := range columns.MinReuse {
			if _, err := s.DeleteSeries(t.Context(), "b", deletion.Choice{Key: key(i)}, false); err != nil {
				t.Fatal(err)
			}
		}
		send(1)
		mustFlush(t, s)
		if inactive {
			clock.Advance(time.Hour)
			s.clock.Advance()
			b := s.buckets.Get("b")
			s.columns.Deactivate(b, s.columns.Groups.Get(was.Group()))
			if ref, _ := s.columns.Index.Lookup(b.SeriesID(key(0))); !ref.Inactive() {
				t.Fatal("the series has a column")
			}
			mustFlush(t, s)
		}
		if at := place(); at != was {
			t.Fatalf("the series is in %v, it was deleted from %v", at, was)
		}
		n := s.incarnationOf(mustBucket(t, s, "b"), key(0))
		s.disk.Catalogue.SetNamesUnread(true)
		if err := s.disk.Manifest.Commit(manifest.Edit{Catalogue: s.disk.Catalogue.Mark()}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for _, when := range []string{"the first start", "the second start"} {
			wantReturned(t, mustOpen(t, o), n, fmt.Sprintf("inactive %t, %s", inactive, when))
		}
	}
}

// wantReturned checks and closes a store in which all but the first of the deleted
// series are gone. The first one has its incarnation, its name and its points.
func wantReturned(t *testing.T, s *Store, incarnation uint64, when string) {
	t.Helper()
	b := s.buckets.Get("b")
	if got := s.incarnationOf(b.ID, key(0)); got != incarnation {
		t.Errorf("%s: incarnation %d, want %d", when, got, incarnation)
	}
	var names []string
	err := s.disk.Catalogue.Load(func(e segment.Series) error {
		if len(e.Key) > 0 {
			names = append(names, metric.Text(e.Key))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(names, metric.Text(key(0))) || len(names) != head.Width-columns.MinReuse+1 {
		t.Fatalf("%s: the catalogue has %d names: %v", when, len(names), names)
	}
	for i := range head.Width {
		want := point.FromInt(1)
		if 0 < i && i < columns.MinReuse {
			want = point.Unset
		}
		if got := readAll(t, s, "b", i, epoch, 1)[0]; got != want {
			t.Errorf("%s: series %d holds %x, want %x", when, i, got, want)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
