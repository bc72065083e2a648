//go:build amd64 && !purego

package kernel

// Fetch asks the processor for lines of 64 bytes, at least one, from an address on.
// What will soon be read is on its way then while other work goes on. The address
// need not be one: where there is no memory nothing happens.
func Fetch(address uintptr, lines int) { fetch(address, uint64(lines)) }
