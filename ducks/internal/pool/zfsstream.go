package pool

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// zfsKind begins a stream. The rest of it is as in a stream of reflink: zfs send only knows
// differences between a snapshot and its own descendants, and the versions of a group need not be
// descendants.
const zfsKind = "ducks-z1"

// compared is how much of two disks is compared at once. It is the record of a dataset: what is
// written is that long.
const compared = 128 << 10

// changes calls do with the spans of a file that are not those of another one, nil for zeros.
func changes(ctx context.Context, from, to *os.File, size int64, do func(s span) error) error {
	was, is, zeros := make([]byte, compared), make([]byte, compared), make([]byte, compared)
	for at := int64(0); at < size; at += compared {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(compared, size-at)
		if _, err := to.ReadAt(is[:n], at); err != nil {
			return err
		}
		if from == nil {
			copy(was[:n], zeros)
		} else if _, err := from.ReadAt(was[:n], at); err != nil {
			return err
		}
		if bytes.Equal(was[:n], is[:n]) {
			continue
		}
		if err := do(span{at, n, bytes.Equal(is[:n], zeros[:n])}); err != nil {
			return err
		}
	}
	return nil
}

// pair opens the disks of two snapshots, and returns the header of a stream.
func (p *zfs) pair(from, to Snapshot) (a, b *os.File, header []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, err := p.there(snapshotKey(to), to.Image, to.Name)
	if err != nil {
		return nil, nil, nil, err
	}
	f := dataset{id: hex.EncodeToString(make([]byte, 16))}
	if from != (Snapshot{}) {
		if f, err = p.there(snapshotKey(from), from.Image, from.Name); err != nil {
			return nil, nil, nil, err
		}
		if a, err = os.Open(p.disk(f.number)); err != nil {
			return nil, nil, nil, err
		}
	}
	b, err = os.Open(p.disk(t.number))
	if err == nil {
		header, err = zfsHeader(a, b, f.id, t.id)
	}
	if err != nil {
		err = errors.Join(err, closed(a, b))
	}
	return a, b, header, err
}

// zfsHeader returns what a stream between two snapshots begins with.
func zfsHeader(a, b *os.File, from, to string) ([]byte, error) {
	info, err := b.Stat()
	if err != nil {
		return nil, err
	}
	if a != nil {
		if was, err := a.Stat(); err != nil || was.Size() != info.Size() {
			return nil, errors.Join(err, errors.New("disks of different sizes"))
		}
	}
	ids, err := hex.DecodeString(from + to)
	if err != nil || len(ids) != 32 {
		return nil, fmt.Errorf("the ids of snapshots are %q and %q", from, to)
	}
	return append(binary.BigEndian.AppendUint64(nil, uint64(info.Size())), ids...), nil
}

// closed closes files that were read, of which some may be nil.
func closed(files ...*os.File) (err error) {
	for _, f := range files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// Delta is what ZFS has written since, where the one began with the other; else both are compared.
func (p *zfs) Delta(ctx context.Context, from, to Snapshot) (n int64, err error) {
	if n, is, err := p.written(ctx, from, to); is || err != nil {
		return n, err
	}
	a, b, header, err := p.pair(from, to)
	if err != nil {
		return 0, err
	}
	err = changes(ctx, a, b, int64(binary.BigEndian.Uint64(header)), func(s span) error {
		if !s.zero {
			n += s.length
		}
		return nil
	})
	return n, errors.Join(err, closed(a, b))
}

// written returns what ZFS has written between two snapshots, if it knows.
func (p *zfs) written(ctx context.Context, from, to Snapshot) (n int64, knows bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, err := p.there(snapshotKey(to), to.Image, to.Name)
	if err != nil {
		return 0, false, err
	}
	property := "referenced"
	if from != (Snapshot{}) {
		f, err := p.there(snapshotKey(from), from.Image, from.Name)
		if err != nil {
			return 0, false, err
		}
		origins, err := p.origins(ctx)
		if err != nil || origins[p.name(t.number)] != p.frozen(f.number) {
			return 0, false, err
		}
		property = "used"
	}
	list, err := p.numbers(ctx, p.name(t.number), property)
	if err != nil {
		return 0, false, err
	}
	return list[0], true, nil
}

func (p *zfs) Send(ctx context.Context, from, to Snapshot, w io.Writer) error {
	a, b, header, err := p.pair(from, to)
	if err != nil {
		return err
	}
	defer func() { _ = closed(a, b) }() // they were read
	return sendSpans(ctx, w, zfsKind, header, b, func(do func(s span) error) error {
		return changes(ctx, a, b, int64(binary.BigEndian.Uint64(header)), do)
	})
}

func (p *zfs) Receive(ctx context.Context, as Snapshot, r io.Reader) error {
	in, err := newUnframed(contextReader{ctx, r}, zfsKind)
	if err != nil {
		return err
	}
	size, from, id, err := readHeader(in)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.fresh(snapshotKey(as), as.Image, as.Name); err != nil {
		return err
	}
	return p.make(ctx, snapshotKey(as), hex.EncodeToString(id[:]), func(number int) error {
		if err := p.begin(ctx, number, size, from); err != nil {
			return err
		}
		p.mu.Unlock() // a stream may take hours
		err := fill(p.disk(number), size, in)
		p.mu.Lock()
		if err != nil {
			return err
		}
		return errors.Join(p.run(ctx, "set", "readonly=on", p.name(number)),
			p.run(ctx, "snapshot", p.frozen(number)))
	})
}

// fill writes the spans of a stream to a file.
func fill(path string, size int64, in io.Reader) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(apply(f, size, in), f.Sync(), f.Close())
}

// begin makes the dataset to which the spans of a stream are written.
func (p *zfs) begin(ctx context.Context, number int, size int64, from [16]byte) error {
	if from == ([16]byte{}) {
		return p.create(ctx, number, size)
	}
	for key, d := range p.is {
		if d.id != hex.EncodeToString(from[:]) {
			continue
		}
		if info, err := os.Stat(p.disk(d.number)); err != nil || info.Size() != size {
			return fmt.Errorf("%s has another size than the stream: %w", key, errors.Join(err, ErrStream))
		}
		return p.clone(ctx, d, number)
	}
	return fmt.Errorf("the snapshot that the stream begins with, %x: %w", from, ErrUnknown)
}
