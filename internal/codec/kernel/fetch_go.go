//go:build !amd64 || purego

package kernel

// Fetch asks for nothing.
func Fetch(_ uintptr, _ int) {}
