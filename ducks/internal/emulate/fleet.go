package emulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Fleet is machines that boot at once.
type Fleet struct {
	Bridge string
	MACs   []net.HardwareAddr
	UEFI   bool
	Bytes  int64  // that each writes and reads back, in pieces at random places
	Mark   string // that each writes into the first block, if there is any
	Crash  bool   // each loses its cable at the end, else it is shut down
}

// Outcome is what became of a machine.
type Outcome struct {
	MAC     string
	Address string
	Times   Times
	// that it has found in the first block: printable characters up to the first that is none
	Mark  string
	Wrote time.Duration // what it took to write and read back
	Err   error
}

// MACs returns addresses that follow each other.
func MACs(first net.HardwareAddr, count int) []net.HardwareAddr {
	list := make([]net.HardwareAddr, count)
	for i := range list {
		mac := bytes.Clone(first)
		for at, carry := len(mac)-1, i; carry > 0 && at >= 0; at-- {
			carry += int(mac[at])
			mac[at] = byte(carry)
			carry >>= 8
		}
		list[i] = mac
	}
	return list
}

// Run plugs all machines in, boots them, lets them work, and takes them away.
func (f *Fleet) Run(ctx context.Context) []Outcome {
	list := make([]Outcome, len(f.MACs))
	var all sync.WaitGroup
	for i, mac := range f.MACs {
		all.Go(func() {
			list[i].MAC = mac.String()
			list[i].Err = f.one(ctx, mac, &list[i])
		})
	}
	all.Wait()
	return list
}

func (f *Fleet) one(ctx context.Context, mac net.HardwareAddr, o *Outcome) (err error) {
	m, err := Plug(f.Bridge, mac)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Unplug()) }()
	r, err := m.Boot(ctx, f.UEFI)
	if err != nil {
		return err
	}
	o.Address, o.Times = r.Address.Addr().String(), r.Times
	if err := r.SayUp(ctx); err != nil {
		r.Session.Close()
		return err
	}
	if o.Mark, err = r.mark(ctx, f.Mark); err != nil {
		r.Session.Close()
		return err
	}
	began := time.Now()
	err = r.Work(ctx, f.Bytes, uint64(time.Now().UnixNano()))
	o.Wrote = time.Since(began)
	if f.Crash {
		return errors.Join(err, m.Cut())
	}
	return errors.Join(err, r.Off(ctx))
}

// mark returns the text in the first block, and puts another one there, unless that is empty.
func (r *Running) mark(ctx context.Context, text string) (found string, err error) {
	block := make([]byte, r.Disk.Block())
	if err := r.Disk.ReadAt(ctx, block, 0); err != nil {
		return "", err
	}
	end := bytes.IndexFunc(block, func(c rune) bool { return c < ' ' || c > '~' })
	found = string(block[:max(end, 0)])
	if text == "" {
		return found, nil
	}
	clear(block[copy(block, text):])
	return found, errors.Join(r.Disk.WriteAt(ctx, block, 0), r.Disk.Flush(ctx))
}

// piece is what is written at once.
const piece = 64 << 10

// Work writes so many bytes, in pieces at places that follow from a seed, and reads all of them
// back.
func (r *Running) Work(ctx context.Context, length int64, seed uint64) error {
	places := r.Disk.Size()/piece - 1 // the first one has the mark
	if length > 0 && places < 1 {
		return fmt.Errorf("a disk of %d bytes is too small: pieces are of %d", r.Disk.Size(), piece)
	}
	random := rand.New(rand.NewPCG(seed, seed))
	wrote := make(map[int64]byte) // by place, what fills it
	for range length / piece {
		at, fill := 1+random.Int64N(places), byte(random.IntN(255)+1)
		if err := r.Disk.WriteAt(ctx, bytes.Repeat([]byte{fill}, piece), at*piece); err != nil {
			return err
		}
		wrote[at] = fill
	}
	if len(wrote) == 0 {
		return nil
	}
	if err := r.Disk.Flush(ctx); err != nil {
		return err
	}
	got := make([]byte, piece)
	for at, fill := range wrote {
		if err := r.Disk.ReadAt(ctx, got, at*piece); err != nil {
			return err
		}
		if !bytes.Equal(got, bytes.Repeat([]byte{fill}, piece)) {
			return fmt.Errorf("the %d bytes at %d are not those that were written", piece, at*piece)
		}
	}
	return nil
}
