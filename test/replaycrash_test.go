package test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"dalmatiner/client"
)

const (
	replaySeries = 500
	replayRows   = 1500
	replayEnd    = "the log is in memory"
)

// sendAcked sends rows of all series from slot base on, on an acknowledged stream.
func sendAcked(t *testing.T, n *node, keys [][]byte, base, rows int64) {
	t.Helper()
	c, err := client.Dial(context.Background(), n.tcp)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := c.OpenAckStream("replayed")
	for slot := base; err == nil && slot < base+rows; slot++ {
		err = s.BatchStart(slot)
		for i := 0; err == nil && i < len(keys); i++ {
			err = s.BatchPoint(keys[i], value(uint64(i), slot))
		}
		if err == nil {
			err = s.BatchEnd()
		}
	}
	if err == nil {
		_, err = s.FlushAck()
	}
	if err == nil {
		_, err = s.ReadAck()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestKillsAndStopsDuringAReplay: a node is killed, or stopped in the orderly way,
// while it brings the log into memory, several times in a row, and takes points in
// between. Whatever was acknowledged is there, and the account is exact: flushes of
// 1 MB make the start stop and go on many times.
func TestKillsAndStopsDuringAReplay(t *testing.T) {
	meanwhile, all := 0, 0
	for _, ends := range []string{"kkkk", "ktk", "tk", "kkt"} {
		t.Run(ends, func(t *testing.T) {
			dir, base := t.TempDir(), past(100*time.Hour)
			var keys [][]byte
			for i := range replaySeries {
				keys = append(keys, key(t, "r", fmt.Sprint(i)))
			}
			n := startNode(t, dir)
			sendAcked(t, n, keys, base, replayRows)
			n.kill()
			rows := int64(replayRows)
			for i, end := range ends {
				n = startNode(t, dir, "--set", "flush.bytes=1MB")
				if i%2 == 1 {
					sendAcked(t, n, keys[:10], base+rows, 1) // brings a group and writes to it
					rows++
				}
				all++
				if !strings.Contains(n.log.String(), replayEnd) {
					meanwhile++
				}
				if end == 'k' {
					n.kill()
				} else {
					n.stop()
				}
			}
			stopped := strings.HasSuffix(ends, "t")
			n = startNode(t, dir, "--set", "flush.bytes=1MB")
			if replayed := replayedRecords(t, n); stopped && replayed > 10 {
				t.Errorf("%d records were replayed after an orderly end", replayed)
			}
			checkReplayed(t, n, keys, base, rows)
			n.stop()
			n = startNode(t, dir)
			checkReplayed(t, n, keys, base, rows)
		})
	}
	t.Logf("%d of %d nodes ended before the log was in memory", meanwhile, all)
	if meanwhile == 0 {
		t.Error("no node was still replaying when it ended: the test shows less than it should")
	}
}

// checkReplayed reads everything and compares it with the account.
func checkReplayed(t *testing.T, n *node, keys [][]byte, base, rows int64) {
	t.Helper()
	c, points := n.dial(), uint64(0)
	for i, k := range keys {
		sent := int64(replayRows)
		if i < 10 {
			sent = rows
		}
		for j, word := range get(t, c, "replayed", k, base, int(sent)) {
			if want := value(uint64(i), base+int64(j)); word != want {
				t.Fatalf("series %d, row %d is %016x, sent was %016x", i, j, word, want)
			}
			points++
		}
	}
	if row := n.account("replayed"); row.Received != points || stored(row) != points {
		t.Errorf("%d points were sent and are there, the account says %+v", points, row)
	}
	lost, err := n.admin().Account(context.Background(), "", 0)
	if err != nil || len(lost.Lost) > 0 {
		t.Errorf("lost: %+v, %v", lost.Lost, err)
	}
}
