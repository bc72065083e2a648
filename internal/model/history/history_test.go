package history

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// write is a write of the model into the slots from lo up to past.
type write struct{ lo, past int64 }

// takenMark is a mark, and all that came behind it.
type takenMark struct {
	mark    Mark
	written []write
	names   []string // that changed
}

// check demands that a journal says no more to be unchanged since the mark, from a slot on, than
// what came behind it left.
func (m *takenMark) check(t *rapid.T, j *Journal, from int64) {
	lowest := int64(math.MaxInt64)
	for _, w := range m.written {
		if w.past > from {
			lowest = min(lowest, max(w.lo, from))
		}
	}
	u := j.Since(m.mark, from)
	if u.Below > lowest {
		t.Fatalf("%+v since %+v from %d on, want %d", u, m.mark, from, lowest)
	}
	if len(u.Names) > 0 != (len(m.names) > 0) {
		t.Fatalf("names %q changed since %+v, want %q", u.Names, m.mark, m.names)
	}
	for _, name := range m.names {
		if !slices.ContainsFunc(u.Names, func(prefix string) bool {
			return strings.HasPrefix(name, prefix)
		}) {
			t.Fatalf("name %q changed since %+v, and only %q are said to have", name, m.mark, u.Names)
		}
	}
}

// TestSinceEqualsTheModel: what is said to be unchanged is what the list of all writes says, or
// less.
func TestSinceEqualsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var j Journal
		var all []takenMark
		step := func(of func(*takenMark)) {
			for i := range all {
				of(&all[i])
			}
		}
		var writers [3]LastNote
		most := rapid.SampledFrom([]int64{3, 40, 2000, 200_000}).Draw(t, "slots")
		now := rapid.Int64Range(0, 2*most).Draw(t, "now")
		for range rapid.IntRange(1, 1500).Draw(t, "steps") {
			switch k := rapid.IntRange(0, 40).Draw(t, "kind"); {
			case k < 25:
				w := write{lo: rapid.Int64Range(0, most).Draw(t, "slot")}
				w.past = w.lo + 1
				if k < 4 {
					w.past += rapid.Int64Range(0, 300).Draw(t, "more")
				}
				j.NoteWrite(w.lo, w.past, &writers[k%len(writers)])
				step(func(m *takenMark) { m.written = append(m.written, w) })
			case k == 37:
				now = rapid.Int64Range(0, 2*most).Draw(t, "now")
			case k == 38:
				name := drawName(t)
				j.ChangeNames([]byte(name), func() {})
				step(func(m *takenMark) { m.names = append(m.names, name) })
			case k == 39 && most > 1000:
				j.Change(func() {})
				step(func(m *takenMark) { m.written = append(m.written, write{Nothing, math.MaxInt64}) })
			case k == 40 && most > 1000:
				j.NoteChange()
				step(func(m *takenMark) { m.written = append(m.written, write{Nothing, math.MaxInt64}) })
			default:
				all = append(all, takenMark{mark: j.Mark(now)})
			}
		}
		from := rapid.Int64Range(0, most).Draw(t, "from")
		for _, m := range all {
			m.check(t, &j, from)
		}
		if len(j.notes) > maxNotes || len(j.late) > maxLate || len(j.names) > maxNames ||
			j.Bytes() > 2*(noteSize*maxNotes+lateNoteSize*maxLate+nameNoteSize*maxNames) {
			t.Fatalf("%d notes and %d late ones in %d bytes", len(j.notes), len(j.late), j.Bytes())
		}
	})
}

// drawName draws a key of some parts, few of them, and some that are the begin of others.
func drawName(t *rapid.T) string {
	return strings.Repeat("long", rapid.SampledFrom([]int{0, 0, 0, 20}).Draw(t, "long")) +
		rapid.StringMatching("[abc]{0,6}").Draw(t, "name")
}

// TestManyNames: of more names than there are notes, those are kept apart that begin otherwise, and
// a mark is told all that came behind it and little of what came before.
func TestManyNames(t *testing.T) {
	var j Journal
	before := j.Mark(0)
	for host := range 40 {
		for n := range 100 {
			j.ChangeNames(fmt.Appendf(nil, "host%02d.cpu.%d", host, n), func() {})
		}
	}
	last := j.Mark(0)
	j.ChangeNames([]byte("web.requests"), func() {})
	takes := func(m Mark, name string) bool {
		return slices.ContainsFunc(j.Since(m, 0).Names, func(prefix string) bool {
			return strings.HasPrefix(name, prefix)
		})
	}
	for host := range 40 {
		if name := fmt.Sprintf("host%02d.cpu.99", host); !takes(before, name) || takes(last, name) {
			t.Errorf("%s changed: since the first mark %v, since the last one %v", name, takes(before, name),
				takes(last, name))
		}
	}
	if !takes(last, "web.requests") || takes(before, "db.requests") || takes(before, "host99.disk") {
		t.Errorf("since the last mark %q changed, since the first one %q", j.Since(last, 0).Names,
			j.Since(before, 0).Names)
	}
	if j.ChangeNames(nil, func() {}); !takes(last, "db.requests") {
		t.Error("any name may have changed, and one has not")
	}
}

// TestOnTime: of a sender that goes on, an old mark takes little more for changed than was written
// at it, however many marks there were.
func TestOnTime(t *testing.T) {
	var j Journal
	var w LastNote
	var marks []Mark
	for slot := range int64(10_000) {
		marks = append(marks, j.Mark(slot))
		j.NoteWrite(slot, slot+1, &w)
		j.NoteWrite(slot, slot+1, &w)
	}
	for slot, m := range marks {
		age := len(marks) - slot
		if below := j.Since(m, 0).Below; below > int64(slot) || below < int64(slot-age/(precision-1)) {
			t.Errorf("nothing changed below %d since slot %d", below, slot)
		}
	}
}

// TestLate: senders far in the past, who go on as well, take what they write and little around it.
func TestLate(t *testing.T) {
	var j Journal
	var a, b, c LastNote
	var old Mark
	for n := range int64(5000) {
		slot := 1_000_000 + n
		m := j.Mark(slot)
		if n == 10 {
			old = m
		}
		j.NoteWrite(slot, slot+1, &a)
		j.NoteWrite(slot-3600, slot-3600+1, &b)
		j.NoteWrite(slot-86400, slot-86400+4, &c)
		for _, of := range []struct{ from, below int64 }{
			{0, slot - 86400 - granule}, {slot - 86400 + 2*granule, slot - 3600 - granule},
			{slot - 3600 + granule, slot},
		} {
			if below := j.Since(m, of.from).Below; below < of.below || below > of.below+granule {
				t.Fatalf("step %d: nothing changed between %d and %d, want %d", n, of.from-slot, below-slot,
					of.below-slot)
			}
		}
	}
	for _, of := range []struct{ from, below int64 }{{0, 1_000_000 - 86400},
		{1_000_000 - 86400 + 5300, 1_000_000 - 3600}} {
		if below := j.Since(old, of.from).Below; below > of.below+10 || below < of.below-500 {
			t.Errorf("since an old mark nothing changed between %d and %d, want %d", of.from, below,
				of.below)
		}
	}
}

// TestManyLate: of more late writes than there are notes none is lost to a mark, wherever they are.
func TestManyLate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var j Journal
		var marks []Mark
		var written []int64
		near := int64(0)
		for n := range 1500 {
			marks = append(marks, j.Mark(1<<40))
			slot := r.Int64N(1 << 20)
			if n%2 == 0 {
				near++
				slot = near
			}
			written = append(written, slot)
			j.NoteWrite(slot, slot+1, new(LastNote))
		}
		for n := range marks {
			for i := n; i < len(marks); i += 1 + r.IntN(300) {
				slot := written[i]
				if below := j.Since(marks[n], slot).Below; below > slot {
					t.Fatalf("write %d, of slot %d, is not noted for mark %d: nothing changed below %d", i, slot,
						n, below)
				}
			}
		}
	})
}

// TestBackfill: a sender who fills in the past without a mark notes each minute once.
func TestBackfill(t *testing.T) {
	var j Journal
	var w LastNote
	j.Mark(10_000_000)
	for slot := range int64(60_000) {
		j.NoteWrite(slot, slot+1, &w)
	}
	if j.count > 1000 || len(j.late) != 1 {
		t.Errorf("%d notes, %d are kept", j.count, len(j.late))
	}
}

// TestLive: slots are live from where on points came in behind the last marks.
func TestLive(t *testing.T) {
	var j Journal
	var w LastNote
	m := j.Mark(1000)
	if live := j.Since(m, 0).Live; live != 1000-delayTurn {
		t.Errorf("at first slots are live from %d on", live-1000)
	}
	for slot := int64(1000); slot < 1500; slot++ {
		m = j.Mark(slot)
		j.NoteWrite(slot-slot%5, slot-slot%5+1, &w)
		j.NoteWrite(slot-2000, slot-2000+1, &w) // late
		if live := j.Since(m, 0).Live; slot > 1200 && live != slot-4 {
			t.Errorf("at %d slots are live from %d on", slot, live-slot)
		}
	}
	for slot := int64(1500); slot < 1700; slot++ {
		m = j.Mark(slot)
	}
	if live := j.Since(m, 0).Live; live != 1699 {
		t.Errorf("without points slots are live from %d on", live-1699)
	}
}

// TestOtherJournals say nothing of a mark, and nobody of the zero Mark.
func TestOtherJournals(t *testing.T) {
	var a, b Journal
	if u := a.Since(Mark{}, 0); u.Below != Nothing || !slices.Contains(u.Names, "") {
		t.Errorf("since the zero Mark %+v", u)
	}
	m := a.Mark(0)
	b.Mark(0)
	for _, u := range []Unchanged{b.Since(m, 0), a.Since(Mark{}, 0), new(Journal).Since(m, 0)} {
		if u.Below != Nothing || !slices.Contains(u.Names, "") {
			t.Errorf("since a mark of another journal %+v", u)
		}
	}
	if u := a.Since(m, 0); u.Below != math.MaxInt64 || u.Names != nil || a.Mark(0) != m {
		t.Errorf("without a change %+v", u)
	}
}

// TestUnmarked: without a mark nothing is noted.
func TestUnmarked(t *testing.T) {
	var j Journal
	var w LastNote
	for slot := range int64(100) {
		j.NoteWrite(100-slot, 101-slot, &w)
	}
	if j.count != 0 {
		t.Errorf("%d changes", j.count)
	}
}

// TestReadersSeeTheirChanges: slots under locks of their own, written and read beside each other,
// recent ones and others. What a reader found unchanged is.
func TestReadersSeeTheirChanges(t *testing.T) {
	const groups, slots, rounds = 4, 256, 2000
	var j Journal
	var all [groups]struct {
		sync.RWMutex
		words [slots]int
		noted LastNote
	}
	var over sync.WaitGroup
	for g := range groups {
		over.Go(func() {
			for n := range rounds * slots {
				slot := int64(n % slots * 7 % slots) // back and forth
				all[g].Lock()
				j.NoteWrite(slot, slot+1, &all[g].noted)
				all[g].words[slot]++
				all[g].Unlock()
			}
		})
	}
	read := func() (words [groups][slots]int) {
		for g := range groups {
			all[g].RLock()
			words[g] = all[g].words
			all[g].RUnlock()
		}
		return words
	}
	for n := range int64(rounds) {
		m := j.Mark(recentSlots + n%3*100)
		was := read()
		j.Mark(recentSlots) // beside others
		is := read()
		from := n % slots
		below := j.Since(m, from).Below
		for g := range groups {
			for slot := from; slot < min(below, slots); slot++ {
				if was[g][slot] != is[g][slot] {
					t.Fatalf("group %d slot %d changed, nothing from %d to %d did", g, slot, from, below)
				}
			}
		}
	}
	over.Wait()
}

// BenchmarkMarkAndSince is a mark, a write behind it, and the question for an old mark.
func BenchmarkMarkAndSince(b *testing.B) {
	for name, behind := range map[string]int64{"recent": 0, "late": 100_000} {
		b.Run(name, func(b *testing.B) {
			var j Journal
			var w LastNote
			old, slot := j.Mark(0), int64(1<<30)
			for b.Loop() {
				j.Mark(slot)
				j.NoteWrite(slot-behind, slot-behind+1, &w)
				j.Since(old, 0)
				slot++
			}
		})
	}
}
