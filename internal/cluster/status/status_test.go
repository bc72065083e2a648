package status

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/testkit/golden"
)

func id(n int) ring.ID { return ring.ID{15: byte(n)} }

// fiveMembers is a ring of five members, as the original's users published it.
func fiveMembers(t *testing.T, rng *rand.Rand) *ring.View {
	t.Helper()
	c := ring.Config{Number: 1, Partitions: 64, Copies: 1}
	for i := range 5 {
		v := view(t, c)
		c.Members = append(c.Members,
			ring.Member{ID: id(i + 1), Name: fmt.Sprintf("dalmatinerdb@ddb%02d", i+1),
				State: ring.Active, Tokens: v.Tokens(rng), Protocol: ring.Protocol{Min: 1, Max: 1}})
	}
	return view(t, c)
}

func view(t *testing.T, c ring.Config) *ring.View {
	t.Helper()
	v, err := ring.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func candidate(n int) ring.Candidate {
	return ring.Candidate{ID: id(n), Name: fmt.Sprintf("dalmatinerdb@ddb%02d", n),
		Protocol:   ring.Protocol{Min: 1, Max: 2},
		Partitions: 64, Free: 1 << 40}
}

func TestTexts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	// 6 is no member yet
	seen := NodeView{View: fiveMembers(t, rng), Self: id(1), Up: func(of ring.ID) bool {
		return of != id(6)
	}, Agree: true}
	all := func(title string) string {
		return "# " + title + "\n$ member-status\n" + seen.Members() + "$ ring-status\n" + seen.Ring() +
			"$ cluster status\n" + seen.Cluster()
	}
	golden.Same(t, "testdata/five.txt", all("five members")+"$ transfers\n"+seen.Transfers(nil,
		time.Time{}))

	sizes := ring.Sizes{
		Rate: 1_000_000, Partition: slices.Repeat([]ring.Size{{Bytes: 1 << 30, Points: 10_000_000}}, 64)}
	plan, err := seen.View.Plan([]ring.Change{{Action: ring.Join, Member: candidate(6)},
		{Action: ring.Leave, Node: "dalmatinerdb@ddb02"}}, sizes, rng)
	if err != nil {
		t.Fatal(err)
	}
	golden.Same(t, "testdata/plan.txt", Plan(nil, seen)+Plan(plan, seen))
	if seen.View, err = seen.View.Commit(plan); err != nil {
		t.Fatal(err)
	}
	seen.Up = func(of ring.ID) bool { return of != id(3) }
	seen.Agree = false
	golden.Same(t, "testdata/changing.txt", all("one joins, one leaves, ddb03 is down"))
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	golden.Same(t, "testdata/transfers.txt", "$ transfers\n"+seen.Transfers([]Transfer{
		{Partition: 9, From: id(2), To: id(6), Started: now.Add(-90 * time.Second),
			Last: now.Add(-1500 * time.Millisecond), Points: 70_800_000, Bytes: 23_600_000,
			Size: 35_000_000},
		{Partition: 4, From: id(1), To: id(5), Started: now.Add(-2 * time.Second)},
		{Partition: 5, From: id(1), To: id(5), Hints: true, Started: now.Add(-2 * time.Hour),
			Last: now.Add(-time.Second), Points: 100, Bytes: 700},
	}, now))

	lost, err := seen.View.Plan([]ring.Change{{Action: ring.ForceRemove, Node: "dalmatinerdb@ddb03"}},
		sizes, rng)
	if err != nil {
		t.Fatal(err)
	}
	golden.Same(t, "testdata/force-remove.txt", Plan(lost, seen))
	if seen.View, err = seen.View.Commit(lost); err != nil {
		t.Fatal(err)
	}
	golden.Same(t, "testdata/removed.txt",
		"$ member-status\n"+seen.Members()+"$ cluster status\n"+seen.Cluster())
}

// A name that is wider than its column moves what is beside it, and no more.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("long", 10)
	c := ring.Config{Partitions: 4, Copies: 1,
		Members: []ring.Member{{ID: id(1), Name: long, State: ring.Active, Tokens: []uint32{1}}}}
	seen := NodeView{View: view(t, c), Self: id(1), Up: func(ring.ID) bool { return true },
		Agree: true}
	text := seen.Transfers([]Transfer{{From: id(1), To: id(1)}}, time.Time{})
	if !strings.Contains(text, "\n"+long+arrow+long+"\n") {
		t.Error(text)
	}
}

// What a ring has too little of is said wherever it is printed.
func TestShortagesAreSaid(t *testing.T) {
	c := ring.Config{Partitions: 4, Copies: 3}
	for i, zone := range []string{"east", "east", "west"} {
		c.Members = append(c.Members, ring.Member{ID: id(i + 1), Name: fmt.Sprint("n", i+1), Zone: zone,
			State: ring.Active, Tokens: []uint32{uint32(i+1) << 20}})
	}
	seen := NodeView{View: view(t, c), Self: id(1), Up: func(ring.ID) bool { return true },
		Agree: true}
	c.Members = c.Members[1:]
	fewer := NodeView{View: view(t, c), Self: id(2), Up: seen.Up, Agree: true}
	golden.Same(t, "testdata/short.txt", seen.Cluster()+fewer.Cluster())
}
