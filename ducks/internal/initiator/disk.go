package initiator

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Disk is a logical unit. Its methods may be called concurrently.
type Disk struct {
	s     *Session
	lun   byte
	block int64 // bytes
	count int64 // of blocks
}

// The commands, and the status and sense that are looked at. Source: SCSI Block Commands 3 and
// Primary Commands 4.
const (
	scsiReady        = 0x00
	scsiRead16       = 0x88
	scsiWrite16      = 0x8a
	scsiSync16       = 0x91
	scsiServiceIn16  = 0x9e
	scsiReadCapacity = 0x10 // its service action

	statusGood      = 0
	statusCheck     = 2
	senseAttention  = 6 // something has happened meanwhile, as a reset
	attentionsAtOne = 8 // are passed over, in a row
)

// mostAtOnce is how much one command reads or writes.
const mostAtOnce = 256 << 10

// CheckError is a command that failed.
type CheckError struct{ Status, Key, Code, Qualifier byte }

// Error names the status and the sense, by number.
func (e *CheckError) Error() string {
	return fmt.Sprintf("the target says status 0x%02x, sense 0x%02x, 0x%02x, 0x%02x", e.Status, e.Key,
		e.Code, e.Qualifier)
}

// Disk returns a logical unit that is ready.
func (s *Session) Disk(ctx context.Context, lun byte) (*Disk, error) {
	d := &Disk{s: s, lun: lun}
	if _, err := d.command(ctx, []byte{scsiReady}, nil, nil); err != nil {
		return nil, err
	}
	answer := make([]byte, 32)
	cdb := make([]byte, 16)
	cdb[0], cdb[1], cdb[13] = scsiServiceIn16, scsiReadCapacity, byte(len(answer))
	if n, err := d.command(ctx, cdb, nil, answer); err != nil || n < 12 {
		return nil, errors.Join(err, checkShort(n, 12))
	}
	d.count, d.block = int64(binary.BigEndian.Uint64(answer))+1,
		int64(binary.BigEndian.Uint32(answer[8:]))
	if d.block < 512 || d.block > 1<<16 || d.count <= 0 || d.count > 1<<62/d.block {
		return nil, fmt.Errorf("%w: a disk of %d blocks of %d bytes", errProtocol, d.count, d.block)
	}
	return d, nil
}

func checkShort(got, want int) error {
	if got >= want {
		return nil
	}
	return fmt.Errorf("%w: %d bytes were read, not %d", errProtocol, got, want)
}

// Size returns the size in bytes; Block that of a block, of which offsets and lengths are
// multiples.
func (d *Disk) Size() int64  { return d.block * d.count }
func (d *Disk) Block() int64 { return d.block }

// ReadAt reads len(p) bytes.
func (d *Disk) ReadAt(ctx context.Context, p []byte, offset int64) error {
	return d.each(p, offset, func(part []byte, block int64) error {
		n, err := d.command(ctx, d.transfer(scsiRead16, block, part), nil, part)
		return errors.Join(err, checkShort(n, len(part)))
	})
}

// WriteAt writes p. Flush says when that outlives the target.
func (d *Disk) WriteAt(ctx context.Context, p []byte, offset int64) error {
	return d.each(p, offset, func(part []byte, block int64) error {
		_, err := d.command(ctx, d.transfer(scsiWrite16, block, part), part, nil)
		return err
	})
}

// each calls do for parts of what lies on whole blocks.
func (d *Disk) each(p []byte, offset int64, do func(part []byte, block int64) error) error {
	if err := d.check(offset, int64(len(p))); err != nil {
		return err
	}
	for len(p) > 0 {
		part := p[:min(len(p), mostAtOnce)]
		if err := do(part, offset/d.block); err != nil {
			return err
		}
		p, offset = p[len(part):], offset+int64(len(part))
	}
	return nil
}

func (d *Disk) check(offset, length int64) error {
	switch {
	case offset%d.block != 0 || length%d.block != 0:
		return fmt.Errorf("%d bytes at %d: the disk has blocks of %d", length, offset, d.block)
	case offset < 0 || length > d.Size()-offset:
		return fmt.Errorf("%d bytes at %d: the disk has %d: %w", length, offset, d.Size(),
			io.ErrUnexpectedEOF)
	}
	return nil
}

func (d *Disk) transfer(command byte, block int64, part []byte) []byte {
	cdb := make([]byte, 16)
	cdb[0] = command
	binary.BigEndian.PutUint64(cdb[2:], uint64(block))
	binary.BigEndian.PutUint32(cdb[10:], uint32(int64(len(part))/d.block))
	return cdb
}

// Flush waits until all that was written is on the disk of the target.
func (d *Disk) Flush(ctx context.Context) error {
	cdb := make([]byte, 16)
	cdb[0] = scsiSync16
	_, err := d.command(ctx, cdb, nil, nil)
	return err
}

// command runs a command, again where the target only wants to be heard first.
func (d *Disk) command(ctx context.Context, cdb, write, read []byte) (n int, err error) {
	for range attentionsAtOne {
		n, err = d.once(ctx, cdb, write, read)
		if check := (*CheckError)(nil); !errors.As(err, &check) || check.Status != statusCheck ||
			check.Key != senseAttention {
			break
		}
	}
	if err != nil {
		return n, fmt.Errorf("%s, disk %d: %w", d.s.o.Target, d.lun, err)
	}
	return n, nil
}

func (d *Disk) once(ctx context.Context, cdb, write, read []byte) (int, error) {
	p := new(pdu)
	p.header[0], p.header[1] = opCommand, final|1 // a simple task
	switch {
	case read != nil:
		p.header[1] |= 0x40
	case write != nil:
		p.header[1] |= 0x20
		if d.s.immediate {
			p.data = bytes.Clone(write[:min(len(write), d.s.firstBurst, d.s.limits.send)])
		}
	}
	p.putLUN(d.lun)
	p.put32(20, uint32(len(read)+len(write)))
	copy(p.header[32:], cdb)
	r, err := d.s.do(ctx, p, &task{lun: d.lun, write: write, read: read})
	if err != nil {
		return 0, err
	}
	if r.status != statusGood {
		e := &CheckError{Status: r.status}
		if len(r.sense) >= 14 {
			e.Key, e.Code, e.Qualifier = r.sense[2]&15, r.sense[12], r.sense[13]
		}
		return 0, e
	}
	return r.got, nil
}
