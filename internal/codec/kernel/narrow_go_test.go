//go:build !amd64 || purego

package kernel

const hasNarrow = false
