package pool

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// extent is a run of bytes of a file that lies in one piece on the disk below. Source: Linux,
// Documentation/filesystems/fiemap.rst.
type extent struct {
	offset, physical, length int64
	shared                   bool // with another file
	unwritten                bool // allocated, and reads as zeros
}

const (
	fiemapRequest   = 0xC020660B // FS_IOC_FIEMAP
	fiemapSync      = 1          // what waits to be written gets its place first
	fiemapLast      = 0x1
	fiemapUnwritten = 0x800
	fiemapShared    = 0x2000
	extentsAtATime  = 512
)

type fiemap struct {
	start, length                  uint64
	flags, mapped, count, reserved uint32
	extents                        [extentsAtATime]fiemapExtent
}

type fiemapExtent struct {
	logical, physical, length uint64
	_                         [2]uint64
	flags                     uint32
	_                         [3]uint32
}

// extentsOf returns the extents of a file below its size, ascending. Holes have none.
func extentsOf(f *os.File) (list []extent, size int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	size = info.Size()
	m := new(fiemap)
	for at := int64(0); at < size; {
		*m = fiemap{
			start:  uint64(at),
			length: uint64(size - at),
			flags:  fiemapSync,
			count:  extentsAtATime,
		}
		if _, _, code := unix.Syscall(unix.SYS_IOCTL, f.Fd(), fiemapRequest,
			uintptr(unsafe.Pointer(m))); code != 0 {
			return nil, 0, fmt.Errorf("the extents of %s: %w", f.Name(), code)
		}
		if m.mapped == 0 {
			break
		}
		for _, e := range m.extents[:m.mapped] {
			x := extent{int64(e.logical), int64(e.physical), int64(e.length), e.flags&fiemapShared != 0,
				e.flags&fiemapUnwritten != 0}
			if x.length = min(x.length, size-x.offset); x.length > 0 {
				list = append(list, x)
			}
			at = int64(e.logical + e.length)
			if e.flags&fiemapLast != 0 {
				at = size
			}
		}
	}
	return list, size, nil
}

// usageOf returns what the file of an image takes.
func usageOf(path string) (u Usage, err error) {
	f, err := os.Open(path)
	if err != nil {
		return u, err
	}
	defer f.Close()
	list, size, err := extentsOf(f)
	u.Size = size
	for _, e := range list {
		u.Mapped += e.length
		if !e.shared {
			u.Own += e.length
		}
	}
	return u, err
}

// span is a run of bytes in which two files may differ.
type span struct {
	offset, length int64
	zero           bool // they are zeros in the second file
}

// differences returns where a file with the extents b may differ from one with the extents a, which
// is no shorter. What lies at the same place on the disk is the same: both files stay as they are.
func differences(a, b []extent, size int64) (list []span) {
	add := func(from, to int64, zero bool) {
		if n := len(list); n > 0 && list[n-1].offset+list[n-1].length == from && list[n-1].zero == zero {
			list[n-1].length += to - from
			return
		}
		list = append(list, span{from, to - from, zero})
	}
	i, j := 0, 0
	for at := int64(0); at < size; {
		for i < len(a) && a[i].offset+a[i].length <= at {
			i++
		}
		for j < len(b) && b[j].offset+b[j].length <= at {
			j++
		}
		inA, endA := covers(a, i, at, size)
		inB, endB := covers(b, j, at, size)
		end := min(endA, endB)
		switch {
		case inA && inB && a[i].physical+at-a[i].offset == b[j].physical+at-b[j].offset:
		case inB:
			add(at, end, false)
		case inA:
			add(at, end, true)
		}
		at = end
	}
	return list
}

// covers reports whether extent i has data at a place that is not behind it, and how far that is
// so.
func covers(list []extent, i int, at, size int64) (is bool, until int64) {
	switch {
	case i == len(list):
		return false, size
	case list[i].offset > at:
		return false, min(list[i].offset, size)
	}
	return !list[i].unwritten, min(list[i].offset+list[i].length, size)
}
