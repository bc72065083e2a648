package test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

var schedules = flag.Int("schedules", 1, "how many random schedules TestRingSchedules goes through")

// TestRingSchedules: members join, leave, are replaced, lost for good and sent into maintenance,
// and n changes, in a random order, while clients write and nodes are killed and stopped. No
// acknowledged point is missing.
//
// DDB_SEED repeats a schedule, with -run TestRingSchedules/1$.
func TestRingSchedules(t *testing.T) {
	t.Parallel()
	for i := range *schedules {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) { runSchedule(t, seeded(t)) })
	}
}

func runSchedule(t *testing.T, rng *rand.Rand) {
	c := startCluster(t, 3)
	w := startWriters(c)
	s := &schedule{ringNodes: c, rng: rng, copies: 3}
	steps := 5
	if testing.Short() {
		steps = 2
	}
	for range steps {
		s.step()
		c.awaitMembers(len(c.up()))
	}
	all := w.end()
	w.checkReads(t)
	t.Logf("%d batches, %d acknowledged", all.tries, all.acks)
	if all.acks < 20 {
		t.Errorf("of %d batches %d were acknowledged: the test shows little", all.tries, all.acks)
	}
	w.checkEverywhere(t, c, all)
}

// schedule is a cluster whose members change.
type schedule struct {
	*ringNodes
	rng    *rand.Rand
	copies int
}

// step makes one change that the members there are allow, and waits for its end.
func (s *schedule) step() {
	s.t.Helper()
	kinds := []string{"join", "replace", "set-n", "maintenance"}
	if len(s.up()) > 3 {
		kinds = append(kinds, "leave", "force-remove")
	}
	switch kind := kinds[s.rng.IntN(len(kinds))]; kind {
	case "join":
		s.join()
	case "replace":
		old, added := s.any(), s.add()
		s.change(kind, s.name(old), s.name(added))
		s.remove(old)
	case "set-n":
		s.copies = 5 - s.copies // 2 or 3: one of them can always be lost
		s.change(kind, strconv.Itoa(s.copies))
	case "leave":
		old := s.any()
		s.change(kind, s.name(old))
		s.remove(old)
	case "force-remove":
		s.awaitHealed() // until then, copies may be missing that the lost node had
		old := s.any()
		s.lose(old)
		s.change(kind, s.name(old))
	case "maintenance":
		s.maintenance()
	}
}

// any is a node that runs.
func (s *schedule) any() int {
	for {
		if i := s.rng.IntN(len(s.nodes)); s.nodes[i] != nil {
			return i
		}
	}
}

// add starts an empty node.
func (s *schedule) add() int {
	added := len(s.nodes)
	s.start(added)
	return added
}

// remove ends a node for good that is no member any more.
func (s *schedule) remove(i int) {
	for _, n := range s.up() {
		if n != s.nodes[i] {
			eventually(s.t, "all know that "+s.name(i)+" is no member", func() bool {
				return !strings.Contains(s.admin(n, "member-status"), s.name(i))
			})
		}
	}
	s.lose(i)
}

// lose ends a node for good.
func (s *schedule) lose(i int) {
	s.t.Logf("%s is gone", s.name(i))
	s.kill(i)
}

// join lets a node join. In one of two cases that is taken back: then the node is a member without
// a share, that joins again, leaves, or is lost.
func (s *schedule) join() {
	added := s.add()
	if s.rng.IntN(2) > 0 {
		s.change("join", s.name(added))
		return
	}
	at := s.nodes[s.member(added)]
	joining := s.commit(at, "join", s.name(added))
	s.hold(2 * time.Second)
	if r := run(s.t, "ddb-admin", "cluster", "undo", "--addr", at.http); r.code != 0 {
		s.t.Logf("undo: %s%s", r.out, r.errOut) // the change has ended
		s.follow(at, joining)
		return
	}
	s.t.Logf("the join of %s is taken back", s.name(added))
	s.follow(at, change{[]string{"undo"}, s.ringNumber(at)})
	s.awaitOneRing()
	if s.state(at, added) != "pending" {
		s.t.Log("the join was complete at the same moment, which counts")
		return
	}
	switch s.rng.IntN(3) {
	case 0:
		s.change("join", s.name(added))
	case 1:
		s.change("leave", s.name(added))
		s.remove(added)
	case 2:
		s.lose(added)
		s.change("force-remove", s.name(added))
	}
}

// state is that of a member as a node sees it.
func (s *schedule) state(at *node, i int) string {
	for _, m := range s.status(at).Members {
		if m.Name == s.name(i) {
			return m.State
		}
	}
	return ""
}

// member is a node that runs, and not the one that joins.
func (s *schedule) member(added int) int {
	for {
		if i := s.any(); i != added {
			return i
		}
	}
}

// change stages a change, commits it, lets something happen to a node meanwhile, and waits until it
// has ended.
func (s *schedule) change(words ...string) {
	s.t.Helper()
	made := s.commit(s.nodes[s.member(len(s.nodes)-1)], words...)
	if s.rng.IntN(2) == 0 {
		s.hold(time.Second)
		s.disturb()
	}
	s.follow(s.nodes[s.any()], made)
}

// disturb kills or stops a node for a while.
func (s *schedule) disturb() {
	s.t.Helper()
	i := s.any()
	if s.rng.IntN(2) == 0 {
		s.t.Logf("%s is stopped for a while", s.name(i))
		goOn := s.pause(i)
		s.hold(3 * time.Second)
		goOn()
		return
	}
	s.t.Logf("%s is killed", s.name(i))
	s.kill(i)
	s.hold(3 * time.Second)
	s.start(i)
}

// maintenance sends a node into maintenance, kills it there, and brings it back.
func (s *schedule) maintenance() {
	s.t.Helper()
	i := s.any()
	at := s.nodes[s.member(i)]
	eventually(s.t, s.name(i)+" may go into maintenance", func() bool {
		return run(s.t, "ddb-admin", "cluster", "maintenance", s.name(i), "on", "--addr",
			at.http).code == 0
	})
	s.t.Logf("%s is in maintenance", s.name(i))
	s.kill(i)
	s.hold(2 * time.Second)
	s.start(i)
	s.admin(at, "cluster", "maintenance", s.name(i), "off")
}

func (s *schedule) hold(longest time.Duration) {
	<-time.After(time.Duration(s.rng.Int64N(int64(longest))))
}
