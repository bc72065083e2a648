package exec

// restart goes on behind the slot that the original loses.
func (l *leaf) restart() {
	l.pos = l.stop + 1
	l.stop = min(l.Past, l.pos+l.Restart)
	l.first, l.carry = unknown, 0
}

// nothing is a series without values.
type nothing struct{ over }

func (n *nothing) next(x *executor, dst block) (block, error) {
	in, err := x.pull(n.in, x.scratch())
	if err == nil {
		x.release(in)
	}
	return dst, err
}
