package flush

import (
	"math/rand/v2"
	"testing"

	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/model/account"
)

// The list of losses against a naive one: a snapshot leaves out those that are not
// below the replay position of their group.
func TestSnapshotsLeaveOutWhatIsFoundAgain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	type loss struct{ group, lsn, points uint64 }
	const cause, other = "log_record_without_series", "blocks"
	for range 200 {
		a := account.New()
		l := NewLosses(a, account.New(), cause)
		a.Lose(other, 7)
		var all []loss
		lsn, at := uint64(0),
			Positions{Own: []manifest.ReplayPosition{{Group: 0}, {Group: 1}, {Group: 2}}}
		for range r.IntN(60) {
			lsn += 1 + r.Uint64N(1<<(4*r.IntN(6)))
			n := loss{r.Uint64N(3), lsn, r.Uint64N(300)}
			all = append(all, n)
			l.Count(uint32(n.group), false, n.lsn, n.points)
			if r.IntN(4) > 0 {
				continue
			}
			f := &at.Own[r.IntN(3)]
			f.LSN = max(f.LSN, lsn+1-min(lsn, r.Uint64N(1<<(4*r.IntN(6)))))
			b, want, total := account.New(), uint64(0), uint64(0)
			points, copies := snapshot(&at, l)
			if copies != nil {
				t.Fatal("a ledger of copies without any is written")
			}
			if err := b.Restore(points); err != nil {
				t.Fatal(err)
			}
			for _, n := range all {
				total += n.points
				if n.lsn < at.Of(uint32(n.group)) {
					want += n.points
				}
			}
			got := map[string]uint64{}
			for _, n := range b.Losses() {
				got[n.Cause] = n.Points
			}
			if got[cause] != want || got[other] != 7 {
				t.Fatalf("the snapshot has %v, want %d", got, want)
			}
			for _, n := range a.Losses() {
				if n.Cause == cause && n.Points != total {
					t.Fatalf("the account has %d, want %d", n.Points, total)
				}
			}
		}
	}
}

// Losses of a group that are found out of order are counted again by a start as those
// that are found in order.
func TestLossesOutOfOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 5))
	for range 200 {
		lost := NewLosses(account.New(), account.New(), "log_record_damaged")
		at := map[uint64]uint64{}
		for range 1 + r.IntN(20) {
			lsn, n := 1+r.Uint64N(100), 1+r.Uint64N(9)
			if at[lsn] == 0 {
				at[lsn] = n
				lost.Count(7, false, lsn, n)
			}
		}
		for floor := uint64(0); floor <= 101; floor += 1 + r.Uint64N(30) {
			want := uint64(0)
			for lsn, n := range at {
				if lsn >= floor {
					want += n
				}
			}
			if got := lost.points.again(&Positions{Base: floor}); got != want {
				t.Fatalf("%d points are lost at or above %d, want %d: %v", got, floor, want, at)
			}
		}
	}
}
