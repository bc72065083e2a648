//go:build unix

package kernel

import (
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fence is memory followed by a page that may not be touched.
var fence = sync.OnceValue(func() *[2][]byte {
	var out [2][]byte
	for i := range out {
		page := os.Getpagesize()
		mem, err := unix.Mmap(-1, 0, 4*page, unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			panic(err)
		}
		if err := unix.Mprotect(mem[3*page:], unix.PROT_NONE); err != nil {
			panic(err)
		}
		out[i] = mem[:3*page]
	}
	return &out
})

// atPageEnd returns n bytes; reading behind them is a fault. The next call
// returns the same memory.
func atPageEnd(n int) []byte {
	mem := fence()[0]
	return mem[len(mem)-n:]
}

// wordsAtPageEnd is atPageEnd for words, from one of two memories in turn.
func wordsAtPageEnd(n int) []uint64 {
	f := fence()
	f[0], f[1] = f[1], f[0]
	if n == 0 {
		return nil
	}
	b := atPageEnd(8 * n)
	return unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), n)
}
