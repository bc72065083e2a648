package members

import (
	"context"
	"errors"
	"testing"

	"dalmatiner/internal/cluster/ring"
)

// half is a Gossip for which only some members are up.
type half struct {
	Gossip
	up map[ring.ID]bool
}

func (h half) IsUp(id ring.ID) bool { return h.up[id] }

// A minority of the members changes the ring only when it is told to: the others may do so as well.
func TestAMinorityChangesNoRing(t *testing.T) {
	nodes, ctx := threeNodes(t), context.Background()
	late := start(t, 4, nodes[0].gossip.Addr())
	for _, n := range append(nodes, late) {
		n.tell(News{Left: 7})
	}
	m := nodes[0].Members
	waitFor(t, "the change can be staged", func() bool {
		return m.Stage(ctx, Change{Action: ring.Join, New: "n4"}) == nil
	})
	ids := []ring.ID{nodes[0].o.Self, nodes[1].o.Self}
	few := &Members{o: m.o}
	see := func(ids ...ring.ID) {
		up := make(map[ring.ID]bool)
		for _, id := range ids {
			up[id] = true
		}
		few.o.Gossip = half{nodes[0].gossip, up}
	}
	commit := func(minority bool) error {
		t.Helper()
		plan, err := few.Plan()
		if err != nil || plan == nil {
			t.Fatalf("%v, %v", plan, err)
		}
		return few.Commit(ctx, plan.Base.String(), plan.Staged, minority)
	}
	see(ids[0])
	if err := commit(false); !errors.Is(err, ErrMinority) || nodes[0].gossip.View().IsChanging() {
		t.Errorf("one of three members has committed: %v", err)
	}
	if err := commit(true); err != nil || !nodes[0].gossip.View().IsChanging() {
		t.Fatalf("with --minority: %v", err)
	}
	// The member that joins counts, too: one of four is fewer than half, two are not.
	if err := few.Undo(ctx, false); !errors.Is(err, ErrMinority) ||
		!nodes[0].gossip.View().IsChanging() {
		t.Errorf("one of four members has taken it back: %v", err)
	}
	see(ids...)
	if err := few.Undo(ctx, false); err != nil || nodes[0].gossip.View().IsChanging() {
		t.Errorf("two of four: %v", err)
	}
}
