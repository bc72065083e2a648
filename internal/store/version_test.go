package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/reader"
)

// stepped is a store whose looks can be stopped between two of their steps.
type stepped struct {
	t     *testing.T
	fs    *vfs.MemFS
	clock *testClock
	s     *Store
	info  buckets.Info
	at    atomic.Pointer[func(step reader.Step)]
}

func newStepped(t *testing.T) *stepped {
	p := &stepped{t: t, fs: vfs.NewMem(), clock: newTestClock()}
	o := testOptions(p.fs, p.clock)
	byHand(&o)
	p.s = mustOpen(t, o)
	p.s.reader.OnStep = func(step reader.Step) {
		if f := p.at.Load(); f != nil {
			(*f)(step)
		}
	}
	t.Cleanup(func() { p.s.Crash() })
	return p
}

// once runs f in the next look that reaches a step, within it.
func (p *stepped) once(step reader.Step, f func()) {
	var g func(reader.Step)
	g = func(at reader.Step) {
		if at == step && p.at.CompareAndSwap(&g, nil) {
			f()
		}
	}
	p.at.Store(&g)
}

// send writes value for a stretch of slots of series 0.
func (p *stepped) send(from, n, value int64) {
	p.t.Helper()
	p.clock.Set(max(p.clock.Now().UnixNano(), (from+n)*int64(time.Second)))
	p.s.clock.Advance()
	x := mustSession(p.t, p.s, "b")
	for slot := from; slot < from+n; slot++ {
		x.Point(key(0), uint64(slot), point.FromInt(value))
	}
	if err := x.Close(); err != nil {
		p.t.Fatal(err)
	}
	p.info, _ = p.s.BucketByName("b")
}

func (p *stepped) must(_ any, err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *stepped) flush() { p.must(p.s.Flush(context.Background())) }
func (p *stepped) merge() { p.must(p.s.Merge(context.Background())) }

// looks are the kinds of reads. Each gives the values of the slots [from, from+n) of
// series 0, -1 for unset. Of each minute an aggregate gives as many as there are, of
// the least and the greatest in turns.
var looks = map[string]func(p *stepped, from, n int64) []int64{
	"read": func(p *stepped, from, n int64) (out []int64) {
		words := make([]uint64, n)
		if err := p.s.Read(context.Background(), p.info, key(0), from, words); err != nil {
			p.t.Error(err)
		}
		for _, w := range words {
			v := int64(-1)
			if w != point.Unset {
				v = point.Int(w)
			}
			out = append(out, v)
		}
		return out
	},
	"aggregate": func(p *stepped, from, n int64) []int64 {
		steps := make([]chunk.Header, n/60)
		if _, err := p.s.Series(p.info, key(0)).Aggregate(context.Background(), from, 60,
			steps); err != nil {
			p.t.Error(err)
		}
		return ofSteps(steps)
	},
	"aggregate together": func(p *stepped, from, n int64) (out []int64) {
		list := []Series{p.s.Series(p.info, key(7)), p.s.Series(p.info, key(0)),
			p.s.Series(p.info, key(8))}
		steps := make([]chunk.Header, n/60)
		err := p.s.AggregateEach(context.Background(), list, from, 60, steps,
			func(i int, _ reader.Stats, err error) error {
				if i == 1 {
					out = ofSteps(steps)
				}
				return err
			})
		if err != nil {
			p.t.Error(err)
		}
		return out
	},
}

// ofSteps returns the slots of steps of 60, of which each has two values at most.
func ofSteps(steps []chunk.Header) (out []int64) {
	for i := range steps {
		h := &steps[i]
		for j := range 60 {
			switch {
			case j >= h.Count:
				out = append(out, -1)
			case j%2 == 0:
				out = append(out, point.Int(h.Min))
			default:
				out = append(out, point.Int(h.Max))
			}
		}
	}
	return out
}

// Whatever comes between the copy of the head and the version: a slot has its value
// from before or the one from behind it, and is never missing.
func TestFlushesAndMergesInALook(t *testing.T) {
	t.Parallel()
	const n = 4 * chunk.Slots
	for name, look := range looks {
		for _, step := range []reader.Step{reader.Copied, reader.Pinned} {
			t.Run(name+" "+string(step), func(t *testing.T) {
				p := newStepped(t)
				p.send(epoch, n, 1)
				p.flush()
				p.send(epoch+n, 600, 2)
				p.once(step, func() {
					p.flush()
					p.send(epoch+n-chunk.Slots, 1200, 3) // late, and rewrites
					p.flush()
					p.merge()
					p.clock.Advance(48 * time.Hour)
					p.s.clock.Advance()
					p.send(p.clock.Now().Unix(), 60, 4)
					p.flush()
					p.merge() // closes the windows
				})
				for i, v := range look(p, epoch, n+600) {
					was, is := int64(1), int64(1)
					if i >= n {
						was, is = 2, 2
					}
					if i >= n-chunk.Slots && i < n-chunk.Slots+1200 {
						is = 3
					}
					if v != was && v != is {
						t.Fatalf("slot %d is %d, was %d and is %d", i, v, was, is)
					}
				}
				for i, v := range look(p, epoch, n+600) {
					if i >= n-chunk.Slots && i < n-chunk.Slots+1200 && v != 3 {
						t.Fatalf("slot %d is %d in the end", i, v)
					}
				}
			})
		}
	}
}

// A series that is deleted and sent again inside a look is the one from before, whole,
// or the one from behind; never a part of each.
func TestADeletionInALook(t *testing.T) {
	t.Parallel()
	const n = 2 * chunk.Slots
	for name, look := range looks {
		for _, step := range []reader.Step{reader.Copied, reader.Pinned} {
			for _, again := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s again=%v", name, step, again), func(t *testing.T) {
					p := newStepped(t)
					p.send(epoch, n, 1)
					p.flush()
					p.send(epoch+n, 600, 1)
					p.once(step, func() {
						p.must(p.s.DeleteSeries(context.Background(), "b", deletion.Choice{Key: key(0)}, false))
						if again {
							p.send(epoch+n+300, 300, 7) // in the same column
							p.flush()
						}
						p.merge()
					})
					values := look(p, epoch, n+600)
					if values[0] == 1 {
						for i, v := range values {
							if v != 1 {
								t.Fatalf("slot %d is %d, slot 0 is that of the deleted series", i, v)
							}
						}
						return
					}
					for i, v := range values {
						if want := map[bool]int64{false: -1, true: 7}[again && i >= n+300]; v != want {
							t.Fatalf("slot %d is %d, want %d behind the deletion", i, v, want)
						}
					}
				})
			}
		}
	}
}

// A look that never ends keeps its files, and nobody else waits for it: flushes, merges,
// deletions and other reads go on.
func TestABlockedReadHoldsNobodyBack(t *testing.T) {
	t.Parallel()
	p := newStepped(t)
	const n = 3 * chunk.Slots
	p.send(epoch, n, 1)
	p.flush()
	held, release, done := make(chan struct{}), make(chan struct{}), make(chan []int64, 1)
	end := sync.OnceFunc(func() { close(release) })
	defer end()
	p.once(reader.Pinned, func() { close(held); <-release })
	go func() { done <- looks["read"](p, epoch, n) }()
	<-held
	first := p.s.versions.Latest().Segments[0]
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for round := range int64(3) {
		p.clock.Advance(48 * time.Hour)
		p.s.clock.Advance()
		p.send(p.clock.Now().Unix(), 60, 2+round)
		p.must(p.s.Flush(ctx))
		p.must(p.s.Merge(ctx))
		if v := looks["aggregate"](p, epoch, n); v[0] != 1 || v[n-1] != 1 {
			t.Fatalf("another read gave %d and %d", v[0], v[n-1])
		}
	}
	if _, err := p.fs.Stat(p.s.path(first.Name())); err != nil {
		t.Errorf("the file of a segment that is being read: %v", err)
	}
	if got := p.s.Stats().Segments.PinnedBytes; got < first.Info.Size {
		t.Errorf("%d bytes are pinned, the segment has %d", got, first.Info.Size)
	}
	if clean := p.s.dir.PurgedThrough(); clean > first.PurgedThrough() {
		t.Errorf("tombstones up to %d could go, the file is clean up to %d", clean, first.PurgedThrough())
	}
	end()
	for i, v := range <-done {
		if v != 1 {
			t.Fatalf("slot %d is %d", i, v)
		}
	}
	if _, err := p.fs.Stat(p.s.path(first.Name())); !oserror.IsNotExist(err) {
		t.Errorf("the file stays when the last reader has gone: %v", err)
	}
	if got := p.s.Stats().Segments.PinnedBytes; got != 0 {
		t.Errorf("%d bytes are pinned by nobody", got)
	}
}

// Closing waits for those who read, and nobody begins behind it.
func TestCloseWaitsForReaders(t *testing.T) {
	t.Parallel()
	p := newStepped(t)
	p.send(epoch, 600, 1)
	p.flush()
	var left atomic.Bool
	held, release, closed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	p.once(reader.Copied, func() { close(held); <-release; left.Store(true) })
	go func() {
		if v := looks["read"](p, epoch, 600); v[0] != 1 || v[599] != 1 {
			t.Errorf("the read gave %d and %d", v[0], v[599])
		}
	}()
	<-held
	go func() {
		defer close(closed)
		p.s.versions.Close()
		if !left.Load() {
			t.Error("closed while somebody read")
		}
	}()
	words := make([]uint64, 1)
	drivetest.Eventually(t, "reads are refused", func() bool {
		return errors.Is(p.s.Read(context.Background(), p.info, key(0), epoch, words), ErrClosed)
	})
	close(release)
	<-closed
}
