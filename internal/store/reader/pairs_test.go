package reader_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/testkit/filetest"
)

// In a bucket without timestamps a read gives the begin of each set slot.
func TestTimestampsOfAPlainBucket(t *testing.T) {
	t.Parallel()
	s := storetest.Start(t, storetest.OptionsAt(vfs.NewMem(), drivetest.NewClock()))
	defer s.Crash()
	x := drivetest.Session(t, s, "b")
	x.TimestampedPoint(key(0), epoch+1, point.FromInt(7), 12345)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := s.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	values, timestamps := make([]uint64, 3), []uint64{9, 9, 9}
	if err := s.ReadTimestamped(context.Background(), info, key(0), epoch, values,
		timestamps); err != nil {
		t.Fatal(err)
	}
	if values[1] != point.FromInt(7) || timestamps[0] != 0 || timestamps[1] != (epoch+1)*second ||
		timestamps[2] != 0 {
		t.Errorf("read %x at %d", values, timestamps)
	}
}

// A reader beside a writer, sealing and flushes never sees a value with the
// timestamp of another write.
func TestAReaderSeesWholePairs(t *testing.T) {
	t.Parallel()
	clock := drivetest.NewClock()
	s := storetest.Start(t, storetest.OptionsAt(vfs.NewMem(), clock))
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	info := drivetest.TimestampedBucket(t, s)
	const rounds = 2000
	written := make(chan error, 1)
	go func() {
		x, err := s.NewSession(info)
		if err != nil {
			written <- err
			return
		}
		for i := range uint64(rounds) {
			for k := range 3 {
				x.TimestampedPoint(key(k), epoch, point.FromInt(int64(i)), epoch*second+i)
			}
			if _, err = x.Commit(); err == nil && i%500 == 499 {
				_, err = s.Flush(context.Background())
			}
			if err != nil {
				break
			}
		}
		written <- errors.Join(err, x.Close())
	}()
	for last := int64(-1); last < rounds-1; {
		var value, timestamp [1]uint64
		if err := s.ReadTimestamped(context.Background(), info, key(1), epoch, value[:],
			timestamp[:]); err != nil {
			t.Fatal(err)
		}
		if value[0] == point.Unset {
			continue
		}
		got := point.Int(value[0])
		if got < last || timestamp[0] != epoch*second+uint64(got) {
			t.Fatalf("value %d after %d has the timestamp of %d", got, last, timestamp[0]-epoch*second)
		}
		last = got
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
}

// Where damage takes the values of a segment that corrects an older one, or their
// timestamps, the points are unknown: neither has the timestamp of the other segment,
// nor the begin of its slot. Queries, which see values only, have those that are
// whole. The same holds after a merge and a start.
func TestDamageNeverMixesPairs(t *testing.T) {
	t.Parallel()
	for _, bit := range []bool{false, true} {
		clock := drivetest.NewClock()
		o := storetest.OptionsAt(vfs.NewMem(), clock)
		storetest.ByHand(&o)
		s := storetest.Start(t, o)
		info := drivetest.TimestampedBucket(t, s)
		id := metric.TimestampedID(info.ID, key(0))
		if bit {
			id = id.Timestamp()
		}
		var file string
		for round := range uint64(2) { // the second corrects the first, and is damaged
			x := drivetest.Session(t, s, "b")
			r := rand.New(rand.NewPCG(round, 1))
			for slot := uint64(epoch); slot < epoch+700; slot++ {
				for k := range 8 { // random bits, so that a chunk fills a block
					x.TimestampedPoint(key(k), slot, r.Uint64()|1<<63, slot*second+r.Uint64N(1<<54))
				}
			}
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			f, err := s.Flush(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			file = f.Segment
		}
		before := readPairsOf(t, s, info)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		damageChunk(t, o.FS, "/data/"+file, info.ID, segment.Hash(id))
		s = storetest.Start(t, o)
		for _, when := range []string{"damaged", "merged", "opened again"} {
			switch when {
			case "merged":
				s.Pass(t, clock, 9*time.Hour)
				x := drivetest.Session(t, s, "b")
				x.TimestampedPoint(key(9), epoch+30_000, 1<<63, (epoch+30_000)*second)
				if err := x.Close(); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				if r, err := s.Merge(t.Context()); err != nil || r.Removed == 0 {
					t.Fatalf("%v, %d segments removed", err, r.Removed)
				}
			case "opened again":
				s.Crash()
				s = storetest.Start(t, o)
			}
			checkLostPairs(t, s, info, when, bit, before)
		}
		s.Crash()
	}
}

// checkLostPairs wants no points of the first series, and its values where only the
// timestamps are damaged.
func checkLostPairs(t *testing.T, s *storetest.Store, info buckets.Info, when string,
	timestamps bool, before [700][2]uint64) {
	t.Helper()
	for i, p := range readPairsOf(t, s, info) {
		if p != [2]uint64{} {
			t.Fatalf("%s: slot %d holds %x, was %x", when, i, p, before[i])
		}
	}
	values := make([]uint64, len(before))
	st, err := s.Series(info, key(0)).ReadCounted(t.Context(), epoch, values)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range values {
		want := before[i][0]
		if !timestamps {
			want = 0
		}
		if w != want {
			t.Fatalf("%s: the value of slot %d is %x, want %x", when, i, w, want)
		}
	}
	if timestamps != (len(st.Unknown) == 0) {
		t.Fatalf("%s: unknown are %v", when, st.Unknown)
	}
	checkOtherReads(t, s, info, when, timestamps, values)
	if names, _ := s.Damage(); len(names) == 0 && when != "opened again" {
		t.Errorf("%s: the damage is not named", when)
	}
}

// checkOtherReads wants from aggregates, listings and, where nothing is unknown, reads
// of older values what a read of values alone gives.
func checkOtherReads(t *testing.T, s *storetest.Store, info buckets.Info, when string,
	timestamps bool, values []uint64) {
	t.Helper()
	steps := make([]chunk.Header, len(values)/20)
	if _, err := s.Series(info, key(0)).Aggregate(t.Context(), epoch, 20, steps); err != nil {
		t.Fatal(err)
	}
	for i, h := range steps {
		if want := chunk.Summarize(values[i*20:][:20], 0); h != want {
			t.Fatalf("%s: step %d is %+v, want %+v", when, i, h, want)
		}
	}
	older := make([]uint64, len(values))
	if _, err := s.Series(info, key(0)).ReadOlder(t.Context(), epoch, older); err != nil {
		t.Fatal(err)
	}
	if timestamps && !slices.Equal(older, values) {
		t.Fatalf("%s: a read of what is older gives something else", when)
	}
	listed := false
	if err := s.Metrics(t.Context(), info, nil, func(k []byte) bool {
		listed = bytes.Equal(k, key(0))
		return !listed
	}); err != nil || !listed {
		t.Fatalf("%s: the series is not listed: %v", when, err)
	}
}

func readPairsOf(t *testing.T, s *storetest.Store, info buckets.Info) (pairs [700][2]uint64) {
	t.Helper()
	values, timestamps := make([]uint64, len(pairs)), make([]uint64, len(pairs))
	if err := s.ReadTimestamped(context.Background(), info, key(0), epoch, values,
		timestamps); err != nil {
		t.Fatal(err)
	}
	for i := range pairs {
		pairs[i] = [2]uint64{values[i], timestamps[i]}
	}
	return pairs
}

// damageChunk flips a bit in the middle of the first chunk of a series.
func damageChunk(t *testing.T, fs vfs.FS, path string, bucket uint64, h segment.Hash) {
	t.Helper()
	r, err := segment.Open(fs, path)
	if err != nil {
		t.Fatal(err)
	}
	var chunk []byte
	if err := r.Chunks(bucket, h, 0, 1<<40, func(_ int64, data []byte) error {
		chunk = bytes.Clone(data)
		return nil
	}); err != nil || chunk == nil {
		t.Fatalf("the series has no chunk: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(filetest.Read(t, fs, path), chunk)
	if at < 0 {
		t.Fatal("the chunk is not in the file")
	}
	filetest.FlipBit(t, fs, path, int64(at+len(chunk)/2)*8)
}
