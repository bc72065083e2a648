package gossip

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/cluster/ring"
)

func testOptions(i int, join ...string) Options {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("d", 0o755); err != nil {
		panic(err)
	}
	return Options{Node: ring.Candidate{ID: ring.ID{15: byte(i)}, Name: fmt.Sprint("n", i),
		Addresses: []string{fmt.Sprintf("host%d:5555", i)},
		Protocol:  ring.Protocol{Min: 1, Max: 1}, Partitions: 64}, Copies: 3, Listen: "127.0.0.1:0",
		Join: join, Cookie: "secret",
		FS: fs, Dir: "d", Logger: slog.New(slog.DiscardHandler), Heartbeat: 50 * time.Millisecond,
		Timeout: time.Second,
		Values:  []Value{{Name: "set", Merge: union}}}
}

// union merges sets of bytes.
func union(a, b []byte) ([]byte, error) {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all), nil
}

func open(t *testing.T, o Options) *Node {
	t.Helper()
	n, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// awaitChange waits for the changes of a node until a condition holds.
func awaitChange(t *testing.T, n *Node, what string, is func() bool) {
	t.Helper()
	await(t, n, what, time.After(20*time.Second), is)
}

// await is eventually with a deadline of the caller.
func await(t testing.TB, n *Node, what string, deadline <-chan time.Time, is func() bool) {
	t.Helper()
	for {
		changed := n.ChangeSignal()
		if is() {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("%s: %s, up %v, refused %v", what, n.View().Version(), n.now.Load().up, n.JoinErrors())
		}
	}
}

func agree(t *testing.T, nodes ...*Node) {
	t.Helper()
	for _, n := range nodes {
		awaitChange(t, n, n.o.Node.Name+" agrees", func() bool {
			for _, o := range nodes {
				if !n.IsUp(o.o.Node.ID) {
					return false
				}
			}
			// The first one waits for its members, the others for its ring.
			return len(n.View().Members()) == len(nodes) &&
				(n == nodes[0] || n.View().Version() == nodes[0].View().Version())
		})
	}
}

// Empty nodes become one cluster with no command; one that stops without leaving stays a member,
// and is the same one when it is back; values and commits reach all; a stale commit is refused.
func TestThreeNodes(t *testing.T) {
	first := open(t, testOptions(1))
	if len(first.View().Members()) != 1 || !first.IsUp(first.o.Node.ID) {
		t.Fatal("a node alone is no cluster")
	}
	second, o := open(t, testOptions(2, first.Addr())), testOptions(3, first.Addr())
	third := open(t, o)
	agree(t, first, second, third)

	ctx := context.Background()
	for i, n := range []*Node{first, second, third} {
		if err := n.Put(ctx, "set", []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []*Node{first, second, third} {
		awaitChange(t, n, "value", func() bool {
			b, err := n.Get("set")
			return err == nil && bytes.Equal(b, []byte{0, 1, 2})
		})
	}

	before := first.View()
	if err := third.Close(); err != nil {
		t.Fatal(err)
	}
	awaitChange(t, first, "third is down", func() bool { return !first.IsUp(third.o.Node.ID) })
	if first.View().Version() != before.Version() {
		t.Errorf("a node that is down changes the ring to %s", first.View().Version())
	}
	third = open(t, o)
	if third.View().Version() != before.Version() {
		t.Errorf("after a start the ring is %s, it was %s", third.View().Version(), before.Version())
	}
	agree(t, first, second, third)
	if first.View().Version() != before.Version() {
		t.Errorf("a node that is back changes the ring to %s", first.View().Version())
	}
	theyAdmitNobodyWithData(t, first)

	plan, err := before.Plan([]ring.Change{{Action: ring.SetCopies, Copies: 2}}, ring.Sizes{},
		rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	commit := func(v *ring.View) (*ring.View, error) { return v.Commit(plan) }
	if err := second.Commit(ctx, commit); err != nil {
		t.Fatal(err)
	}
	awaitChange(t, first, "commit", func() bool {
		return first.View().Version() == plan.Next.Version()
	})
	if err := first.Commit(ctx, commit); !errors.Is(err, ring.ErrStale) {
		t.Errorf("the same commit again: %v", err)
	}
}

// theyAdmitNobodyWithData: once a member has data, a join is for an operator to commit.
func theyAdmitNobodyWithData(t *testing.T, member *Node) {
	t.Helper()
	if err := member.HasData(context.Background()); err != nil {
		t.Fatal(err)
	}
	late := open(t, testOptions(4, member.Addr()))
	awaitChange(t, late, "it follows the cluster with data", func() bool {
		return late.View().Version() == member.View().Version()
	})
	awaitChange(t, member, "the late one is up", func() bool { return member.IsUp(late.o.Node.ID) })
	member.admit(context.Background(), member.state())
	if _, is := member.View().Member(late.o.Node.ID); is {
		t.Error("a cluster with data has admitted a node by itself")
	}
	if list := member.Candidates(); len(list) != 1 || list[0].Name != "n4" {
		t.Errorf("who waits to join: %+v", list)
	}
	if err := late.Close(); err != nil {
		t.Fatal(err)
	}
}

// Strangers stay outside: those with another cookie unseen, those with another ring_size by name.
func TestStrangers(t *testing.T) {
	first := open(t, testOptions(1))
	other := testOptions(2, first.Addr())
	other.Cookie = "another"
	stranger := open(t, other)
	if err := joinOnce(stranger, first.Addr()); err == nil {
		t.Error("a node with another cookie joins")
	}
	other = testOptions(3, first.Addr())
	other.Node.Partitions = 128
	misfit := open(t, other)
	for _, n := range []*Node{first, misfit} {
		awaitChange(t, n, "refusal", func() bool {
			r := n.JoinErrors()
			return len(r) == 1 && errors.Is(r[0], ring.ErrRefused) &&
				strings.Contains(r[0].Error(), "ring_size of n")
		})
	}
	if len(first.View().Members()) != 1 || len(misfit.View().Members()) != 1 ||
		len(first.state().nodes) != 2 {
		t.Error("a stranger is a member")
	}
}

// Of empty nodes that come together one that is refused keeps no other out.
func TestARefusedNodeKeepsNobodyOut(t *testing.T) {
	o := testOptions(1)
	o.Heartbeat, o.Timeout = time.Second, 5*time.Second // it sees all before it admits one
	first := open(t, o)
	var nodes []*Node
	for i := 2; i <= 4; i++ {
		o := testOptions(i, first.Addr())
		if i == 3 {
			o.Node.Name = "n2"
		}
		nodes = append(nodes, open(t, o))
	}
	for _, n := range append(nodes, first) {
		awaitChange(t, n, "three members", func() bool { return len(n.View().Members()) == 3 })
	}
	if _, is := first.View().Member(nodes[2].o.Node.ID); !is {
		t.Error("n4 is none of them")
	}
}

func joinOnce(n *Node, addr string) error {
	_, err := n.kv.JoinMembers([]string{addr})
	return err
}
