package metric

import (
	"fmt"
	"testing"
)

// TestShortKeysOfBucketsDiffer takes every pair of short keys that differ in two
// bytes, in two buckets: a hash whose seed is added to a short key gives some of
// them one id.
func TestShortKeysOfBucketsDiffer(t *testing.T) {
	ids := make(map[SeriesID]string)
	for bucket := range uint64(4) {
		for n := 4; n <= 9; n++ {
			for v := range 256 {
				for w := range 8 {
					key := []byte("\x03key\x05abcde")[:n]
					key = append([]byte{byte(v)}, key[1:]...)
					key[n-1] = byte(w)
					id := Series(bucket, key)
					is := string(rune(bucket)) + string(key)
					if was, ok := ids[id]; ok && was != is {
						t.Fatalf("%q and %q, after the number of their bucket, have the id %x", was, is, id)
					}
					ids[id] = is
				}
			}
		}
	}
}

func TestIDsAreFixed(t *testing.T) {
	key, err := Key("base", "cpu")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x", Series(7, key)); got != "6d208f4fe8f106b48ce94adc82db0367" {
		t.Errorf("the id is %s: no data directory would know its series again", got)
	}
}

// What tells two buckets apart tells their ids apart, and nothing else does.
func TestBucketIDs(t *testing.T) {
	ids := make(map[uint64]string)
	for _, name := range []string{"", "b", "bb", "b\x00", "\x00b", "b~conflict",
		string(make([]byte, MaxBucket))} {
		for _, resolution := range []int64{1, 1000, 60_000, 1 << 40} {
			for _, hpts := range []bool{false, true} {
				for _, deleted := range []uint64{0, 1, 1_763_000_000_000_000_000, 1_763_000_000_000_000_001,
					1<<64 - 1} {
					id, what := BucketID(name, resolution, hpts, deleted),
						fmt.Sprintf("%q %d %t %d", name, resolution, hpts, deleted)
					if was, ok := ids[id]; ok || id == 0 {
						t.Errorf("the id of %s is %x, which %q has", what, id, was)
					}
					if BucketID(name, resolution, hpts, deleted) != id {
						t.Errorf("%s has two ids", what)
					}
					ids[id] = what
				}
			}
		}
	}
	if got := fmt.Sprintf("%016x", BucketID("base", 1000, false, 0)); got != "fc33d4860dd86170" {
		t.Errorf("the id is %s: no node would know the bucket of another again", got)
	}
}
