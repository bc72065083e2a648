package kernel

// Sums adds up the n residuals of each of 1 to 12 lanes, modulo 2^64. Sums of lanes that
// are not wanted have no defined value.
func Sums(s *[Lanes]uint64, res *Residuals, lanes, n int) {
	checkLanes(lanes, n)
	sums(s, res, lanes, n)
}

func sumsGo(s *[Lanes]uint64, res *Residuals, n int) {
	*s = [Lanes]uint64{}
	for i := range n {
		row := (*[Lanes]uint64)(res[Lanes*i:])
		for l, x := range row {
			s[l] += x
		}
	}
}
