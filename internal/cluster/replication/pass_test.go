package replication

import (
	"testing"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

// lastQuestion returns the question that a node sent last to another.
func lastQuestion(t *testing.T, c *Core, peer byte) Message {
	t.Helper()
	sends, _ := c.Take()
	for i := len(sends) - 1; i >= 0; i-- {
		if sends[i].To == copyID(peer) {
			return sends[i].Message
		}
	}
	t.Fatal("nothing was sent")
	return nil
}

// Where an answer ends its page earlier, the next page begins there; what is no answer to the
// question changes nothing.
func TestTheNextPageBeginsBehindTheAnswer(t *testing.T) {
	c := trio(t, 1)[copyID(1)]
	c.Tick(Time{})
	compare := lastQuestion(t, c, 2).(Compare)
	if compare.From != 0 || compare.Through != lastWindow {
		t.Fatalf("windows %d to %d", compare.From, compare.Through)
	}
	receive := func(m Message) { c.Receive(Time{}, copyID(2), m) }
	other := compare.Step
	other.Number++
	receive(CompareReply{Step: other, Through: lastWindow})
	receive(FillReply{Step: compare.Step})
	if sends, _ := c.Take(); len(sends) != 0 {
		t.Fatalf("an answer to nothing is followed by %+v", sends)
	}
	receive(CompareReply{Step: compare.Step, Deletions: true, Through: lastWindow})
	share := lastQuestion(t, c, 2).(ShareDeletions)
	half := metric.SeriesID{0x80}
	receive(ShareDeletionsReply{Step: share.Step, Through: half})
	if share = lastQuestion(t, c, 2).(ShareDeletions); share.After != half ||
		share.Through != LastSeries() {
		t.Fatalf("deletions of series behind %x are shared next", share.After)
	}
	receive(ShareDeletionsReply{Step: share.Step, Through: LastSeries()})
	compare = lastQuestion(t, c, 2).(Compare)
	receive(CompareReply{Step: compare.Step, Deletions: true, Through: 20, Windows: []uint64{20}})
	chunks := lastQuestion(t, c, 2).(CompareChunks)
	receive(Difference{Step: chunks.Step, Through: half})
	if chunks = lastQuestion(t, c, 2).(CompareChunks); chunks.After != half || chunks.Window != 20 {
		t.Fatalf("chunks of window %d behind %x are compared next", chunks.Window, chunks.After)
	}
	receive(Difference{Step: chunks.Step, Through: LastSeries()})
	if compare = lastQuestion(t, c, 2).(Compare); compare.From != 21 {
		t.Fatalf("windows from %d on are compared next", compare.From)
	}
	receive(CompareReply{Step: compare.Step, Through: lastWindow})
	if c.Stats().Comparisons != 1 || !c.compare.given[pair{Share{}, copyID(2)}] ||
		c.compare.given[pair{Share{}, copyID(3)}] {
		t.Errorf("%+v, given %v", c.Stats(), c.compare.given)
	}
}

// A pass that ended under one ring, and is on disk only under the next, counts for neither.
func TestAPassDoesNotOutliveItsRing(t *testing.T) {
	c := trio(t, 1)[copyID(1)]
	c.Tick(Time{})
	compare := lastQuestion(t, c, 3).(Compare)
	// half of this one is done
	c.Receive(Time{}, copyID(3), CompareReply{Step: compare.Step, Through: 20})
	c.Tick(Time{Steady: 100})
	c.noted = 5
	c.Receive(Time{}, copyID(2), CompareReply{Step: lastQuestion(t, c, 2).(Compare).Step,
		Through: lastWindow})
	view, err := ring.New(ring.Config{Number: 2, Partitions: 1, Copies: 3, Members: c.view.Members()})
	if err != nil {
		t.Fatal(err)
	}
	c.Ring(Time{}, view, Quorums{R: c.config.R, W: c.config.W})
	c.SyncedUpTo(Time{}, 5)
	if len(c.compare.given) != 0 || len(c.compare.fetched) != 0 {
		t.Errorf("given %v, fetched %v", c.compare.given, c.compare.fetched)
	}
	c.Take()
	c.Tick(Time{Steady: 200})
	if from := lastQuestion(t, c, 3).(Compare).From; from != 0 {
		t.Errorf("under the next ring a pass begins at window %d", from)
	}
}

// Where more is written than digests are made, a question, and its answer, go after half of the
// time that it has.
func TestDigestsThatAreNeverThere(t *testing.T) {
	c := trio(t, 1)[copyID(1)]
	c.store.(*emptyStore).busy = true
	c.Tick(Time{})
	theirs := Compare{Step: Step{Boot: 1, Pass: 1, Number: 1, Version: c.view.Version()},
		Through: lastWindow}
	c.Receive(Time{}, copyID(3), theirs)
	c.Receive(Time{}, copyID(3), theirs) // again: it is answered once
	b := c.Background()
	counted := func() (asked, answered int) {
		sends, _ := c.Take()
		for _, s := range sends {
			switch s.Message.(type) {
			case Compare:
				asked++
			case CompareReply:
				answered++
			}
		}
		return asked, answered
	}
	b.PrepareSome(Time{Steady: 499})
	if asked, answered := counted(); asked+answered > 0 || !b.AwaitsDigests() {
		t.Fatalf("%d questions and %d answers without digests", asked, answered)
	}
	b.PrepareSome(Time{Steady: 500})
	if asked, answered := counted(); asked == 0 || answered != 1 || b.AwaitsDigests() {
		t.Fatalf("%d questions and %d answers", asked, answered)
	}
}
