package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// ErrFull is the error of what would take the space that is kept for devices.
var ErrFull = errors.New("there is too little room in the pool")

// Reserve is the free space of a pool that is kept for what running devices write: nothing else
// takes it. Without it an import could fill the pool, and the writes of all devices would fail.
type Reserve struct {
	Percent float64 // of the pool
	Bytes   int64   // or so many, if that is more
}

// of returns what is kept of a pool of a size.
func (r Reserve) of(total int64) int64 {
	return max(r.Bytes, int64(r.Percent/100*float64(total)))
}

// headroom is what may be taken, at least 0.
func (s Space) headroom() int64 { return max(0, s.Free-s.Reserve) }

// Spares returns ErrFull unless the reserve stays free where so many bytes more are taken. They are
// less than 0 where as many are given back.
func (s Space) Spares(more int64) error {
	if s.Free-more >= s.Reserve {
		return nil
	}
	return fmt.Errorf("%w: %d of %d MiB are free, and %d are kept for what running devices write"+
		" (ducks serve --reserve): remove versions, groups or devices, or add disks",
		ErrFull, s.Free>>20, s.Total>>20, s.Reserve>>20)
}

// Spare asks a pool for its space, and returns what Spares of that does.
func Spare(ctx context.Context, p Pool, more int64) error {
	space, err := p.Space(ctx)
	if err != nil {
		return err
	}
	return space.Spares(more)
}

// reserved is a pool of which a part is kept. What makes something in it is refused below that.
type reserved struct {
	Pool
	reserve Reserve
}

func (p *reserved) Space(ctx context.Context) (Space, error) {
	s, err := p.Pool.Space(ctx)
	s.Reserve = p.reserve.of(s.Total)
	return s, err
}

func (p *reserved) Create(ctx context.Context, image string, size int64) error {
	if err := Spare(ctx, p, 0); err != nil {
		return err
	}
	return p.Pool.Create(ctx, image, size)
}

func (p *reserved) Freeze(ctx context.Context, image string, as Snapshot) error {
	if err := Spare(ctx, p, 0); err != nil {
		return err
	}
	return p.Pool.Freeze(ctx, image, as)
}

// Receive looks at the space while it reads: a stream writes no more than it has bytes.
func (p *reserved) Receive(ctx context.Context, as Snapshot, r io.Reader) error {
	m := NewMeter(ctx, p, 0)
	err := p.Pool.Receive(ctx, as, &meteredReader{m, r})
	return full(cmp.Or(m.Err(), err)) // a program that received it may have said something else
}

// Meter lets bytes into a pool as long as its reserve stays free. What it lets in at once is a part
// of what may be taken, so that it looks seldom where there is much room, and several of them, and
// devices beside them, do not together take the reserve between two looks.
type Meter struct {
	ctx   context.Context
	pool  Pool
	gives int64 // what is given back when all is written
	left  int64 // to be let in before the next look
	err   error
}

// What a meter lets in at once.
const (
	partOfRoom = 8
	leastPart  = 1 << 20
	mostPart   = 1 << 30
)

// NewMeter returns one that counts what is given back behind it as free.
func NewMeter(ctx context.Context, p Pool, gives int64) *Meter {
	return &Meter{ctx: ctx, pool: p, gives: gives}
}

// Take lets so many bytes in, or returns ErrFull.
func (m *Meter) Take(n int64) error {
	for m.err == nil && n > m.left {
		n -= m.left
		m.left, m.err = m.look()
	}
	if m.err == nil {
		m.left -= n
	}
	return m.err
}

// Err returns why it lets nothing more in, nil if it does: who writes through it may have said it
// in other words.
func (m *Meter) Err() error { return m.err }

// look returns how many bytes may be taken before the next look.
func (m *Meter) look() (int64, error) {
	if err := m.pool.Settle(m.ctx); err != nil {
		return 0, full(err)
	}
	s, err := m.pool.Space(m.ctx)
	if err != nil {
		return 0, err
	}
	s.Free += m.gives
	if err := s.Spares(leastPart); err != nil {
		return 0, err
	}
	return min(max(s.headroom()/partOfRoom, leastPart), mostPart), nil
}

// Writer returns a file of the pool to which only what is let in is written.
func (m *Meter) Writer(f *os.File) *MeteredFile { return &MeteredFile{m, f} }

// MeteredFile writes to a file of a pool.
type MeteredFile struct {
	meter *Meter
	file  *os.File
}

// Write implements io.Writer.
func (w *MeteredFile) Write(p []byte) (int, error) {
	if err := w.meter.Take(int64(len(p))); err != nil {
		return 0, err
	}
	n, err := w.file.Write(p)
	return n, full(err)
}

// WriteAt implements io.WriterAt.
func (w *MeteredFile) WriteAt(p []byte, at int64) (int, error) {
	if err := w.meter.Take(int64(len(p))); err != nil {
		return 0, err
	}
	n, err := w.file.WriteAt(p, at)
	return n, full(err)
}

// meteredReader reads what is written to a pool.
type meteredReader struct {
	meter *Meter
	from  io.Reader
}

func (r *meteredReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if e := r.meter.Take(int64(n)); e != nil {
		return 0, e
	}
	return n, err
}

// full says of an error of the system that it is ErrFull: devices were faster.
func full(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}
