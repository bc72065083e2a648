package hole

// MaxHoles is how many holes a store has at most, but for one a bucket. Where more were
// needed, neighbouring ones are joined into wider ones: see Bound.
const MaxHoles = 4096

// Bound returns at most so many holes, but for one a bucket, that hide all that those of the list
// hide. Where there are more, those of a bucket and position are joined that begin in the same
// range of slots, ever longer ones, and in the end those of all positions, at the highest. The new
// ones have the cause Joined and no source: they hide more than was lost, and say so.
func Bound(list []Hole, most int) []Hole {
	list = Join(list)
	const shortest, longest = 720, 1 << 52
	for unit := int64(shortest); len(list) > most && unit <= longest; unit *= 8 {
		list = coarsenHoles(list, func(a, b *Hole) bool {
			return a.At == b.At && floor(a.From, unit) == floor(b.From, unit)
		})
	}
	if len(list) > most {
		list = coarsenHoles(list, func(_, _ *Hole) bool { return true })
	}
	return list
}

// coarsenHoles joins holes of a bucket with the first one that goes together with them.
func coarsenHoles(list []Hole, together func(a, b *Hole) bool) []Hole {
	var out []Hole
	begin := 0 // of the bucket's
	for _, h := range list {
		if n := len(out); n > 0 && out[n-1].Bucket != h.Bucket {
			begin = n
		}
		joined := false
		for i := begin; i < len(out) && !joined; i++ {
			if joined = together(&out[i], &h); joined {
				out[i].widen(&h)
			}
		}
		if !joined {
			out = append(out, h)
		}
	}
	return Join(out)
}

// widen makes a hole hide what another one of its bucket hides, too.
func (h *Hole) widen(o *Hole) {
	if h.At.Compare(o.At) < 0 {
		h.At = o.At
	}
	h.Low, h.High = min(h.Low, o.Low), max(h.High, o.High)
	h.From, h.Past = min(h.From, o.From), max(h.Past, o.Past)
	h.Cause, h.Source = Joined, 0
}
