package replication

import (
	"bytes"
	"slices"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

// pass compares a pair from the first window to the last, a question after the other. It pauses
// when the peer does not answer, and goes on at the page of windows where it was.
type pass struct {
	of     pair
	step   Step
	asked  Message // that waits for its answer; nil: the next Fill waits for the budget of a tick
	first  int64   // when it was asked first, and last
	sent   int64
	rest   int64 // while it pauses: when it may go on
	shared bool  // deletions were exchanged, not only compared

	from, through uint64          // the page of windows
	windows       []uint64        // of the page that are left, the first is under way
	after, upTo   metric.SeriesID // the page of series, of the window or of deletions
	give, want    []ChunkID       // that are left of that page
	giving        int             // chunks of give in the Fill that was asked
	reserved      int             // points of the budget that its answer may take

	waits    bool // for digests of its share
	ended    bool // nothing is left but to wait for the disk
	move     bool
	soon     bool // it did not wait for its turn
	before   int  // windows before the page
	behind   int  // windows of this node behind the page
	progress Progress
}

// start starts or continues the pass of a pair. It reports whether it did.
func (c *comparisons) start(of candidate) bool {
	p := c.passes[of.pair]
	if !c.isUp(of.peer) || p != nil && (c.now.Steady < p.rest || slices.Contains(c.running, p)) {
		return false
	}
	if p == nil {
		p = &pass{
			of:       of.pair,
			move:     c.moves(of),
			soon:     !c.moves(of) && c.isUrgent(of),
			progress: c.initialProgress(of),
		}
		p.progress.Started = c.now.Steady
		c.passes[of.pair] = p
	}
	c.last++
	p.step = Step{
		Boot:      c.config.Boot,
		Pass:      c.last,
		Partition: of.Partition,
		Copies:    of.Copies,
		Version:   c.view.Version(),
	}
	c.running = append(c.running, p)
	c.askWindows(p)
	return true
}

// pause lets a pass rest: the peer does not answer, or the disk is full. What moved so far is equal
// now.
func (c *comparisons) pause(p *pass) {
	p.asked, p.shared = nil, false
	p.progress.Windows = p.before
	p.windows, p.give, p.want = nil, nil, nil
	p.rest = c.now.Steady + c.config.CompareMS
	c.stop(p)
}

// stop takes a pass from those under way.
func (c *comparisons) stop(p *pass) {
	c.release(p)
	c.running = slices.DeleteFunc(c.running, func(o *pass) bool { return o == p })
}

// goOn repeats a question that was not answered, or asks the one that waited for a tick.
func (c *comparisons) goOn(p *pass) {
	switch {
	case p.ended, p.waits:
	case !c.isUp(p.of.peer) || p.asked != nil && c.now.Steady >= p.first+c.config.Timeout:
		c.pause(p)
	case p.asked == nil:
		c.fillNext(p)
	case c.now.Steady >= p.sent+c.config.Resend:
		p.sent = c.now.Steady
		c.send(p.of.peer, p.asked)
	}
}

// nextStep returns the Step of the next question.
func (p *pass) nextStep() Step {
	p.step.Number++
	return p.step
}

func (c *comparisons) ask(p *pass, m Message) {
	p.asked, p.first, p.sent = m, c.now.Steady, c.now.Steady
	c.send(p.of.peer, m)
}

// passOf returns the pass whose question was answered, nil if nobody waits for the answer any
// more.
func (c *comparisons) passOf(from ring.ID, s Step) *pass {
	p := c.passes[pair{s.share(), from}]
	if p == nil || p.asked == nil || p.step != s {
		return nil
	}
	p.progress.Last = c.now.Steady
	return p
}

// askWindows compares the page of windows that begins at p.from, once its digests are there.
func (c *comparisons) askWindows(p *pass) {
	p.asked, p.waits = nil, true
	c.background.whenPrepared(question{p.of, true}, func() {
		if p.waits && c.passes[p.of] == p {
			p.waits = false
			c.askPage(p)
		}
	})
}

func (c *comparisons) askPage(p *pass) {
	list := c.store.Windows(p.of.Share)
	list = list[findWindow(list, p.from):]
	p.through, p.behind = lastWindow, 0
	if n := c.config.Limits.Windows; len(list) > n {
		p.through, p.behind = list[n].Number-1, len(list)-n
		list = list[:n]
	}
	c.ask(p, Compare{
		Step:      p.nextStep(),
		Deletions: c.digestDeletions(p.of.Partition),
		From:      p.from,
		Through:   p.through,
		Windows:   list,
	})
}

// handleCompareReply goes on with the windows that differ. Deletions come first: what they hide is
// neither asked for nor given.
func (c *comparisons) handleCompareReply(from ring.ID, m CompareReply) {
	p := c.passOf(from, m.Step)
	if p == nil {
		return
	}
	question, ok := p.asked.(Compare)
	if !ok || m.Through < p.from || m.Through > p.through {
		return
	}
	if m.Deletions && !p.shared {
		p.shared, p.after = true, metric.SeriesID{}
		c.askDeletionsBehind(p)
		return
	}
	p.through, p.windows = m.Through, m.Windows
	c.countWindows(p, question.Windows, m)
	c.nextWindow(p)
}

func (c *comparisons) askDeletionsBehind(p *pass) {
	list, through := c.deletions(p.of.Partition, p.after, LastSeries())
	p.upTo = through
	c.ask(p, ShareDeletions{Step: p.nextStep(), After: p.after, Through: through, Deletions: list})
}

func (c *comparisons) sharedDeletions(from ring.ID, m ShareDeletionsReply) {
	p := c.passOf(from, m.Step)
	if p == nil {
		return
	}
	if _, ok := p.asked.(ShareDeletions); !ok || !inPage(p, m.Through) {
		return
	}
	if c.NoteDeletions(m.Deletions) != nil {
		c.pause(p)
		return
	}
	if p.after = m.Through; p.after == LastSeries() {
		c.askWindows(p)
		return
	}
	c.askDeletionsBehind(p)
}

// inPage reports whether an answer speaks of the page that was asked, and of some of it.
func inPage(p *pass, through metric.SeriesID) bool {
	return bytes.Compare(through[:], p.after[:]) > 0 && bytes.Compare(through[:], p.upTo[:]) <= 0
}

// nextWindow compares the chunks of the next window that differs, or the next page of windows.
func (c *comparisons) nextWindow(p *pass) {
	switch {
	case len(p.windows) > 0:
		p.after = metric.SeriesID{}
		c.askChunks(p)
	case p.through == lastWindow:
		c.finish(p)
	default:
		p.from, p.before = p.through+1, p.progress.Windows
		c.askWindows(p)
	}
}

func (c *comparisons) askChunks(p *pass) {
	list, more := c.store.Chunks(p.of.Share, p.windows[0], p.after, c.config.Limits.Chunks)
	p.upTo = LastSeries()
	if more {
		p.upTo = list[len(list)-1].ID.Series
	}
	c.ask(p, CompareChunks{
		Step:    p.nextStep(),
		Window:  p.windows[0],
		After:   p.after,
		Through: p.upTo,
		Chunks:  list,
	})
}

func (c *comparisons) difference(from ring.ID, m Difference) {
	p := c.passOf(from, m.Step)
	if p == nil {
		return
	}
	question, ok := p.asked.(CompareChunks)
	if !ok || !inPage(p, m.Through) {
		return
	}
	p.upTo, p.give, p.want = m.Through, m.Want, nil
	if c.view.Owns(c.config.Self, p.of.Partition, p.of.Copies) {
		p.want = m.Have
	}
	c.countChunks(p, question, m)
	c.fillNext(p)
}

// fillNext moves as many chunks of the page as a message holds, or compares the next page.
func (c *comparisons) fillNext(p *pass) {
	p.asked = nil
	switch {
	case len(p.give)+len(p.want) > 0 && (c.budget <= 0 || c.background.isCrowded()):
	case len(p.give)+len(p.want) > 0:
		fill := Fill{Step: p.nextStep(), Want: p.want[:min(len(p.want), MaxChunks)]}
		fill.Chunks, p.giving = chunksOf(c.store, p.give, c.config.Limits.Points)
		c.budget -= points(fill.Chunks)
		if len(fill.Want) > 0 {
			p.reserved = c.config.Limits.Points
			c.budget -= p.reserved
		}
		c.ask(p, fill)
	case p.upTo == LastSeries():
		p.windows = p.windows[1:]
		p.progress.Windows++
		c.nextWindow(p)
	default:
		p.after = p.upTo
		c.askChunks(p)
	}
}

// release gives back what is reserved of the budget.
func (c *comparisons) release(p *pass) {
	c.budget += p.reserved
	p.reserved = 0
}

// chunksOf returns the first chunks of a list that have points, with so many points together and at
// least one chunk, and how many of the list these stand for.
func chunksOf(store Store, list []ChunkID, most int) (chunks []Chunk, of int) {
	held := 0
	for ; of < len(list); of++ {
		next := store.Chunk(list[of])
		if next.Points == 0 {
			continue
		}
		if held += next.Points; of > 0 && held > most {
			break
		}
		chunks = append(chunks, next)
	}
	return chunks, of
}

// points returns how many points chunks have.
func points(chunks []Chunk) (n int) {
	for i := range chunks {
		n += chunks[i].Points
	}
	return n
}

// handleFillReply takes what this node lacks. What the answer does not bring is asked for again.
func (c *comparisons) handleFillReply(from ring.ID, m FillReply) {
	p := c.passOf(from, m.Step)
	if p == nil {
		return
	}
	question, ok := p.asked.(Fill)
	if !ok || m.Given > len(question.Want) {
		return
	}
	c.release(p)
	if _, err := c.merge(Change{
		Partition: p.of.Partition,
		Copies:    p.of.Copies,
		Chunks:    m.Chunks,
	}); c.Core.endsComparison(err, from, p.of.Share) {
		c.pause(p)
		return
	}
	c.budget -= points(m.Chunks)
	c.countMoved(p, question.Chunks, m.Chunks)
	p.give, p.want = p.give[p.giving:], p.want[m.Given:]
	if p.giving+m.Given == 0 {
		c.pause(p) // a peer that gives nothing is asked later
		return
	}
	c.fillNext(p)
}

// finish notes that all windows were equal or exchanged. Here that is on disk when the log was
// synced; the peer has told so for each page with its disk synced, where this node does not own the
// share.
func (c *comparisons) finish(p *pass) {
	p.asked, p.ended = nil, true
	c.stats.Comparisons++
	if p.soon {
		c.rest = c.now.Steady + c.now.Steady - p.progress.Started
	}
	version := p.step.Version
	c.background.whenStored(func() {
		if c.passes[p.of] == p {
			c.stop(p)
			delete(c.passes, p.of)
		}
		c.whole[p.of] = c.now.Steady
		if version == c.view.Version() {
			c.given[p.of] = true
			c.fetched[p.of] = c.view.Owns(c.config.Self, p.of.Partition, p.of.Copies)
			if p.move {
				p.progress.Done = true
				c.moved[p.of] = p.progress
			}
		}
	})
}
