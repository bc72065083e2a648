//go:build amd64 && !purego

package kernel

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// avx512Cells tells of what the loops over cells of 16 bits need beside avx512, which it
// is below, too.
var avx512Cells = cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VBMI && cpu.X86.HasAVX512VNNI

func foldNarrow(f *Fold, r *Rows, g *Groups, p Prediction) bool {
	if !avx512Cells || !isWide(r.Lanes) || p.Order == 0 && isFar(p.Base) || p.Order > 0 &&
		isFar(f.Value[:r.Lanes]...) {
		return false
	}
	var n narrowPlan
	step, ok := n.plan(g, p)
	if !ok {
		return false
	}
	var e laneEnding
	inner, pos := r.split(&e, step, windows[g.Size])
	state, body, end := &f.Value[0], r.body(0), (*byte)(unsafe.Pointer(&e))
	stride, lanes, advance := uint64(r.Stride), uint64(1)<<r.Lanes-1, uint64(step)
	first, rest := uint64(inner), uint64(windows[g.Size]-inner)
	switch {
	case p.Order == 0:
		foldOffsetsAVX512(state, &n.pick, body, stride, lanes, advance, first, end, uint64(pos), rest)
	case g.Size == 1:
		foldNarrow0AVX512(state, &n.pick, body, stride, lanes, advance, first, end, uint64(pos), rest)
	case g.Size == 2:
		foldNarrow1AVX512(state, &n.pick, body, stride, lanes, advance, first, end, uint64(pos), rest)
	case g.Size == 3:
		foldNarrow2AVX512(state, &n.pick, body, stride, lanes, advance, first, end, uint64(pos), rest)
	default:
		foldNarrow3AVX512(state, &n.pick, body, stride, lanes, advance, first, end, uint64(pos), rest)
	}
	return true
}
