//go:build !amd64 || purego

package kernel

func match(words []uint64, names []byte, expected []Span, buf []byte, prefix, suffix int) (points,
	size int) {
	return matchGo(words, names, expected, buf, prefix, suffix)
}
