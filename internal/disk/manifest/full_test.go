package manifest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// tightDisk has so many free bytes. Of a write that does not fit it takes what does.
type tightDisk struct {
	vfs.FS
	free     *atomic.Int64
	reserves bool // can keep room for a file
}

func (d tightDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, c)
	return &tightFile{File: f, d: d}, err
}

func (d tightDisk) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (
	vfs.File, error) {
	f, err := d.FS.OpenReadWrite(name, c, opts...)
	return &tightFile{File: f, d: d}, err
}

// tightFile gives nothing back: what was written twice was paid for twice.
type tightFile struct {
	vfs.File
	d        tightDisk
	reserved int64
}

func (f *tightFile) Preallocate(_, n int64) error {
	switch {
	case !f.d.reserves:
		return syscall.EOPNOTSUPP
	case f.d.free.Load() < n:
		return syscall.ENOSPC
	}
	f.d.free.Add(-n)
	f.reserved += n
	return nil
}

// take pays for a write, and says how much of it fits.
func (f *tightFile) take(n int) (int, error) {
	own := min(int64(n), f.reserved)
	f.reserved -= own
	rest := int64(n) - own
	if free := f.d.free.Load(); free < rest {
		f.d.free.Store(0)
		return int(own + free), syscall.ENOSPC
	}
	f.d.free.Add(-rest)
	return n, nil
}

func (f *tightFile) Write(p []byte) (int, error) {
	n, full := f.take(len(p))
	if _, err := f.File.Write(p[:n]); err != nil {
		return 0, err
	}
	return n, full
}

func (f *tightFile) WriteAt(p []byte, at int64) (int, error) {
	n, full := f.take(len(p))
	if _, err := f.File.WriteAt(p[:n], at); err != nil {
		return 0, err
	}
	return n, full
}

// TestAFullDiskRefusesAnEdit: whatever is free when an edit is to be written, it counts
// or it does not, before a crash and behind it, and the next one is taken when there is
// room. Only where room cannot be kept may it be that one copy takes the edit alone: that
// ends the manifest.
func TestAFullDiskRefusesAnEdit(t *testing.T) {
	edit := Edit{NextSeq: 50, Accounts: Accounts{Account: slices.Repeat([]byte{1, 2}, 50),
		AccountLSN: 400}}
	size := int64(len(appendRecord(nil, 9, &edit)))
	data, _ := buildFile(3)
	for _, reserves := range []bool{true, false} {
		for free := range 2*size + 2 {
			mem, left := disk(t, data), new(atomic.Int64)
			left.Store(1 << 20)
			m, _, _ := mustOpen(t, tightDisk{mem, left, reserves}, rewriteSize)
			left.Store(free)
			err := m.Commit(edit)
			want := uint64(4)
			switch second := !reserves && size <= free && free < 2*size; {
			case second && err != nil && !errors.Is(err, ErrUnwritten):
				continue
			case free >= 2*size && err == nil:
				want = 50
			case second || free >= 2*size || !errors.Is(err, ErrUnwritten):
				t.Fatalf("reserving %t, %d bytes of %d: %v", reserves, free, 2*size, err)
			}
			for _, percent := range []int{0, 50, 100} {
				crashed := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent,
					RNG: rand.New(rand.NewPCG(uint64(free), 1))})
				_, s, r := mustOpen(t, crashed, rewriteSize)
				if s.NextSeq != want || len(r.Damaged)+len(r.Lost) > 0 || s.Suspect {
					t.Fatalf("reserving %t, %d bytes, crash with %d %%: next %d, want %d; %+v", reserves, free,
						percent, s.NextSeq, want, r)
				}
			}
			left.Store(1 << 20)
			commit(t, m, Edit{NextSeq: 60}, Edit{NextSeq: 61})
			if _, s, r := mustOpen(t, mem, rewriteSize); s.NextSeq != 61 ||
				len(r.Damaged)+len(r.Torn)+len(r.Lost) > 0 {
				t.Fatalf("reserving %t, %d bytes, and room again: %+v, %+v", reserves, free, s, r)
			}
		}
	}
}

// TestAFullDiskInARewrite: the copies are replaced when there is room.
func TestAFullDiskInARewrite(t *testing.T) {
	data, _ := buildFile(3)
	for free := int64(0); free < 3000; free += 7 {
		mem, left := disk(t, data), new(atomic.Int64)
		left.Store(1 << 20)
		m, _, _ := mustOpen(t, tightDisk{mem, left, true}, 100)
		left.Store(free)
		last := uint64(4)
		for i := range uint64(40) {
			err := m.Commit(Edit{NextSeq: 50 + i})
			if err == nil {
				last = 50 + i
			} else if !errors.Is(err, ErrUnwritten) {
				t.Fatalf("%d bytes: %v", free, err)
			}
		}
		crashed := mem.CrashClone(vfs.CrashCloneCfg{})
		if _, s, r := mustOpen(t, crashed, 100); s.NextSeq != last || len(r.Damaged)+len(r.Lost) > 0 {
			t.Fatalf("%d bytes: next %d, want %d; %+v", free, s.NextSeq, last, r)
		}
		left.Store(1 << 20)
		commit(t, m, Edit{NextSeq: 200})
	}
}
