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
	for bucket := range uint32(4) {
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
	if got := fmt.Sprintf("%x", Series(7, key)); got != "6079242d2309ed8d73325f071a0726d2" {
		t.Errorf("the id is %s: no data directory would know its series again", got)
	}
}
