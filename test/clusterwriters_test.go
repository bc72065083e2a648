package test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"dalmatiner/client"
	"dalmatiner/internal/codec/point"
)

const (
	chaosBucket = "chaos"
	chaosSeries = 20  // of a writer
	chaosShared = 10  // that all writers write, each with words of its own
	chaosSlots  = 300 // of all series: shared ones are rewritten again and again
)

// spot is a slot of a series.
type spot struct{ series, slot int }

// book is what one writer knows of its points.
type book struct {
	sent  map[spot]map[uint64]bool // all words
	acked map[spot]uint64          // the largest word that was acknowledged
	acks  int
	tries int
}

func newBook() *book {
	return &book{sent: map[spot]map[uint64]bool{}, acked: map[spot]uint64{}}
}

// merge takes over what another book has.
func (b *book) merge(o *book) {
	for at, words := range o.sent {
		if b.sent[at] == nil {
			b.sent[at] = map[uint64]bool{}
		}
		maps.Copy(b.sent[at], words)
	}
	for at, w := range o.acked {
		b.acked[at] = max(b.acked[at], w)
	}
	b.acks += o.acks
	b.tries += o.tries
}

// writers send to each node of a cluster while it is tormented, each over acknowledged streams.
type writers struct {
	base  int64
	stop  chan struct{}
	done  sync.WaitGroup
	books []*book
	nodes []string // addresses, of nodes that are read from meanwhile

	mu    sync.Mutex
	reads int
	wrong []string // reads that did not meet what was acknowledged before
}

func startWriters(c *ringNodes) *writers {
	w := &writers{base: past(time.Hour), stop: make(chan struct{})}
	for i := range c.nodes {
		w.nodes = append(w.nodes, c.tcp(i))
	}
	for i := range c.nodes {
		b, addr := newBook(), func() string { return c.tcp(i) }
		w.books = append(w.books, b)
		w.done.Go(func() { w.run(i, b, addr) })
	}
	return w
}

// end stops the writers and returns what all of them know.
func (w *writers) end() *book {
	close(w.stop)
	w.done.Wait()
	all := newBook()
	for _, b := range w.books {
		all.merge(b)
	}
	return all
}

// run writes round by round until the end, on a new connection after each failure.
func (w *writers) run(writer int, b *book, addr func() string) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var s *client.Stream
	for round := 0; ; round++ {
		select {
		case <-w.stop:
			if s != nil {
				_ = s.Close() // everything that counts was acknowledged
			}
			return
		case <-tick.C:
		}
		if s == nil {
			s = dialChaos(addr())
		}
		if s != nil && !w.round(s, writer, round, b) {
			_ = s.Close() // it has failed already
			s = nil
		}
	}
}

func dialChaos(addr string) *client.Stream {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, addr)
	if err != nil {
		return nil
	}
	s, err := c.OpenAckStream(chaosBucket)
	if err != nil {
		_ = c.Close() // it has failed
		return nil
	}
	return s
}

// round sends one batch and waits for its acknowledgement. It reports whether the
// connection goes on.
func (w *writers) round(s *client.Stream, writer, round int, b *book) bool {
	slot := round % chaosSlots
	batch := map[spot]uint64{}
	for i := range chaosSeries + chaosShared {
		at := spot{i, slot}
		if i >= chaosShared {
			at.series += writer * chaosSeries
		}
		word := point.FromInt(int64(at.series)<<32 | int64(round)<<8 | int64(writer))
		batch[at] = word
		if b.sent[at] == nil {
			b.sent[at] = map[uint64]bool{}
		}
		b.sent[at][word] = true
	}
	b.tries++
	if s.SetDeadline(time.Now().Add(15*time.Second)) != nil ||
		s.BatchStart(w.base+int64(slot)) != nil {
		return false
	}
	for at, word := range batch {
		if s.BatchPoint(chaosKey(at.series), word) != nil {
			return false
		}
	}
	if s.BatchEnd() != nil {
		return false
	}
	if _, err := s.FlushAck(); err != nil {
		return false
	}
	ack, err := s.ReadAck()
	if err != nil {
		return false
	}
	if ack.Refused == 0 {
		b.acks++
		for at, word := range batch {
			b.acked[at] = max(b.acked[at], word)
		}
		if b.acks%4 == 0 {
			at := spot{chaosShared + writer*chaosSeries + round%chaosSeries, slot}
			w.readBack(w.nodes[(writer+round)%len(w.nodes)], at, b.acked[at])
		}
	}
	return true
}

// readBack reads what was just acknowledged from a node, in the midst of all faults: that one has
// it, or says that it cannot answer.
func (w *writers) readBack(addr string, at spot, acked uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, addr)
	if err != nil {
		return
	}
	defer c.Close()
	words, err := c.Get(ctx, chaosBucket, chaosKey(at.series), w.base+int64(at.slot), 1)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reads++; words[0] < acked {
		w.wrong = append(w.wrong,
			fmt.Sprintf("%s, series %d, slot %d: %016x was read behind the acknowledgement of %016x", addr,
				at.series, at.slot, words[0], acked))
	}
}

// checkReads checks what was read meanwhile.
func (w *writers) checkReads(t *testing.T) {
	t.Helper()
	t.Logf("%d reads in the midst of faults, %d wrong", w.reads, len(w.wrong))
	for _, wrong := range w.wrong[:min(len(w.wrong), 10)] {
		t.Error(wrong)
	}
}

func chaosKey(series int) []byte {
	name := fmt.Sprintf("s%d", series)
	return append([]byte{byte(len(name))}, name...)
}

// check reads everything from a node: each slot holds a word that was sent, none below one that was
// acknowledged.
func (w *writers) check(t *testing.T, n *node, all *book) {
	t.Helper()
	series := map[int]bool{}
	for at := range all.sent {
		series[at.series] = true
	}
	missing, invented := 0, 0
	for s := range series {
		for slot, word := range n.getReached(t, chaosBucket, chaosKey(s), w.base, chaosSlots) {
			at := spot{s, slot}
			switch {
			case word < all.acked[at]:
				if missing++; missing < 10 {
					t.Errorf("node %s, series %d, slot %d: %016x is there, %016x was acknowledged", n.tcp, s, slot,
						word, all.acked[at])
				}
			case word != 0 && !all.sent[at][word]:
				if invented++; invented < 10 {
					t.Errorf("node %s, series %d, slot %d: %016x was never sent", n.tcp, s, slot, word)
				}
			}
		}
	}
	if missing+invented > 0 {
		t.Errorf("node %s: %d acknowledged slots are older or missing, %d were never sent", n.tcp,
			missing, invented)
	}
}

// getReached reads when enough copies are reached. A node learns late that a connection is broken,
// at times when the link is back: until it has another one it says so, and answers nothing.
func (n *node) getReached(t *testing.T, bucket string, key []byte, slot int64,
	count int) (words []uint64) {
	t.Helper()
	eventually(t, "enough copies are reached from "+n.tcp, func() bool {
		c := n.dial()
		defer c.Close()
		var err error
		words, err = c.Get(context.Background(), bucket, key, slot, count)
		if err != nil && !strings.Contains(err.Error(), "not reached") {
			t.Fatal(err)
		}
		return err == nil
	})
	return words
}

// checkEverywhere checks every node; and when they have healed, those that are left without each
// one: they have everything.
func (w *writers) checkEverywhere(t *testing.T, c *ringNodes, all *book) {
	t.Helper()
	for _, n := range c.up() {
		w.check(t, n, all)
	}
	c.awaitHealed()
	members := len(c.up())
	for i := range c.nodes {
		if c.nodes[i] == nil {
			continue
		}
		c.kill(i)
		for _, n := range c.up() {
			w.check(t, n, all)
		}
		c.start(i)
		c.awaitMembers(members)
	}
}
