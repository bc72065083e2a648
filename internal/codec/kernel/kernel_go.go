//go:build !amd64 || purego

package kernel

func unpack(res *Residuals, r *Rows, width uint, n int)        { unpackGo(res, r, width, n) }
func unpackGroups(res *Residuals, r *Rows, g *Groups, n int)   { unpackGroupsGo(res, r, g, n) }
func add(v *Values, res *Residuals, base uint64, lanes, n int) { addGo(v, res, base, lanes, n) }

func add1(v *Values, res *Residuals, base uint64, start *[Lanes]uint64, lanes, n int) {
	add1Go(v, res, base, start, lanes, n)
}

func add2(v *Values, res *Residuals, base uint64, start, step *[Lanes]uint64, lanes, n int) {
	add2Go(v, res, base, start, step, lanes, n)
}

// The following tell how many words they have done: none.

func ints(_, _ []uint64) int                 { return 0 }
func floatBits(_, _ []uint64, _ uint) int    { return 0 }
func decimals(_, _ []uint64, _ Quotient) int { return 0 }
func measure(_ *Extent, _ []uint64) int      { return 0 }
func fill(dst []uint64, w uint64)            { fillGo(dst, w) }
