package store

import (
	"math/rand/v2"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// lived is a store that a test leads through time, restarts and crashes, with
// what it was sent into bucket b.
type lived struct {
	t     fataler
	r     *rand.Rand
	clock *testClock
	fs    *vfs.MemFS
	o     Options
	s     *Store
	h     history
	acked int // writes of h that are durable
}

// newLived opens a store on options that change prepares.
func newLived(t fataler, r *rand.Rand, change func(o *Options)) *lived {
	l := &lived{t: t, r: r, clock: newTestClock(), fs: vfs.NewCrashableMem()}
	l.o = testOptions(l.fs, l.clock)
	change(&l.o)
	l.s = mustOpen(t, l.o)
	return l
}

// step takes a step that every such test knows; it is false for others.
func (l *lived) step(name string) bool {
	switch name {
	case "tick":
		l.clock.Advance(time.Duration(1+l.r.IntN(100)) * time.Second)
		l.s.clock.Advance()
		l.s.upkeep.EverySecond()
	case "flush":
		mustFlush(l.t, l.s)
		l.acked = len(l.h.writes)
	case "crash":
		clone := l.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: l.r.IntN(101), RNG: l.r})
		l.s.Crash()
		l.fs, l.o.FS = clone, clone
		l.s = mustOpen(l.t, l.o)
		l.check()
		l.h = l.h.cut(l.t, l.s)
		l.acked = len(l.h.writes)
	case "reopen":
		if err := l.s.Close(); err != nil {
			l.t.Fatalf("close: %v", err)
		}
		l.s = mustOpen(l.t, l.o)
		l.acked = len(l.h.writes)
	default:
		return false
	}
	return true
}

// check compares what is there with what was sent.
func (l *lived) check() {
	l.t.Helper()
	l.h.check(l.t, l.s, "b", l.acked)
}
