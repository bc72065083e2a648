package kernel

// Scale sets dst[i] to res[i]·factor + base. dst has the length of res, and may be res.
func Scale(dst, res []uint64, factor, base uint64) {
	dst = dst[:len(res)]
	if len(res) == 0 || scale(dst, res, factor, base) {
		return
	}
	for i, x := range res {
		dst[i] = x*factor + base
	}
}

// Chain sets dst[i] to start and the sum of res[j]·factor + base up to i. dst has the length of
// res, and may be res.
func Chain(dst, res []uint64, factor, base, start uint64) {
	dst = dst[:len(res)]
	if len(res) == 0 || chain(dst, res, factor, base, start) {
		return
	}
	for i, x := range res {
		start += x*factor + base
		dst[i] = start
	}
}
