package kernel

import "unsafe"

// FetchOf asks for the line in which *p begins, as Fetch does. Who is about to read
// many places of a table asks for all of them first.
func FetchOf[T any](p *T) { Fetch(uintptr(unsafe.Pointer(p)), 1) }

// FetchAll asks for the lines of all elements.
func FetchAll[T any](s []T) {
	if bytes := len(s) * int(unsafe.Sizeof(*new(T))); bytes > 0 {
		Fetch(uintptr(unsafe.Pointer(unsafe.SliceData(s))), (bytes+63)/64)
	}
}
