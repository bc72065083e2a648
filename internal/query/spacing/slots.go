package spacing

// Slots says which slots of a stretch are set. It is small where points come in step, and becomes
// Full where they come as they like.
type Slots []setSlots

// setSlots is so many times the same: set slots in a row, and a gap behind them.
type setSlots struct{ set, gap, n int32 }

// mostSlots is how many parts there are at most.
const mostSlots = 64

// Full reports whether there were too many parts. Then nothing more is noted.
func (s Slots) Full() bool { return len(s) > mostSlots }

// Bytes returns the memory of all parts.
func (s Slots) Bytes() int64 { return 12 * int64(cap(s)) }

// Set adds n set slots at the end, at least one.
func (s *Slots) Set(n int64) {
	list := *s
	if list.Full() {
		return
	}
	k := len(list)
	if k > 0 && list[k-1].gap == 0 {
		list[k-1].set += int32(n)
		return
	}
	if k > 1 && list[k-1].set == list[k-2].set && list[k-1].gap == list[k-2].gap {
		list[k-2].n++
		list = list[:k-1]
	}
	*s = append(list, setSlots{set: int32(n), n: 1})
}

// Gap adds n unset slots.
func (s *Slots) Gap(n int64) {
	if n == 0 || s.Full() {
		return
	}
	if len(*s) == 0 {
		*s = append(*s, setSlots{n: 1})
	}
	(*s)[len(*s)-1].gap += int32(n)
}

// Each calls fn for the set slots and for the gaps among the slots [skip, until), in their order:
// for [from, past), counted from the first slot that was added.
func (s Slots) Each(skip, until int64, fn func(set bool, from, past int64)) {
	at := int64(0)
	part := func(set bool, n int32) {
		from, past := max(at, skip), min(at+int64(n), until)
		if at += int64(n); from < past {
			fn(set, from, past)
		}
	}
	for _, r := range s {
		all := int64(r.set) + int64(r.gap)
		before := min(max((skip-at)/max(all, 1), 0), int64(r.n))
		at += before * all
		for i := before; i < int64(r.n) && at < until; i++ {
			part(true, r.set)
			part(false, r.gap)
		}
	}
}
