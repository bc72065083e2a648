package head

// complete reports whether every cell of an open block is set, from the first row
// that was written on: what comes for it then are points it already has, or such
// as are older than any before.
func (g *Group) complete(b *block) bool {
	return b.set >= g.Columns().Bound()*int(b.start+g.height-b.first)
}

// CloseComplete closes the complete blocks that were last written before the
// given coarse time and returns how many now wait for Seal. Points that rewrite
// their slots are late from then on.
func (g *Group) CloseComplete(before int64) (closed int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := 0; i < len(g.open); {
		if b := g.open[i]; b.lastWrite < before && g.complete(b) {
			g.close(i)
			closed++
		} else {
			i++
		}
	}
	return closed
}

// CloseBehind closes all blocks but the newest, and the one before it while it is
// not complete, and returns how many now wait for Seal. It is for a replay: the
// clock that closed them the first time does not run in one.
func (g *Group) CloseBehind() (closed int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for n := len(g.open); n > 2 || n == 2 && g.complete(g.open[0]); n = len(g.open) {
		g.close(0)
		closed++
	}
	return closed
}
