package metric

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"dalmatiner/internal/testkit/frozen"
)

// The format is frozen: a series is known by this id in every file, whatever the
// length of its key (the hash has other ways for other lengths).
func TestFrozenIDs(t *testing.T) {
	var text strings.Builder
	for _, bucket := range []uint64{1, 1 << 63} {
		for _, n := range []int{1, 3, 4, 8, 9, 16, 17, 64, 128, 129, 240, 241, 252, 253, 1024, MaxKey} {
			key := bytes.Repeat([]byte("\x03ab\xff"), n/4+1)[:n]
			id := Series(bucket, key)
			fmt.Fprintf(&text, "%d %d %x values %x stamps %x\n", bucket, n, id, TimestampedID(bucket, key),
				id.Timestamp())
		}
	}
	frozen.Same(t, "ids.txt", []byte(text.String()))
}
