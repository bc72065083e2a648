package rows

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"time"

	"dalmatiner/bench/report"
	"dalmatiner/bench/server"
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
	for _, protocol := range []string{"TCP", "UDP"} {
		if err := b.overloadOf(ctx, protocol); err != nil {
			return fmt.Errorf("overload over %s: %w", protocol, err)
		}
	}
	return nil
}

func (b *bench) overloadOf(ctx context.Context, protocol string) error {
	data := filepath.Join(b.Dir, "overload-"+protocol)
	cmd := b.Command(data, "graphite.addr=127.0.0.1:0", "wal.interval=20ms",
		// a few flushes in every window: one that has none looks like more capacity than there is
		"flush.bytes=16MB")
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	s, err := server.Start(cmd, data)
	if err != nil {
		return err
	}
	defer s.Remove()
	senders, bucket, err := overloaders(ctx, s, protocol)
	if err != nil {
		return err
	}
	probe, err := overload.NewProbe(ctx, s.TCP)
	if err != nil {
		return err
	}
	plan := overload.Plan{
		Senders: senders, Probe: probe, Warm: overloadQuick, Window: overloadWindow,
		Rounds: overloadRounds, Overload: overloadDuring, Patience: time.Minute,
		Stored: func() (uint64, error) { return s.Stored(ctx, bucket) },
		CPU:    func() (time.Duration, error) { used, err := s.CPU(); return used.Sum(), err },
	}
	if b.Quick {
		plan.Window, plan.Overload = overloadQuick, overloadQuick
	}
	r, err := plan.Run(ctx)
	if err != nil {
		return err
	}
	sent, datagram := r.Messages*int64(senders[0].Points()), 0
	if protocol == "UDP" {
		datagram = senders[0].Points()
	}
	missing, err := s.Unaccounted(ctx, bucket, sent, datagram)
	if err != nil {
		return err
	}
	area := fmt.Sprintf("overload, %s, %v", protocol, plan.Overload)
	b.table.Add(report.Figure{Area: area, What: "capacity ÷ goodput by processor time",
		Value: 1 / r.Rounds.CPU, Unit: "×", Budget: 1 / goodputBudget}.
		Because("%d rounds at capacity and at 3 ×; capacity %.2f M points/s on one processor, %.1f × "+
			"sent; by the clock %.2f ×", plan.Rounds, r.Capacity/1e6, r.Offered, 1/r.Rounds.Clock))
	b.table.Add(report.Figure{Area: area, What: "the same, at a stretch", Value: 1 / r.Long.CPU,
		Unit: "×", Budget: 1 / goodputBudget}.
		Because("by the clock %.2f ×: what others take of the machine is in that", 1/r.Long.Clock))
	b.table.Add(report.Figure{Area: area, What: "latency is back after", Value: r.Back.Seconds(),
		Unit: "s", Budget: backBudget}.
		Because("median until durable %v before at 0.8 ×, %v during, %v after", r.Before, r.During,
			r.After))
	b.table.Add(report.Figure{Area: area, What: "points that the account lacks", Value: missing,
		Unit: "points"}.
		Because("sent %d messages; drops of the kernel are counted", r.Messages))
	if missing != 0 {
		return fmt.Errorf("%.0f points were sent and are neither in the account nor counted as dropped",
			missing)
	}
	return s.Stop()
}

var graphiteLine = regexp.MustCompile(`msg="graphite lines" addr=(\S+)`)

// overloaders returns two senders of a protocol, and the bucket they write to.
func overloaders(ctx context.Context, s *server.Server, protocol string) (senders []overload.Sender,
	bucket string, err error) {
	first := time.Now().Add(-overloadFirst).Unix()
	var clock atomic.Int64
	clock.Store(first)
	for i := range 2 {
		if protocol == "TCP" {
			stream, err := overload.NewStream(ctx, s.TCP, "load", i, 1, first)
			if err != nil {
				return nil, "", err
			}
			senders, bucket = append(senders, stream), "load"
			continue
		}
		for _, line := range s.Lines() {
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
		return nil, "", fmt.Errorf("the log does not name the port of %s", protocol)
	}
	return senders, bucket, nil
}
