package kernel

// FoldNarrow is Unpack, or UnpackGroups where g.Size is above 1, of MaxLane residuals and
// FoldInts of all of them to lanes without a value so far, in one pass and without
// residuals in memory. Of g the Base counts for groups only.
//
// It reports false, and has done nothing, where it does not pay or a value may lie 2^15 or
// more from where its lane starts, or 2^62 or more from zero. Second differences and groups
// of four are never taken.
func FoldNarrow(f *Fold, r *Rows, g *Groups, p Prediction) bool {
	if g.Size < 1 || g.Size > 6 || g.Width < 1 || g.Width > 64 || g.Size > 1 &&
		(g.Width > 31 || g.Base < 1 || g.Base >= 1<<16) {
		panic("kernel: groups that no lane has")
	}
	r.check((MaxLane + g.Size - 1) / g.Size * int(g.Width))
	return foldNarrow(f, r, g, p)
}
