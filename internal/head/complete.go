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

// pastPart of its rows is how far points reach into a block when complete ones
// before it close.
const pastPart = 5

// closePast closes the complete blocks before b each time that b has got a fifth
// further: nothing but points that are sent again would come for them. A sender that
// is faster than the clock of CloseComplete would fill four blocks a group, in memory
// that the system first has to find. A group that is not full may get series whose
// sender begins in the past: it waits for the clock.
func (g *Group) closePast(b *block) {
	if !b.deeper {
		return
	}
	b.deeper = false
	if g.Columns().Bound() < Width {
		return
	}
	for i := 0; i < len(g.open) && g.open[i].start < b.start; {
		if g.complete(g.open[i]) {
			g.close(i)
		} else {
			i++
		}
	}
}

// CloseBehind closes all blocks but the newest, and the one before it while it is
// not complete, and returns how many now wait for Seal. It is for a replay: the
// clock that closed them the first time does not run in one.
func (g *Group) CloseBehind() (closed int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for n := len(g.open); n > 2 || n == 2 && g.over(g.open[0]); n = len(g.open) {
		g.close(0)
		closed++
	}
	return closed
}

// over reports whether hardly anything will come for an open block: it is complete,
// or a newer one was.
func (g *Group) over(b *block) bool { return g.complete(b) || g.closedTo > b.start+g.height }
