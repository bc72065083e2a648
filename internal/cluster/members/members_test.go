package members

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"dalmatiner/internal/cluster/gossip"
	"dalmatiner/internal/cluster/ring"
)

// TestMain leaves out connections that dskit's transport had accepted when it was shut down: each
// waits for ever for somebody to take its packet. A process ends with them.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction(
			"github.com/grafana/dskit/kv/memberlist.(*TCPTransport).handleConnection"))
}

// node is a node whose data are only told of.
type node struct {
	*Members
	gossip *gossip.Node
	name   string

	mu   sync.Mutex
	news News
	held bool
}

func (n *node) tell(news News) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.news = news
}

func start(t *testing.T, i int, seed ...string) *node {
	t.Helper()
	fs := vfs.NewMem()
	if err := fs.MkdirAll("d", 0o755); err != nil {
		t.Fatal(err)
	}
	n := &node{name: fmt.Sprint("n", i), news: News{Free: 1 << 30}}
	g, err := gossip.Open(gossip.Options{
		Node: ring.Candidate{ID: ring.ID{15: byte(i)}, Name: n.name,
			Addresses: []string{fmt.Sprintf("host%d:8599", i)},
			Protocol:  ring.Protocol{Min: 1, Max: 1}, Partitions: 64}, Copies: 2, Listen: "127.0.0.1:0",
		Join: seed, Cookie: "secret",
		FS: fs, Dir: "d", Logger: slog.New(slog.DiscardHandler), Heartbeat: 50 * time.Millisecond,
		Timeout: 2 * time.Second, Values: Values()})
	if err != nil {
		t.Fatal(err)
	}
	n.gossip = g
	n.Members = Start(Options{Self: ring.ID{15: byte(i)}, Gossip: g, Now: time.Now,
		Logger: slog.New(slog.DiscardHandler), Every: 20 * time.Millisecond,
		Rest: func(map[ring.ID]bool) {},
		Hold: func(on bool) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.held = on
		},
		News: func(ring.Version) (News, bool) {
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.news, true
		}})
	t.Cleanup(func() {
		n.Members.Close()
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	// nodes tell each other all of it every 30 s, if news was lost
	deadline := time.After(90 * time.Second)
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal(what)
		}
	}
}

// validMembers returns the names of the members of which a node knows that they own their share.
func (n *node) validMembers() (names []string) {
	for _, m := range n.gossip.View().Members() {
		if m.State == ring.Active {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return names
}

func awaitMembers(t *testing.T, want string, nodes ...*node) {
	t.Helper()
	for _, n := range nodes {
		waitFor(t, fmt.Sprintf("%s has the members %s", n.name, want), func() bool {
			return strings.Join(n.validMembers(), " ") == want && !n.gossip.View().IsChanging()
		})
	}
}

// awaitReports waits until a node knows what the others say under the ring that it has.
func awaitReports(t *testing.T, at *node, others ...*node) {
	t.Helper()
	waitFor(t, "reports are everywhere", func() bool {
		all, err := at.progress()
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range others {
			if r := all.reportOf(o.o.Self); r == nil || r.version() != at.gossip.View().Version() {
				return false
			}
		}
		return true
	})
}

// threeNodes is a cluster with data.
func threeNodes(t *testing.T) []*node {
	t.Helper()
	first := start(t, 1)
	nodes := []*node{first, start(t, 2, first.gossip.Addr()), start(t, 3, first.gossip.Addr())}
	awaitMembers(t, "n1 n2 n3", nodes...)
	// each says so before it takes a bucket: a ring of one that has not gives way to it
	for _, n := range nodes {
		if err := n.gossip.HasData(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	return nodes
}

// TestAMemberLeaves: a leave that is staged on one node is planned on another and committed on the
// third. It ends when those who take the share over have it, and the one that leaves keeps nothing
// for others.
func TestAMemberLeaves(t *testing.T) {
	nodes, ctx := threeNodes(t), context.Background()
	for i, n := range nodes {
		n.tell(News{Left: []int{7, 0, 7}[i], Bytes: 64 << 20, Free: 1 << 30, Hints: 3})
	}
	if err := nodes[0].Stage(ctx, Change{Action: ring.Leave, Node: "n2"}); err != nil {
		t.Fatal(err)
	}
	var plan *Plan
	waitFor(t, "the plan moves bytes", func() bool {
		var err error
		if plan, err = nodes[1].Plan(); err != nil {
			t.Fatal(err)
		}
		return plan != nil && plan.Bytes() > 0
	})
	waitFor(t, "another node has the same plan", func() bool {
		p, err := nodes[2].Plan()
		if err != nil {
			t.Fatal(err)
		}
		return p != nil && p.Staged == plan.Staged && p.Next.Version() == plan.Next.Version()
	})
	if err := nodes[2].Commit(ctx, "7-00000000", 0, false); !errors.Is(err, ring.ErrStale) {
		t.Errorf("a plan of another ring was committed: %v", err)
	}
	if err := nodes[2].Commit(ctx, plan.Base.String(), plan.Staged+1, false); !errors.Is(err,
		ring.ErrStale) {
		t.Errorf("other changes were committed than those that were looked at: %v", err)
	}
	if err := nodes[2].Commit(ctx, plan.Base.String(), plan.Staged, false); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the commit arrives", func() bool { return nodes[0].gossip.View().IsChanging() })
	awaitReports(t, nodes[0], nodes...)
	if got, err := nodes[0].PendingSteps(); err != nil || len(got) != 3 ||
		got[1] != "n2 leaves and keeps 3 batches for others" {
		t.Errorf("%q, %v", got, err)
	}
	nodes[0].tell(News{Hints: 3})
	nodes[2].tell(News{})
	waitFor(t, "only the one that leaves is waited for", func() bool {
		got, err := nodes[0].PendingSteps()
		return err == nil && len(got) == 1 && nodes[0].gossip.View().IsChanging()
	})
	nodes[1].tell(News{})
	awaitMembers(t, "n1 n3", nodes[0], nodes[2])
	for _, n := range nodes {
		waitFor(t, "nothing is staged any more", func() bool {
			list, err := n.StagedChanges()
			return err == nil && len(list) == 0
		})
	}
	if err := nodes[0].Commit(ctx, plan.Base.String(), 0, false); !errors.Is(err, ErrNothing) {
		t.Errorf("a commit without changes: %v", err)
	}
}

// TestANodeJoinsAClusterWithData: it is staged, can be taken back under way, and ends when it has
// everything.
func TestANodeJoinsAClusterWithData(t *testing.T) {
	nodes, ctx := threeNodes(t), context.Background()
	late := start(t, 4, nodes[0].gossip.Addr())
	late.tell(News{Left: 7})
	commit := func(at *node, c Change) {
		t.Helper()
		waitFor(t, "the change can be staged", func() bool { return at.Stage(ctx, c) == nil })
		plan, err := at.Plan()
		if err != nil {
			t.Fatal(err)
		}
		if err := at.Commit(ctx, plan.Base.String(), plan.Staged, false); err != nil {
			t.Fatal(err)
		}
	}
	commit(nodes[1], Change{Action: ring.Join, New: "n4"})
	for _, n := range append(nodes, late) {
		waitFor(t, "it is joining", func() bool { return n.gossip.View().IsChanging() })
	}
	if err := nodes[0].Stage(ctx, Change{Action: ring.Leave, Node: "n1"}); !errors.Is(err,
		ring.ErrRefused) {
		t.Errorf("a change was staged while another is under way: %v", err)
	}
	waitFor(t, "undo", func() bool { return nodes[2].Undo(ctx, false) == nil })
	awaitMembers(t, "n1 n2 n3", append(nodes, late)...)
	commit(late, Change{Action: ring.Join, New: "n4"}) // on the node itself, as the original's command
	late.tell(News{})
	awaitMembers(t, "n1 n2 n3 n4", append(nodes, late)...)
}

func TestWhatCannotBeStaged(t *testing.T) {
	nodes, ctx := threeNodes(t), context.Background()
	for says, c := range map[string]Change{
		"did you mean n1":         {Action: ring.Leave, Node: "n10"},
		"n2 is a member already":  {Action: ring.Join, New: "n2"},
		"start it with cluster":   {Action: ring.Join, New: "absent"},
		"needs as many members":   {Action: ring.SetCopies, Copies: 9},
		"no member is called old": {Action: ring.Replace, Node: "old", New: "n2"},
	} {
		if err := nodes[0].Stage(ctx, c); !errors.Is(err, ring.ErrRefused) ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if p, err := nodes[0].Plan(); p != nil || err != nil {
		t.Errorf("something is staged: %+v, %v", p, err)
	}
	if err := nodes[0].Stage(ctx, Change{Action: ring.SetCopies, Copies: 3}); err != nil {
		t.Fatal(err)
	}
	if err := nodes[0].Stage(ctx, Change{Action: ring.SetCopies, Copies: 1}); err != nil {
		t.Fatal(err)
	}
	if list, err := nodes[0].StagedChanges(); err != nil || len(list) != 1 || list[0].Copies != 1 {
		t.Errorf("staged are %+v, %v", list, err)
	}
	waitFor(t, "the other node sees it", func() bool {
		list, err := nodes[1].StagedChanges()
		return err == nil && len(list) == 1 && list[0].Copies == 1
	})
	if err := nodes[1].Clear(ctx); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "it is cleared", func() bool {
		list, err := nodes[0].StagedChanges()
		return err == nil && len(list) == 0
	})
}

// A member whose join was taken back joins again, and is no candidate while it is down.
func TestAPendingMemberThatIsDown(t *testing.T) {
	v, err := ring.New(ring.Config{Number: 1, Partitions: 64, Copies: 1,
		Members: []ring.Member{{ID: ring.ID{4}, Name: "n4", State: ring.Pending}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := resolve(Change{Action: ring.Join, New: "n4"}, v, nil); !errors.Is(err,
		ring.ErrRefused) || !strings.Contains(err.Error(), "n4 is not up") {
		t.Error(err)
	}
}

func TestPause(t *testing.T) {
	nodes, ctx := threeNodes(t), context.Background()
	for _, on := range []bool{true, false} {
		if err := nodes[0].Pause(ctx, on); err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes {
			waitFor(t, "the pause is known", func() bool {
				n.mu.Lock()
				defer n.mu.Unlock()
				return n.held == on && n.TransfersPaused() == on
			})
		}
	}
}
