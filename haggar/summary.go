package haggar

import (
	"math/bits"
	"sync/atomic"
	"syscall"
	"time"
)

// Summary is the outcome of a run. A flush's time runs from its start,
// connecting included, until the bytes were handed over; until the store had
// read them where the connection ends with the flush; and until the store
// acknowledged them on an acknowledged stream. The quantiles are of flushes
// that did not fail.
type Summary struct {
	Points       int64   `json:"points"`       // handed to the connections
	PointsPerSec float64 `json:"points_per_s"` // by Seconds
	Errors       int64   `json:"errors"`       // failed connections and flushes
	FlushP50     int64   `json:"flush_p50_us"`
	FlushP99     int64   `json:"flush_p99_us"`
	CPU          float64 `json:"cpu_s"`   // of this process, user and system
	Seconds      float64 `json:"seconds"` // until the store had read or acknowledged all
	Acked        int64   `json:"acked"`   // points the store acknowledged as stored
	Refused      int64   `json:"refused"` // points it acknowledged as not stored
	Flushes      int64   `json:"flushes"`
	Bytes        int64   `json:"bytes"` // of the flushes
	Agents       int64   `json:"agents_started"`
}

// counters are what agents add to while they run.
type counters struct {
	points, errors, acked, refused, flushes, bytes, agents atomic.Int64
	flushTime                                              latencies
}

func (c *counters) summary(elapsed, cpu time.Duration) Summary {
	s := Summary{
		Points: c.points.Load(), Errors: c.errors.Load(), Acked: c.acked.Load(),
		Refused: c.refused.Load(),
		Flushes: c.flushes.Load(), Bytes: c.bytes.Load(), Agents: c.agents.Load(),
		FlushP50: c.flushTime.quantile(0.50).Microseconds(),
		FlushP99: c.flushTime.quantile(0.99).Microseconds(),
		CPU:      cpu.Seconds(), Seconds: elapsed.Seconds(),
	}
	if elapsed > 0 {
		s.PointsPerSec = float64(s.Points) / elapsed.Seconds()
	}
	return s
}

// subBuckets divide each power of two of a latency: quantiles are exact to
// 1/16.
const subBuckets = 16

// latencies counts durations in buckets of microseconds. Below 16 µs a bucket
// is one microsecond wide, above it 1/16 of its power of two.
type latencies struct {
	counts [64 * subBuckets]atomic.Int64
}

func (l *latencies) add(d time.Duration) {
	us := uint64(max(0, d.Microseconds()))
	shift := max(0, bits.Len64(us)-5)
	l.counts[shift*subBuckets+int(us>>shift)].Add(1)
}

// quantile returns the upper bound of the bucket that holds the quantile q, or
// 0 when nothing was counted.
func (l *latencies) quantile(q float64) time.Duration {
	total := int64(0)
	for i := range l.counts {
		total += l.counts[i].Load()
	}
	rank := int64(q * float64(total))
	for i := range l.counts {
		n := l.counts[i].Load()
		if rank < n {
			shift := max(0, i/subBuckets-1)
			return time.Duration((i-shift*subBuckets+1)<<shift-1) * time.Microsecond
		}
		rank -= n
	}
	return 0
}

// cpuTime returns the processor time this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
