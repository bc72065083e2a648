package store

import (
	"testing"

	"dalmatiner/internal/store/deletion"
)

// A bucket is deleted, and a merge writes its segments without its names, before a flush has
// committed the deletion. Then the catalogue is lost. The log has points from before the deletion:
// none of them is lost, and nothing that was deleted comes back, however often the node starts.
func TestAMergeLosesNoPointsOfADeletedBucket(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string]string{
		"bucket": "b", "series": "sb", "series twice": "spsb", "points": "pb", "points of others": "ob",
		"again": "bp", "series and again": "sbp", "series again, bucket again": "spbp",
		"merge between": "smb", "merge between and again": "smbp", "twice": "bpb",
		"all of it": "sopbpsob",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			deletedBucketStarts(t, steps)
		})
	}
}

// deletedBucketStarts takes steps and loses the catalogue: s deletes a series, b the bucket, p
// sends a point of the series, o one of another bucket, and m merges.
func deletedBucketStarts(t *testing.T, steps string) {
	const gone = 3
	clock := newTestClock()
	mem := namedStore(t, clock, "")
	s := openNamed(t, mem, clock)
	send := func(bucket string) {
		x := mustSession(t, s, bucket)
		defer x.Close()
		x.Point(key(gone), epoch, noise(gone, 0))
		if _, err := x.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range steps + "m" {
		var err error
		switch step {
		case 's':
			_, err = s.DeleteSeries(t.Context(), "b", deletion.Choice{Key: key(gone)}, false)
		case 'b':
			err = s.DeleteBucket("b")
		case 'p':
			send("b")
		case 'o':
			send("other")
		case 'm':
			_, err = s.Merge(t.Context())
		}
		if err != nil {
			t.Fatalf("step %c: %v", step, err)
		}
	}
	again := steps[len(steps)-1] == 'p'
	startWithoutCatalogue(t, mem, clock, s, func(start int, s *Store) {
		checkDeletedBucket(t, s, start, again)
	})
}

// checkDeletedBucket finds what was deleted gone, and one point where the bucket was created again.
func checkDeletedBucket(t *testing.T, s *Store, start int, again bool) {
	t.Helper()
	info, err := s.BucketByName("b")
	if (err == nil) != again {
		t.Errorf("start %d: the bucket: %v", start, err)
	}
	if err != nil {
		return
	}
	if names := namesOf(t, s); len(names) != 1 || names[0] != string(key(3)) {
		t.Errorf("start %d: the bucket lists %q", start, names)
	}
	dst := make([]uint64, 40)
	if err := s.Read(t.Context(), info, key(3), epoch, dst); err != nil {
		t.Fatal(err)
	}
	for slot, got := range dst {
		if slot == 0 && got != noise(3, 0) || slot > 0 && got != 0 {
			t.Errorf("start %d: slot %d holds %x", start, slot, got)
		}
	}
}
