package test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"dalmatiner/client"
)

const (
	crashRounds  = 32
	crashSenders = 4
	crashSeries  = 40   // of a sender, the same in all rounds
	crashNew     = 4    // of a sender, new in every round
	crashSlots   = 1024 // of a round: no slot is sent twice
	crashBucket  = "crash"
	unanswered   = 8 // flushes a sender may have under way
)

// fate is what is known of one point.
type fate byte

const (
	never fate = iota // was not sent
	sent              // may be there or not
	there             // was acknowledged, or read after a crash
)

// crashModel holds the fate of every point ever sent.
type crashModel struct {
	base   int64
	fates  map[uint64][]fate // by series, then slot − base
	keys   map[uint64][]byte
	stored uint64 // points that are there
	acked  uint64
	sent   uint64
}

// burst is what one sender sends between two crashes: a batch per slot.
type burst struct {
	stride int64 // from slot to slot, modulo crashSlots: 1 is the order of time
	series []uint64
	sent   int // batches handed to the connection
	acked  int // batches that are durable
	err    error
}

// TestKillDuringAcknowledgedStream: after kill -9 at any instant every
// acknowledged point is there with its value (I1), nothing is there that was
// not sent (I2), and the account is what can be read (I3).
func TestKillDuringAcknowledgedStream(t *testing.T) {
	t.Parallel()
	rounds := crashRounds
	if testing.Short() {
		rounds = 4
	}
	rng := seeded(t)
	dir := t.TempDir()
	m := &crashModel{base: past(12 * time.Hour), fates: map[uint64][]fate{}, keys: map[uint64][]byte{}}
	args := []string{"--set", "wal.sync=always"}
	for round := range rounds {
		if round%4 == 3 {
			m.killDuringStart(t, rng, dir, args)
		}
		n := startNode(t, dir, args...)
		m.check(t, n, max(0, round-1), round)
		m.round(t, n, rng, round)
	}
	n := startNode(t, dir, args...)
	m.check(t, n, rounds-1, rounds)
	m.check(t, n, 0, rounds)
	n.stop()
	n = startNode(t, dir, args...)
	m.check(t, n, 0, rounds)
	if n.figure("segments") < 2 {
		t.Error("no flush was committed between two kills: the test shows less than it should")
	}
	t.Logf("%d kills: sent %d, acknowledged %d, there %d", rounds, m.sent, m.acked, m.stored)
	if m.acked == 0 || m.stored == m.sent {
		t.Errorf("no kill met a point under way: the test shows nothing")
	}
}

// killDuringStart kills nodes while they replay the log.
func (m *crashModel) killDuringStart(t *testing.T, rng *rand.Rand, dir string, args []string) {
	t.Helper()
	for range 3 {
		n := launch(t, dir, args...)
		select {
		case <-time.After(time.Duration(rng.Int64N(int64(60 * time.Millisecond)))):
		case <-n.log.ready:
		case <-n.done:
			t.Fatalf("the node ended by itself:\n%s", n.log)
		}
		n.kill()
	}
}

// round sends from all senders, kills the node at a random instant, and notes
// what is known then. Every third node is killed while it flushes.
func (m *crashModel) round(t *testing.T, n *node, rng *rand.Rand, round int) {
	bursts := make([]*burst, crashSenders)
	first := make(chan struct{}, crashSenders)
	var all sync.WaitGroup
	for i := range bursts {
		bursts[i] = &burst{series: m.series(t, i, round), stride: 1}
		if i == 0 {
			bursts[i].stride = 389 // mostly late points
		}
	}
	for _, b := range bursts {
		all.Go(func() { b.err = m.send(n, b, round, first) })
	}
	committed := make(chan struct{})
	if round%3 == 2 {
		all.Go(func() { flushUntilDeath(n, committed) })
	}
	if round%6 == 2 { // else a slow machine may have no flush between two kills
		await(t, committed, "no flush was committed")
	}
	await(t, first, "no flush was acknowledged")
	<-time.After(time.Duration(rng.Int64N(int64(150 * time.Millisecond))))
	n.kill()
	all.Wait()
	for _, b := range bursts {
		if b.err != nil {
			t.Errorf("round %d: %v", round, b.err)
		}
		m.note(b, round)
	}
	if t.Failed() {
		t.FailNow()
	}
}

// flushUntilDeath flushes until the node is gone, and closes committed behind the
// first time.
func flushUntilDeath(n *node, committed chan struct{}) {
	for first := true; ; first = false {
		if _, err := n.admin().Flush(context.Background()); err != nil {
			return
		}
		if first {
			close(committed)
		}
	}
}

func await(t *testing.T, what <-chan struct{}, missing string) {
	t.Helper()
	select {
	case <-what:
	case <-time.After(patience):
		t.Errorf("%s in %v", missing, patience)
	}
}

// series returns the series a sender writes in a round, the new ones last.
func (m *crashModel) series(t *testing.T, sender, round int) []uint64 {
	var ids []uint64
	add := func(i int) {
		id := uint64(sender)<<32 | uint64(i)
		ids = append(ids, id)
		if m.keys[id] == nil {
			m.keys[id] = key(t, "crash", fmt.Sprint(sender), fmt.Sprint(i))
			m.fates[id] = make([]fate, crashRounds*crashSlots)
		}
	}
	for i := range crashSeries {
		add(i)
	}
	for i := range crashNew {
		add(crashSeries + round*crashNew + i)
	}
	return ids
}

// send sends batches until the connection breaks or the slots are used up, and
// reads answers until the connection breaks.
func (m *crashModel) send(n *node, b *burst, round int, first chan<- struct{}) error {
	c, err := client.Dial(context.Background(), n.tcp)
	if err != nil {
		return err
	}
	s, err := c.OpenAckStream(crashBucket)
	if err != nil {
		return err
	}
	defer s.Close()
	window, broken := make(chan struct{}, unanswered), make(chan struct{})
	var wrong error
	go func() {
		defer close(broken)
		for {
			ack, err := s.ReadAck()
			if err != nil {
				return
			}
			if ack.Received != uint64(len(b.series)) || ack.Refused != 0 || ack.Seq != uint64(b.acked)+1 {
				wrong = fmt.Errorf("answer %d is %+v", b.acked+1, ack)
			}
			if b.acked == 0 {
				first <- struct{}{}
			}
			b.acked++
			<-window
		}
	}()
	for b.sent < crashSlots {
		select {
		case window <- struct{}{}:
		case <-broken:
			return wrong
		}
		b.sent++
		if m.batch(s, b.series, m.slot(round)+b.slot(b.sent-1)) != nil {
			break
		}
	}
	<-broken
	return wrong
}

// slot returns the slot of a batch, counted from the first of the round.
func (b *burst) slot(batch int) int64 { return int64(batch) * b.stride % crashSlots }

// batch sends one point of every series and asks for an answer.
func (m *crashModel) batch(s *client.Stream, series []uint64, slot int64) error {
	err := s.BatchStart(slot)
	for _, id := range series {
		if err == nil {
			err = s.BatchPoint(m.keys[id], value(id, slot))
		}
	}
	if err == nil {
		err = s.BatchEnd()
	}
	if err == nil {
		_, err = s.FlushAck()
	}
	return err
}

func (m *crashModel) slot(round int) int64 { return m.base + int64(round)*crashSlots }

// note takes over what a sender knows when the node is gone.
func (m *crashModel) note(b *burst, round int) {
	for _, id := range b.series {
		fates := m.fates[id][round*crashSlots:]
		for i := range b.sent {
			fates[b.slot(i)] = sent
			if i < b.acked {
				fates[b.slot(i)] = there
			}
		}
	}
	m.sent += uint64(b.sent * len(b.series))
	m.acked += uint64(b.acked * len(b.series))
}

// check reads all series in the slots of the rounds from first on, up to the
// number of rounds that were begun, and compares them and the account.
func (m *crashModel) check(t *testing.T, n *node, first, begun int) {
	t.Helper()
	if begun == 0 {
		return
	}
	c := n.dial()
	defer c.Close()
	count := (begun - first) * crashSlots
	for id, fates := range m.fates {
		words := get(t, c, crashBucket, m.keys[id], m.slot(first), count)
		fates = fates[first*crashSlots : begun*crashSlots]
		for i, word := range words {
			slot := m.slot(first) + int64(i)
			switch {
			case word == 0 && fates[i] == there:
				t.Errorf("I1: series %x, slot %d: a durable point is gone", id, slot)
			case word != 0 && fates[i] == never:
				t.Errorf("I2: series %x, slot %d: %016x was never sent", id, slot, word)
			case word != 0 && word != value(id, slot):
				t.Errorf("I1: series %x, slot %d: %016x, sent was %016x", id, slot, word, value(id, slot))
			case word != 0 && fates[i] == sent:
				fates[i] = there // what was read stays
			case word == 0 && fates[i] == sent:
				fates[i] = never // what is gone stays away
			}
		}
	}
	m.checkAccount(t, n)
	if t.Failed() {
		t.Fatalf("round %d", begun-1)
	}
}

// checkAccount compares the ledger with what can be read.
func (m *crashModel) checkAccount(t *testing.T, n *node) {
	t.Helper()
	m.stored = 0
	for _, fates := range m.fates {
		for _, f := range fates {
			if f == there {
				m.stored++
			}
		}
	}
	row := n.account(crashBucket)
	if row.Accepted+row.Late != m.stored || row.Received != m.stored {
		t.Errorf("I3: %d points can be read, the account says %+v", m.stored, row)
	}
	if m.stored < m.acked || m.stored > m.sent {
		t.Errorf("I3: acknowledged %d, stored %d, sent %d", m.acked, m.stored, m.sent)
	}
}
