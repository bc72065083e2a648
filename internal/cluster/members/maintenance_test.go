package members

import (
	"context"
	"errors"
	"strings"
	"testing"

	"dalmatiner/internal/cluster/ring"
)

// TestMaintenanceIsRefusedWhereTooMuchWouldBeMissing: with n = 2, r = 1 and w = 2 one of three
// members may be away.
func TestMaintenanceIsRefusedWhereTooMuchWouldBeMissing(t *testing.T) {
	first := start(t, 1)
	nodes := []*node{first, start(t, 2, first.gossip.Addr()), start(t, 3, first.gossip.Addr())}
	for _, n := range nodes {
		waitFor(t, "three members", func() bool { return len(n.validMembers()) == 3 })
	}
	set := func(i int, on bool) error {
		return nodes[0].SetMaintenance(context.Background(), nodes[i].name, on, 1, 2)
	}
	if err := set(1, true); err != nil {
		t.Fatal(err)
	}
	id := ring.ID{15: 2}
	waitFor(t, "another one knows", func() bool {
		away := nodes[2].Maintenance()
		return len(away) == 1 && away[id]
	})
	if err := set(1, true); err != nil {
		t.Errorf("once more: %v", err)
	}
	err := set(2, true)
	if !errors.Is(err, ErrMaintenance) ||
		!strings.Contains(err.Error(), nodes[1].name+" (in maintenance)") {
		t.Errorf("two of three: %v", err)
	}
	if err := nodes[0].SetMaintenance(context.Background(), "nobody", true, 1, 2); !errors.Is(err,
		ErrMaintenance) || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("no member: %v", err)
	}
	if err := nodes[0].SetMaintenance(context.Background(), nodes[2].name, true, 2, 2); !errors.Is(err,
		ErrMaintenance) {
		t.Errorf("reads of all copies: %v", err)
	}
	if err := set(1, false); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "it is over", func() bool { return len(nodes[2].Maintenance()) == 0 })
	if err := set(2, true); err != nil {
		t.Errorf("another one: %v", err)
	}
	if again, err := mergeRests([]byte(`[{"node":[1],"clock":1}]`), nil); !errors.Is(err,
		errMalformed) {
		t.Errorf("malformed: %s, %v", again, err)
	}
}
