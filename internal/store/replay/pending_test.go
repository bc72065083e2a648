package replay

import (
	"math/rand/v2"
	"slices"
	"testing"

	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/logrecord"
)

// The table of pending records against a naive one: what is next in each group, how many
// points are left, and what memory the positions take.
func TestPendingRecords(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	b := columns.NewBucket(buckets.Info{ID: 7, Name: "b", Resolution: 1000, PPF: 1}, 60,
		head.NewArena(60))
	for range 50 {
		limit := 1 + r.Int64N(200)
		table := pendingTable{p: new(progress), limit: limit}
		type rec struct {
			lsn, points uint64
			copies      bool
		}
		want := map[uint32][]rec{}
		lsn := uint64(0)
		for range 200 {
			group := r.Uint32N(5)
			lsn += 1 + r.Uint64N(1<<r.IntN(20))
			p := logrecord.Record{Group: group, Counts: account.Counts{Accepted: 1 + r.Uint64N(9)},
				Copies: r.IntN(2) == 0}
			tooMany := table.add(lsn, b, &p)
			want[group] = append(want[group], rec{lsn, p.Counts.StoredPoints(), p.Copies})
			l := table.of(group)
			if all := table.p.positions.Load(); tooMany &&
				(all <= limit || int64(l.held)*table.n <= limit/2) {
				t.Fatalf("too many positions: %d bytes of %d, %d of the group", all, limit, l.held)
			}
			for n := r.IntN(3); tooMany && len(want[group]) > 0 || n > 0 && len(want[group]) > 0; n-- {
				first := want[group][0]
				if l.next != first.lsn {
					t.Fatalf("group %d: %d is next, want %d", group, l.next, first.lsn)
				}
				l.done(first.copies, first.points)
				want[group] = want[group][1:]
			}
			if l.next == 0 {
				table.giveBack(l)
			}
			remaining := left{}
			for _, w := range want[group] {
				*remaining.of(w.copies) += w.points
			}
			if l.left != remaining || l.empty.Load() != (len(want[group]) == 0) {
				t.Fatalf("group %d: %+v is left, want %+v; empty is %t", group, l.left, remaining,
					l.empty.Load())
			}
		}
		for _, p := range table.list() {
			all := want[p.Group]
			if len(all) == 0 {
				if p.First != 0 || p.Last != 0 {
					t.Errorf("group %d has %d to %d, want none", p.Group, p.First, p.Last)
				}
			} else if p.First != all[0].lsn || p.Last != all[len(all)-1].lsn {
				t.Errorf("group %d has %d to %d, want %v", p.Group, p.First, p.Last, all)
			}
		}
		if groups := slices.DeleteFunc(slices.Clone(table.groups), func(l *pendingRecords) bool {
			return l == nil
		}); len(groups) != int(table.n) {
			t.Errorf("%d groups, %d are counted", len(groups), table.n)
		}
		table.drop(b)
		if positions, all := table.p.positions.Load(), table.p.bytes.Load(); positions != 0 ||
			all != table.n*recordsSize {
			t.Errorf("%d bytes of positions are held when none is left, %d in all", positions, all)
		}
	}
}
