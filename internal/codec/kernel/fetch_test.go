//go:build unix

package kernel

import (
	"testing"
	"unsafe"
)

// Where no memory is, or none that may be touched, nothing happens.
func TestFetchAnywhere(t *testing.T) {
	p := uintptr(unsafe.Pointer(&atPageEnd(64)[0]))
	for _, at := range []uintptr{0, 1, p, p + 64, ^uintptr(0), ^uintptr(0) >> 1, 1 << 63} {
		for _, lines := range []int{1, 2, 100} {
			Fetch(at, lines)
		}
	}
}
