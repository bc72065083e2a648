//go:build amd64 && !purego && !race

package kernel

func lay(cells, words []uint64) (done, unset, same, other int) {
	n := inFours(len(words))
	if n == 0 {
		return 0, 0, 0, 0
	}
	zeros, free, both, equal := layAVX2(&cells[0], &words[0], uint64(n))
	unset, same = int(zeros), int(equal-both)
	return n, unset, same, n - unset - int(free-both) - same
}
