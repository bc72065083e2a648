package history

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestArmed: between two marks a write is noted only where it lies below all that were.
func TestArmed(t *testing.T) {
	var j Journal
	wrote := func(slot int64, want uint64) {
		t.Helper()
		before := j.count
		j.NoteWrite(slot, slot+1, new(LastNote)) // each by another writer
		if got := j.count - before; got != want {
			t.Errorf("a write of slot %d is noted %d times, want %d", slot, got, want)
		}
	}
	j.Mark(1000)
	wrote(1000, 1)
	wrote(1000, 0)
	wrote(1500, 0)
	wrote(999, 1)
	wrote(100, 1) // late: it lowers nothing
	wrote(998, 1)
	j.NoteChange()
	wrote(998, 0)
	wrote(-1, 0)
	j.Mark(1000)
	wrote(1000, 1)
}

// TestLateWritersEqualTheModel: of writers far in the past, who write on and back between rare
// marks, no slot is left out.
func TestLateWritersEqualTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const slots = 2000
		var j Journal
		var writers [2]LastNote
		var marks []Mark
		var written [][slots]bool // since each
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(marks) == 0 || rapid.IntRange(0, 9).Draw(t, "kind") == 0 {
				marks, written = append(marks, j.Mark(1<<40)), append(written, [slots]bool{})
				continue
			}
			lo := rapid.Int64Range(0, slots-1).Draw(t, "lo")
			past := min(lo+rapid.Int64Range(1, 300).Draw(t, "length"), slots)
			j.NoteWrite(lo, past, &writers[rapid.IntRange(0, 1).Draw(t, "writer")])
			for i := range written {
				for slot := lo; slot < past; slot++ {
					written[i][slot] = true
				}
			}
		}
		for i, m := range marks {
			for from := range int64(slots) {
				if below := j.Since(m, from).Below; written[i][from] && below > from || below < from {
					t.Fatalf("slot %d, since mark %d: written %v, and nothing changed below %d", from, i,
						written[i][from], below)
				}
			}
		}
	})
}

// TestLateIsBeforeItsMark: a mark is not told what was written before it, and a minute that is
// written again has one note.
func TestLateIsBeforeItsMark(t *testing.T) {
	var j Journal
	for n := range 10 {
		j.Mark(1 << 40)
		j.NoteWrite(600, 601, new(LastNote))
		if u := j.Since(j.Mark(1<<40), 0); u.Below != math.MaxInt64 || len(j.late) != 1 {
			t.Fatalf("write %d: %+v since a mark behind it, with %d notes", n, u, len(j.late))
		}
	}
}

// TestNewestLateStayApart: when there are too many late notes, those that became one are old.
func TestNewestLateStayApart(t *testing.T) {
	const writes, apart, newest = 1000, 10 * granule, 8
	r := rand.New(rand.NewPCG(1, 1))
	var j Journal
	var marks []Mark
	order := r.Perm(writes)
	for n, at := range order {
		marks = append(marks, j.Mark(1<<40))
		j.NoteWrite(int64(at)*apart, int64(at)*apart+1, new(LastNote))
		begin := max(n-newest, 0)
		behind := order[begin : n+1]
		for _, at := range behind {
			from, next := int64(at)*apart+granule, int64(math.MaxInt64)
			for _, other := range behind {
				if other > at {
					next = min(next, int64(other)*apart)
				}
			}
			if below := j.Since(marks[begin], from).Below; below != next {
				t.Fatalf("write %d: since mark %d nothing changed between %d and %d, want %d", n, begin, from,
					below, next)
			}
		}
	}
}

// TestNotesAscend: of recent slots each note is above the one before, so that equal ones take no
// room.
func TestNotesAscend(t *testing.T) {
	var j Journal
	for slot := range int64(2000) {
		j.Mark(slot / 10)
		j.NoteWrite(slot/10, slot/10+1, new(LastNote))
		for i := range j.notes[1:] {
			if a, b := j.notes[i], j.notes[i+1]; a.count >= b.count || a.slot >= b.slot {
				t.Fatalf("%+v stands before %+v", a, b)
			}
		}
	}
}

// TestLiveOfAnEarlierClock: behind a clock that steps back the delays are those of now.
func TestLiveOfAnEarlierClock(t *testing.T) {
	var j Journal
	var m Mark
	for _, begin := range []int64{1_000_000, 1000} {
		for slot := begin; slot < begin+500; slot++ {
			m = j.Mark(slot)
			if begin > 1000 {
				j.NoteWrite(slot-40, slot-39, new(LastNote))
			} else {
				j.NoteWrite(slot-3, slot-2, new(LastNote))
			}
		}
	}
	if live := j.Since(m, 0).Live; live != 1499-3 {
		t.Errorf("slots are live from %d on", live-1499)
	}
}

// TestManyNamesEqualTheModel: of more names than there are notes each mark is told all that
// changed behind it, and no note begins with another one.
func TestManyNamesEqualTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		hosts := rapid.SampledFrom([]int{1, 5, 400}).Draw(t, "hosts")
		var j Journal
		j.ChangeNames([]byte("before all marks"), func() {})
		if len(j.names) > 0 {
			t.Fatal("a name is noted that nobody asks for")
		}
		type takenMark struct {
			mark Mark
			at   int
		}
		var marks []takenMark
		var changed []string
		for len(changed) < 1200 {
			if r.IntN(20) == 0 || len(marks) == 0 {
				marks = append(marks, takenMark{j.Mark(0), len(changed)})
			}
			name := fmt.Sprintf("%d.%s.%08x", r.IntN(hosts), strings.Repeat("x", r.IntN(20)/19*maxPrefix),
				r.Uint32())
			if r.IntN(100) == 0 {
				name = name[:len(name)-r.IntN(4)] // which others may begin with
			}
			changed = append(changed, name)
			j.ChangeNames([]byte(name), func() {})
			for i, n := range j.names {
				if i > 0 && (n.prefix <= j.names[i-1].prefix ||
					strings.HasPrefix(n.prefix, j.names[i-1].prefix)) || len(n.prefix) > maxPrefix {
					t.Fatalf("%q stands behind %q", n.prefix, j.names[max(i-1, 0)].prefix)
				}
			}
			if len(j.names) > maxNames {
				t.Fatalf("%d names", len(j.names))
			}
			if rest := j.names[len(j.names):cap(j.names)]; slices.ContainsFunc(rest, func(n nameNote) bool {
				return n.prefix != ""
			}) {
				t.Fatal("names that are noted no more are held")
			}
		}
		for _, m := range marks {
			since := j.Since(m.mark, 0).Names
			for _, name := range changed[m.at:] {
				if !slices.ContainsFunc(since, func(prefix string) bool {
					return strings.HasPrefix(name, prefix)
				}) {
					t.Fatalf("%q changed behind mark %+v, and only %q are said to have", name, m, since)
				}
			}
		}
	})
}

// TestNamesStayApart: when there are too many names, the half that begins alike for longest
// becomes one with its neighbours, and others stay.
func TestNamesStayApart(t *testing.T) {
	var j Journal
	j.Mark(0)
	for n := range maxNames + 1 {
		j.ChangeNames(fmt.Appendf(nil, "%03xaa%s", n/3, []string{"1", "2long1", "2long2"}[n%3]),
			func() {})
	}
	if groups := maxNames/3 + 1; len(j.names) != groups {
		t.Errorf("%d notes are left, want %d", len(j.names), groups)
	}
}
