package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"time"

	"dalmatiner/bench/measure"
	"dalmatiner/internal/account"
	"dalmatiner/test/overload"
)

const (
	overloadDuring = 2 * time.Minute
	overloadWindow = 20 * time.Second // of a round
	overloadRounds = 3
	overloadQuick  = 10 * time.Second // both, in a quick run

	goodputBudget = 0.9  // least share of the capacity, by processor time
	backBudget    = 30.0 // seconds until the latency is at most 1.2 times what it was

	// overloadFirst is how long ago the slots of the senders begin: they send
	// months of them.
	overloadFirst = 2 * 365 * 24 * time.Hour
)

// overload offers three times what the store can take, over TCP and over UDP.
// The store has one processor, so that the senders have the other.
func (b *bench) overload(ctx context.Context) error {
	for _, door := range []string{"TCP", "UDP"} {
		if err := b.overloadOf(ctx, door); err != nil {
			return fmt.Errorf("overload over %s: %w", door, err)
		}
	}
	return nil
}

func (b *bench) overloadOf(ctx context.Context, door string) error {
	cmd := exec.Command(filepath.Join(b.bin, "ddb"), "serve", "--data-dir", filepath.Join(b.dir, "overload-"+door),
		"--set", "tcp.addr=127.0.0.1:0", "--set", "http.addr=127.0.0.1:0", "--set", "graphite.addr=127.0.0.1:0", "--set", "wal.interval=20ms",
		"--set", "flush.bytes=16MB") // a few flushes in every window: one that has none looks like more capacity than there is
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	s, err := start(cmd)
	if err != nil {
		return err
	}
	defer s.kill()
	senders, bucket, err := s.overloaders(ctx, door)
	if err != nil {
		return err
	}
	probe, err := overload.NewProbe(ctx, s.tcp)
	if err != nil {
		return err
	}
	plan := overload.Plan{
		Senders: senders, Probe: probe, Warm: overloadQuick, Window: overloadWindow, Rounds: overloadRounds, Overload: overloadDuring, Patience: time.Minute,
		Stored: func() (uint64, error) { return s.storedIn(ctx, bucket) },
		CPU:    func() (time.Duration, error) { used, err := s.cpuTime(); return used.Sum(), err },
	}
	if b.reps == 1 {
		plan.Window, plan.Overload = overloadQuick, overloadQuick
	}
	r, err := plan.Run(ctx)
	if err != nil {
		return err
	}
	missing, err := s.unaccounted(ctx, door, bucket, r.Messages*int64(senders[0].Points()), senders[0].Points())
	if err != nil {
		return err
	}
	area := fmt.Sprintf("overload, %s, %v", door, plan.Overload)
	b.table.add(figure{area: area, what: "capacity ÷ goodput by processor time", value: 1 / r.Rounds.CPU, unit: "×", budget: 1 / goodputBudget}.
		because("%d rounds at capacity and at 3 ×; capacity %.2f M points/s on one processor, %.1f × sent; by the clock %.2f ×", plan.Rounds, r.Capacity/1e6, r.Offered, 1/r.Rounds.Clock))
	b.table.add(figure{area: area, what: "the same, at a stretch", value: 1 / r.Long.CPU, unit: "×", budget: 1 / goodputBudget}.
		because("by the clock %.2f ×: what others take of the machine is in that", 1/r.Long.Clock))
	b.table.add(figure{area: area, what: "latency is back after", value: r.Back.Seconds(), unit: "s", budget: backBudget}.
		because("median until durable %v before at 0.8 ×, %v during, %v after", r.Before, r.During, r.After))
	b.table.add(figure{area: area, what: "points that the account lacks", value: missing, unit: "points"}.
		because("sent %d messages; drops of the kernel are counted", r.Messages))
	if missing != 0 {
		return fmt.Errorf("%.0f points were sent and are neither in the account nor counted as dropped", missing)
	}
	return s.stop()
}

var graphiteLine = regexp.MustCompile(`msg="graphite lines" addr=(\S+)`)

// overloaders returns two senders of a door, and the bucket they write to.
func (s *server) overloaders(ctx context.Context, door string) (senders []overload.Sender, bucket string, err error) {
	first := time.Now().Add(-overloadFirst).Unix()
	var clock atomic.Int64
	clock.Store(first)
	for i := range 2 {
		if door == "TCP" {
			stream, err := overload.NewStream(ctx, s.tcp, "load", i, 1, first)
			if err != nil {
				return nil, "", err
			}
			senders, bucket = append(senders, stream), "load"
			continue
		}
		for _, line := range s.lines() {
			m := graphiteLine.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			lines, err := overload.NewLines(ctx, m[1], i, &clock)
			if err != nil {
				return nil, "", err
			}
			senders, bucket = append(senders, lines), "graphite"
		}
	}
	if len(senders) != 2 {
		return nil, "", fmt.Errorf("the log does not name the port of %s", door)
	}
	return senders, bucket, nil
}

// storedIn returns the points that a bucket holds by the account; 0 before it is
// there.
func (s *server) storedIn(ctx context.Context, bucket string) (uint64, error) {
	a, err := s.client().Account(ctx, "", 0)
	if err != nil {
		return 0, err
	}
	for _, row := range a.Rows {
		if row.Bucket == bucket {
			if n := row.Refused[account.Future.String()]; n > 0 {
				return 0, fmt.Errorf("%d points were refused as of the future: the senders have begun too late", n)
			}
			return row.Accepted + row.Duplicate + row.Conflicting + row.Late, nil
		}
	}
	return 0, nil
}

// unaccounted waits until what is under way has arrived and returns the points
// sent that are neither received nor dropped.
func (s *server) unaccounted(ctx context.Context, door, bucket string, sent int64, perMessage int) (float64, error) {
	for left := time.Now().Add(10 * time.Second); ; {
		received, err := s.received(ctx, bucket)
		if err != nil {
			return 0, err
		}
		if door == "UDP" {
			drops, err := s.stat(ctx, "graphite_udp_kernel_drop_total")
			if err != nil {
				return 0, err
			}
			received += int64(drops) * int64(perMessage)
		}
		if received == sent || time.Now().After(left) {
			return float64(sent) - float64(received), nil
		}
		if err := measure.Pause(ctx, 100*time.Millisecond); err != nil {
			return 0, err
		}
	}
}
