package pool

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"

	"dalmatiner/ducks/internal/duckstest"
)

func TestReserve(t *testing.T) {
	for _, c := range []struct {
		keep       Reserve
		total, are int64
	}{
		{Reserve{}, 1000, 0}, {Reserve{Percent: 5}, 1000, 50}, {Reserve{Bytes: 70}, 1000, 70},
		{Reserve{5, 70}, 1000, 70},
	} {
		if got := c.keep.of(c.total); got != c.are {
			t.Errorf("%+v of %d is %d", c.keep, c.total, got)
		}
	}
	s := Space{Total: 1000, Free: 60, Reserve: 50}
	for more, want := range map[int64]error{0: nil, 10: nil, 11: ErrFull, -20: nil} {
		if err := s.Spares(more); !errors.Is(err, want) {
			t.Errorf("%d more: %v", more, err)
		}
	}
	s.Free = 40
	for more, want := range map[int64]error{0: ErrFull, -9: ErrFull, -10: nil} {
		if err := s.Spares(more); !errors.Is(err, want) {
			t.Errorf("%d more, below: %v", more, err)
		}
	}
}

// endless is a stream of bytes that do not compress.
type endless struct{ part []byte }

func (e *endless) Read(p []byte) (int, error) {
	if len(e.part) == 0 {
		e.part = noise(mib, 1)
		for i := range e.part {
			e.part[i] ^= byte(i >> 8)
		}
	}
	n := copy(p, e.part)
	e.part = append(e.part[n:], e.part[:n]...)
	return n, nil
}

// TestNothingTakesTheReserve: it takes as long as all other tests of pools, and has a time of its
// own.
func TestNothingTakesTheReserve(t *testing.T) {
	if !duckstest.Alone(t, "mount", "mkfs.btrfs", "btrfs", "mkfs.xfs", "zfs") {
		return
	}
	for _, kind := range []string{"btrfs", "reflink", "zfs"} {
		t.Run(kind, func(t *testing.T) { testReserve(t, kind) })
	}
}

// testReserve: nothing takes what is kept, while it writes as before; what running devices write
// does.
func testReserve(t *testing.T, kind string) {
	ctx, dir := t.Context(), duckstest.Mounted(t, kind)
	p, err := Open(kind+":"+dir, Reserve{Percent: 70})
	must(t, err)
	keeps := func(what string) {
		t.Helper()
		must(t, p.Settle(ctx))
		s, err := p.Space(ctx)
		must(t, err)
		const slack = 8 * mib // what the file system itself has written since
		if s.Reserve < 200*mib || s.Free < s.Reserve-slack {
			t.Errorf("%s: %+v", what, s)
		}
	}
	must(t, p.Create(ctx, "running", 400*mib))
	must(t, p.Freeze(ctx, "running", Snapshot{"running", "1"}))

	must(t, p.Create(ctx, "import", 1000*mib))
	f, err := os.OpenFile(p.Path("import"), os.O_WRONLY, 0)
	must(t, err)
	n, err := io.Copy(NewMeter(ctx, p, 0).Writer(f), io.LimitReader(&endless{}, 1000*mib))
	if !errors.Is(err, ErrFull) || n < 20*mib {
		t.Errorf("%d MiB were written, %v", n>>20, err)
	}
	must(t, f.Close())
	keeps("an import")
	must(t, p.Delete(ctx, "import"))
	duckstest.Until(t, "the space is free again", func() bool {
		must(t, p.Settle(ctx))
		return Spare(ctx, p, 30*mib) == nil
	})

	from, err := Open(kind+":"+duckstest.Mounted(t, kind), Reserve{})
	must(t, err)
	must(t, from.Create(ctx, "a", 400*mib))
	f, err = os.OpenFile(from.Path("a"), os.O_WRONLY, 0)
	must(t, err)
	_, err = io.Copy(f, io.LimitReader(&endless{}, 200*mib))
	must(t, errors.Join(err, f.Sync(), f.Close(), from.Freeze(ctx, "a", Snapshot{"a", "1"})))
	stream, sender := io.Pipe()
	go func() {
		_ = sender.CloseWithError(from.Send(context.WithoutCancel(ctx), Snapshot{}, Snapshot{"a", "1"},
			sender))
	}()
	if err := p.Receive(ctx, Snapshot{"a", "1"}, stream); !errors.Is(err, ErrFull) {
		t.Errorf("all of a stream was taken: %v", err)
	}
	must(t, stream.Close())
	keeps("a stream")
	testBelowReserve(t, p)
}

// testBelowReserve: a running device writes on where everything else is refused.
func testBelowReserve(t *testing.T, p Pool) {
	ctx := t.Context()
	f, err := os.OpenFile(p.Path("running"), os.O_WRONLY, 0)
	must(t, err)
	_, err = io.Copy(f, io.LimitReader(&endless{}, 180*mib))
	must(t, errors.Join(err, f.Sync(), p.Settle(ctx)))
	for what, err := range map[string]error{
		"an image":   p.Create(ctx, "b", mib),
		"a snapshot": p.Freeze(ctx, "running", Snapshot{"running", "2"}),
		"a stream":   p.Receive(ctx, Snapshot{"b", "1"}, bytes.NewReader(noise(mib, 1))),
		"one byte":   NewMeter(ctx, p, 0).Take(1),
	} {
		if !errors.Is(err, ErrFull) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, NewMeter(ctx, p, 300*mib).Take(mib)) // what is given back counts
	must(t, p.Clone(ctx, Snapshot{"running", "1"}, "c"))
	must(t, errors.Join(f.Truncate(0), f.Close()))
}
