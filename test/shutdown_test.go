package test

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"dalmatiner/client"
	"dalmatiner/internal/codec/point"
)

// stopSender is a sender that goes on until the node closes its connection.
type stopSender struct {
	keys  [][]byte
	acked bool // an acknowledged stream
	sent  int  // rows handed to the connection
	known int  // rows acknowledged
	err   error
}

// run sends a row per slot from base on.
func (s *stopSender) run(n *node, base int64) error {
	c, err := client.Dial(context.Background(), n.tcp)
	if err != nil {
		return err
	}
	defer c.Close()
	var st *client.Stream
	if s.acked {
		st, err = c.OpenAckStream("stopped")
	} else {
		st, err = c.OpenStream("stopped", 1)
	}
	for slot := base; err == nil && slot < base+stopRows; slot++ {
		err = st.BatchStart(slot)
		for i, k := range s.keys {
			if err == nil {
				err = st.BatchPoint(k, value(uint64(i), slot))
			}
		}
		if err == nil {
			err = st.BatchEnd()
		}
		s.sent++
		if err == nil && s.acked {
			if _, err = st.FlushAck(); err == nil {
				if _, err = st.ReadAck(); err == nil {
					s.known++
				}
			}
		} else if err == nil {
			err = st.Flush()
		}
	}
	return nil // the end of the node ends the stream
}

const stopRows = 200_000

// TestStopUnderLoad: SIGTERM in the middle of eight streams makes durable what
// was received and exits 0. Then, and after kill -9 as well, the account is what
// can be read, every acknowledged row is there, and each stream ends at one row,
// without a hole.
func TestStopUnderLoad(t *testing.T) {
	t.Run("SIGTERM", func(t *testing.T) {
		stopUnderLoad(t, func(n *node) {
			if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if code := n.wait(); code != 0 {
				t.Fatalf("the exit code is %d:\n%s", code, n.log)
			}
		}, func(replayed int) bool { return replayed <= 10 })
	})
	t.Run("kill -9", func(t *testing.T) {
		stopUnderLoad(t, (*node).kill, func(replayed int) bool { return replayed > 1000 })
	})
}

func stopUnderLoad(t *testing.T, stop func(*node), replays func(records int) bool) {
	dir := t.TempDir()
	n := startNode(t, dir)
	base := past(100 * time.Hour)
	senders := make([]*stopSender, 8)
	var all sync.WaitGroup
	for i := range senders {
		s := &stopSender{acked: i%2 == 0}
		for j := range 50 {
			s.keys = append(s.keys, key(t, "s", fmt.Sprint(i), fmt.Sprint(j)))
		}
		senders[i] = s
		all.Go(func() { s.err = s.run(n, base) })
	}
	// How many points a record has depends on which senders come first.
	eventually(t, "a hundred thousand points have arrived, in many records", func() bool {
		return n.account("stopped").Received > 100_000 && n.figure("wal_records_total") > 3000
	})
	// They may all wait in memory for the first fsync. The second one from here on begins
	// behind them.
	syncs := n.figure("wal_syncs_total")
	eventually(t, "these records are on disk", func() bool {
		return n.figure("wal_syncs_total") >= syncs+2
	})
	stop(n)
	all.Wait()
	n = startNode(t, dir)
	if replayed := replayedRecords(t, n); !replays(replayed) {
		t.Errorf("%d records were replayed", replayed)
	}
	var there uint64
	for i, s := range senders {
		if s.err != nil || s.sent == stopRows {
			t.Fatalf("sender %d sent %d rows of %d: %v", i, s.sent, stopRows, s.err)
		}
		there += s.check(t, n, base)
	}
	if row := n.account("stopped"); stored(row) != there || row.Received != there {
		t.Errorf("%d points can be read, the account says %+v", there, row)
	}
}

// check reads what a sender sent and returns the number of points there.
func (s *stopSender) check(t *testing.T, n *node, base int64) (there uint64) {
	t.Helper()
	c := n.dial()
	rows := -1 // whole rows that are there
	for i, k := range s.keys {
		length := 0
		for j, word := range get(t, c, "stopped", k, base, s.sent+10) {
			slot := base + int64(j)
			switch {
			case word == point.Unset:
				continue
			case word != value(uint64(i), slot):
				t.Fatalf("slot %d is %016x, sent was %016x", slot, word, value(uint64(i), slot))
			case j != length:
				t.Fatalf("slot %d is there and slot %d is not", slot, base+int64(length))
			}
			length++
		}
		there += uint64(length)
		if rows < 0 || length < rows {
			rows = length
		}
	}
	if rows < s.known || rows > s.sent {
		t.Errorf("%d rows are there, sent were %d, acknowledged %d", rows, s.sent, s.known)
	}
	return there
}
