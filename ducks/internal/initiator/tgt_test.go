package initiator

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"dalmatiner/ducks/internal/duckstest"
	"dalmatiner/ducks/internal/target"
)

const (
	portal   = "127.0.0.1:3260"
	diskSize = 32 << 20
)

// unmap gives blocks back.
func unmap(ctx context.Context, d *Disk, offset, length int64) error {
	list := make([]byte, 24)
	binary.BigEndian.PutUint16(list, uint16(len(list)-2))
	binary.BigEndian.PutUint16(list[2:], uint16(len(list)-8))
	binary.BigEndian.PutUint64(list[8:], uint64(offset/d.block))
	binary.BigEndian.PutUint32(list[16:], uint32(length/d.block))
	cdb := make([]byte, 10)
	cdb[0], cdb[8] = 0x42, byte(len(list)) // UNMAP
	_, err := d.command(ctx, cdb, list, nil)
	return err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestOnTgt uses a disk of tgtd: what was written is read, here and in its file, by many at a time;
// with a wrong secret or name nobody is let in.
func TestOnTgt(t *testing.T) {
	if !duckstest.Alone(t, "tgtd", "tgtadm") {
		return
	}
	dir, err := os.MkdirTemp("", "tgt") // the path of a socket is short
	must(t, err)
	defer os.RemoveAll(dir)
	targets, err := target.Start(t.Context(),
		target.Options{Dir: dir, Portal: netip.MustParseAddrPort(portal),
			Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	defer func() { must(t, targets.End()) }()
	path := filepath.Join(dir, "disk")
	must(t, os.WriteFile(path, nil, 0o600))
	must(t, os.Truncate(path, diskSize))
	o := Options{Address: portal, Target: "iqn.2026-11.test:a", Initiator: "iqn.2026-11.test:pc",
		User: "pc", Secret: "secretsecret"}
	must(t, targets.Put(t.Context(),
		target.Target{IQN: o.Target, Disks: []target.Disk{{Path: path, Serial: "s1"}},
			Initiators: []string{o.Initiator}, User: o.User, Secret: o.Secret}))

	testRefusals(t, o)
	s, err := Login(t.Context(), o)
	must(t, err)
	disk, err := s.Disk(t.Context(), 1)
	must(t, err)
	if disk.Size() != diskSize || disk.Block() != 512 {
		t.Errorf("%d bytes in blocks of %d", disk.Size(), disk.Block())
	}
	model := testManyAtOnce(t, disk)
	must(t, disk.Flush(t.Context()))
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, model) {
		t.Errorf("the file has something else, %v", err)
	}
	must(t, unmap(t.Context(), disk, 1<<20, 1<<20))
	clear(model[1<<20 : 2<<20])
	got := make([]byte, 3<<20)
	must(t, disk.ReadAt(t.Context(), got, 0))
	if !bytes.Equal(got, model[:len(got)]) {
		t.Error("what was given back is not zero, or its neighbours are")
	}
	for _, bad := range [][2]int64{{1, 512}, {0, 100}, {-512, 512}, {diskSize, 512},
		{diskSize - 512, 1024}} {
		if disk.ReadAt(t.Context(), make([]byte, bad[1]), bad[0]) == nil {
			t.Errorf("%d bytes at %d can be read", bad[1], bad[0])
		}
	}
	if _, err := s.Disk(t.Context(), 7); !errors.As(err, new(*CheckError)) {
		t.Errorf("a disk that is not there: %v", err)
	}
	must(t, s.Logout(t.Context()))
	if disk.Flush(t.Context()) == nil {
		t.Error("a command is answered after the logout")
	}
	testCrash(t, o, targets)
}

func testRefusals(t *testing.T, o Options) {
	t.Helper()
	for what, c := range map[string]struct {
		change func(*Options)
		status uint16
	}{
		"secret":    {func(o *Options) { o.Secret = "othersecret1" }, 0x0201},
		"initiator": {func(o *Options) { o.Initiator = "iqn.2026-11.test:other" }, 0x0203},
		"target":    {func(o *Options) { o.Target = "iqn.2026-11.test:b" }, 0x0203},
	} {
		other := o
		c.change(&other)
		var refused *RefusedError
		if _, err := Login(t.Context(), other); !errors.As(err, &refused) || refused.Status != c.status {
			t.Errorf("another %s: %v", what, err)
		}
	}
	other := o
	other.User, other.Secret = "", ""
	if _, err := Login(t.Context(), other); err == nil {
		t.Error("without a user")
	}
}

// testManyAtOnce writes and reads from many goroutines, each in a part of its own, and returns what
// the disk has.
func testManyAtOnce(t *testing.T, disk *Disk) []byte {
	t.Helper()
	const users = 40 // more than tgtd takes at a time
	model := make([]byte, diskSize)
	var all sync.WaitGroup
	for u := range users {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(u), 1))
			part := int64(diskSize) / users / 512 * 512
			from := int64(u) * part
			for range 8 {
				length := (1 + rng.Int64N(part/512/2)) * 512
				at := from + rng.Int64N((part-length)/512+1)*512
				for i := range model[at : at+length] {
					model[at+int64(i)] = byte(rng.Uint32())
				}
				err := disk.WriteAt(t.Context(), model[at:at+length], at)
				got := make([]byte, length)
				if err == nil {
					err = disk.ReadAt(t.Context(), got, at)
				}
				if err != nil || !bytes.Equal(got, model[at:at+length]) {
					t.Errorf("%d bytes at %d: another content, %v", length, at, err)
					return
				}
			}
		})
	}
	all.Wait()
	return model
}

// testCrash: a device that crashes logs in again, while its old session may still be there.
func testCrash(t *testing.T, o Options, targets *target.Targets) {
	t.Helper()
	for range 3 {
		s, err := Login(t.Context(), o)
		must(t, err)
		disk, err := s.Disk(t.Context(), 1)
		must(t, err)
		must(t, disk.WriteAt(t.Context(), make([]byte, 4096), 0))
		s.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Login(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("a login that nobody wants any more: %v", err)
	}
	duckstest.Until(t, "no session is left", func() bool {
		list, err := targets.Sessions(t.Context(), o.Target)
		return err == nil && len(list) == 0
	})
}
