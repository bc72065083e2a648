package gossip

import (
	"context"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"

	"dalmatiner/internal/cluster/ring"
)

// BenchmarkHundredNodes has a hundred nodes gossip in one process, at the pace of the product.
// It reports how long empty nodes take to become one ring, how long a commit takes to reach all,
// and what a node costs while nothing changes: processor time a second, and memory.
func BenchmarkHundredNodes(b *testing.B) {
	const count, quiet = 100, 20 * time.Second
	for b.Loop() {
		before := heap()
		nodes := make([]*Node, count)
		began := time.Now()
		for i := range nodes {
			o := testOptions(i + 1)
			o.Node.Partitions, o.Heartbeat, o.Timeout = 512, time.Second, 5*time.Second
			if i > 0 {
				o.Join = []string{nodes[0].Addr()}
			}
			n, err := Open(o)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = n.Close() })
			nodes[i] = n
		}
		all(b, nodes, func(n *Node) bool {
			return len(n.View().Members()) == count && len(n.now.Load().up) == count
		})
		b.ReportMetric(time.Since(began).Seconds(), "s-to-one-ring")

		used := processorTime(b)
		<-time.After(quiet)
		b.ReportMetric(float64((processorTime(b)-used).Milliseconds())/quiet.Seconds()/count, "ms/s/node")
		b.ReportMetric(float64(heap()-before)/count/1024, "kB/node")

		began = time.Now()
		plan, err := nodes[count/2].View().Plan([]ring.Change{{Action: ring.SetCopies, Copies: 2}},
			ring.Sizes{}, rand.New(rand.NewPCG(1, 2)))
		if err != nil {
			b.Fatal(err)
		}
		if err := nodes[count/2].Commit(context.Background(), func(v *ring.View) (*ring.View, error) {
			return v.Commit(plan)
		}); err != nil {
			b.Fatal(err)
		}
		all(b, nodes, func(n *Node) bool { return n.View().Version() == plan.Next.Version() })
		b.ReportMetric(time.Since(began).Seconds(), "s-to-commit")
	}
}

// all waits until a condition holds on each node.
func all(b *testing.B, nodes []*Node, is func(*Node) bool) {
	b.Helper()
	deadline := time.After(5 * time.Minute)
	for _, n := range nodes {
		await(b, n, n.o.Node.Name, deadline, func() bool { return is(n) })
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
