//go:build amd64 && !purego

package kernel

func match(words []uint64, names []byte, expected []Span, buf []byte, prefix, suffix int) (points,
	size int) {
	n := min(len(words), len(expected))
	if !avx2 || n == 0 || len(names) == 0 || len(buf) == 0 {
		return matchGo(words, names, expected, buf, prefix, suffix)
	}
	var p, used uint64
	if prefix == 0 {
		p, used = matchBatchAVX2(&words[0], &names[0], &expected[0].From, uint64(n), &buf[0],
			uint64(len(buf)))
	} else {
		p, used = matchEntriesAVX2(&words[0], &names[0], &expected[0].From, uint64(n), &buf[0],
			uint64(len(buf)))
	}
	return int(p), int(used)
}
