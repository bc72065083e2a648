package test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"dalmatiner/client"
	"dalmatiner/internal/codec/point"
)

// TestOverwritesSurviveKill: eight connections write different values to the
// same slots at the same time. What a reader saw once all was durable is what
// is read after kill -9, although nobody can say who came last.
func TestOverwritesSurviveKill(t *testing.T) {
	t.Parallel()
	const (
		bucket  = "contested"
		writers = 8
		passes  = 5
		slots   = 400
	)
	dir := t.TempDir()
	n := startNode(t, dir, "--set", "wal.sync=always")
	keys := [][]byte{key(t, "a"), key(t, "b", "c"), key(t, "d")}
	base := past(time.Hour)
	errs := make([]error, writers)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for pass := range passes {
				errs[w] = contend(n, bucket, keys, base, slots, int64(w*passes+pass+1))
				if errs[w] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	for w, err := range errs {
		if err != nil {
			t.Fatalf("writer %d: %v", w, err)
		}
	}
	before := readAll(t, n, bucket, keys, base, slots)
	for _, words := range before {
		if slices.Contains(words, point.Unset) {
			t.Fatal("a slot is unset though eight connections wrote it")
		}
	}
	row := n.account(bucket)
	if want := uint64(writers * passes * len(keys) * slots); row.Received != want ||
		stored(row) != want {
		t.Errorf("%d points were sent, the account says %+v", want, row)
	}
	if row.Conflicting == 0 {
		t.Error("no write met a different value: the test shows nothing")
	}
	n.kill()
	for _, restart := range []string{"kill -9", "a flush and a second kill -9"} {
		n = startNode(t, dir, "--set", "wal.sync=always")
		for i, words := range readAll(t, n, bucket, keys, base, slots) {
			for j, word := range words {
				if word != before[i][j] {
					t.Fatalf("after %s: series %d, slot %d: %016x, it was %016x", restart, i, base+int64(j), word,
						before[i][j])
				}
			}
		}
		if again := n.account(bucket); fmt.Sprint(again) != fmt.Sprint(row) {
			t.Errorf("after %s the account is %+v, it was %+v", restart, again, row)
		}
		if _, err := n.admin().Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		n.kill()
	}
}

// contend writes one value to all slots of all series: half of the series as
// rows, the others as columns.
func contend(n *node, bucket string, keys [][]byte, base int64, slots int, v int64) error {
	c, err := client.Dial(context.Background(), n.tcp)
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := c.OpenAckStream(bucket)
	if err != nil {
		return err
	}
	for slot := base; slot < base+int64(slots); slot++ {
		for _, k := range keys[:len(keys)-1] {
			if err := s.Point(k, slot, point.FromInt(v)); err != nil {
				return err
			}
		}
	}
	column := slices.Repeat([]uint64{point.FromInt(v)}, slots)
	if err := s.Points(keys[len(keys)-1], base, column...); err != nil {
		return err
	}
	if _, err := s.FlushAck(); err != nil {
		return err
	}
	if err := s.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err = s.ReadAck()
	return err
}

// readAll returns the slots of all series.
func readAll(t *testing.T, n *node, bucket string, keys [][]byte, base int64,
	slots int) [][]uint64 {
	t.Helper()
	c := n.dial()
	defer c.Close()
	out := make([][]uint64, len(keys))
	for i, k := range keys {
		out[i] = get(t, c, bucket, k, base, slots)
	}
	return out
}
